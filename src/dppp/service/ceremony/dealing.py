"""The key ceremony of a federation, run by the dealer.

Terms and join requests go in; the federation file and one sealed share per teacher come out. The
dealer's process knows the whole key until it ends. Nothing is written before everything is made,
and nothing is overwritten.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from dppp.errors import FederationError
from dppp.paillier.dealer import DealtKey, deal, require_dealable
from dppp.privacy.calibration import calibrate_for
from dppp.privacy.certificate import Certificate, Promise
from dppp.privacy.trust import Trust
from dppp.protocol.task import Task, TeacherEntry, agree
from dppp.service.ceremony.authority import LIFETIME
from dppp.service.ceremony.coordinator import read_authority, read_requests, require_compatible
from dppp.service.ceremony.federation_file import FederationFile, Member, NonVotingMember
from dppp.service.ceremony.home import FEDERATION
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.share_envelope import seal_to
from dppp.service.ceremony.terms import Terms, read_terms
from dppp.service.stores.new_files import PUBLIC, NewFile, refuse_to_overwrite, write_new_files


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtFederation:
    """What a ceremony made: the file for everybody, and the name of each teacher's share file."""

    federation: FederationFile
    share_files: tuple[str, ...]


def deal_federation(
    folder: Path,
    out: Path,
    *,
    key: DealtKey | None = None,
    now: datetime | None = None,
    lifetime: timedelta = LIFETIME,
) -> DealtFederation:
    """Run the ceremony on a coordinator's folder; `key` is for tests, which dealt one before.

    `lifetime` is that of the TLS certificates.
    """
    terms, requests, authority = read_terms(folder), read_requests(folder), read_authority(folder)
    _require_complete(requests)
    teachers = [request for request in requests if request.role is Role.TEACHER]
    names = share_files([teacher.name for teacher in teachers])
    refuse_to_overwrite(out, [FEDERATION, *names])
    certificate = _calibrate(terms, len(teachers))
    dealt = key or _deal(terms, certificate.trust)
    (aggregator,) = (request for request in requests if request.role is Role.AGGREGATOR)
    task = _agree(terms, teachers, aggregator, certificate, dealt)
    issue = partial(authority.issue, now=now or datetime.now(UTC), lifetime=lifetime)
    tls_certificates = {
        request: issue(request.tls_request, request.identity) for request in requests
    }
    federation = _assemble(task, dealt, tls_certificates, authority.pem)
    shares = [
        NewFile(name=name, data=seal_to(member.sealing_key, share, task.task_id))
        for name, member, share in zip(names, federation.teachers, dealt.shares, strict=True)
    ]
    public = NewFile(name=FEDERATION, data=federation.to_bytes(), mode=PUBLIC)
    write_new_files(out, [*shares, public])
    return DealtFederation(federation=federation, share_files=names)


def share_files(names: Sequence[str]) -> tuple[str, ...]:
    """A file name for each teacher: its name in plain letters, and its index in a clash."""
    return tuple(f"{name}.share" for name in plain_names(names, "teacher"))


def plain_names(names: Sequence[str], otherwise: str) -> tuple[str, ...]:
    """Each name in plain letters, with its place in a clash, or where no letter is left."""
    slugs = [_slug(name) for name in names]
    return tuple(
        slug if slug and slugs.count(slug) == 1 else f"{slug or otherwise}-{place}"
        for place, slug in enumerate(slugs, start=1)
    )


def _require_complete(requests: Sequence[JoinRequest]) -> None:
    require_compatible(requests)
    roles = [request.role for request in requests]
    for role in (Role.AGGREGATOR, Role.BROKER):
        if role not in roles:
            raise FederationError(
                f"no {role} has joined yet",
                hint=f"have it run `dppp join --role {role}` and collect its request",
            )
    if roles.count(Role.TEACHER) < 2:
        raise FederationError(
            f"{roles.count(Role.TEACHER)} teachers have joined, and it takes at least 2, since "
            "one alone hides nobody",
            hint="collect the requests of the others",
        )


def _calibrate(terms: Terms, teachers: int) -> Certificate:
    trust = Trust.with_defaults(teachers, terms.colluders, terms.dropouts)
    promise = Promise(
        epsilon=terms.epsilon,
        delta=terms.delta,
        queries=terms.queries,
        classes=len(terms.class_names),
    )
    require_dealable(
        teachers=teachers,
        threshold=trust.threshold,
        modulus_bits=terms.modulus_bits,
        s=terms.s,
    )
    return calibrate_for(terms.noise, promise, trust)


def _deal(terms: Terms, trust: Trust) -> DealtKey:
    return deal(
        teachers=trust.teachers,
        threshold=trust.threshold,
        modulus_bits=terms.modulus_bits,
        s=terms.s,
    )


def _agree(
    terms: Terms,
    teachers: Sequence[JoinRequest],
    aggregator: JoinRequest,
    certificate: Certificate,
    dealt: DealtKey,
) -> Task:
    return agree(
        name=terms.name,
        data_id=terms.data_id,
        class_names=terms.class_names,
        features=terms.features,
        teachers=[
            TeacherEntry(name=teacher.name, signing_key=teacher.signing_key) for teacher in teachers
        ],
        aggregator_key=aggregator.signing_key,
        certificate=certificate,
        public=dealt.public,
        abstain_below=terms.abstain_below,
    )


def _assemble(
    task: Task, dealt: DealtKey, tls_certificates: Mapping[JoinRequest, str], authority: str
) -> FederationFile:
    """The federation file, with a TLS certificate for everybody."""
    non_voting = {
        request.role: NonVotingMember(
            name=request.name,
            signing_key=request.signing_key,
            nkey=request.nkey,
            tls_certificate=tls_certificate,
            hosts=request.identity.hosts,
        )
        for request, tls_certificate in tls_certificates.items()
        if request.role is not Role.TEACHER
    }
    return FederationFile(
        task=task,
        public=dealt.public,
        authority=authority,
        teachers=tuple(
            _member(request, tls_certificate)
            for request, tls_certificate in tls_certificates.items()
            if request.role is Role.TEACHER
        ),
        aggregator=non_voting[Role.AGGREGATOR],
        broker=non_voting[Role.BROKER],
    )


def _member(request: JoinRequest, tls_certificate: str) -> Member:
    assert request.sealing_key is not None, "a teacher's request has one"
    assert request.nkey is not None, "and an nkey"
    return Member(
        name=request.name,
        signing_key=request.signing_key,
        sealing_key=request.sealing_key,
        nkey=request.nkey,
        tls_certificate=tls_certificate,
    )


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
