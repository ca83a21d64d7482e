"""From terms and join requests to the federation file: what every cryptosystem shares.

Under masks this is all there is to make, and the coordinator makes it: every teacher makes its own
keys. Under paillier a dealer makes a key in between (dealing.py).
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dppp.errors import FederationError, InputError
from dppp.learning.choosing_votes import choose_votes
from dppp.paillier.keys import PublicKey
from dppp.privacy.calibration import calibrate_for
from dppp.privacy.certificate import Certificate, Promise
from dppp.privacy.trust import Trust
from dppp.protocol.task import Task, TeacherEntry, agree
from dppp.service.ceremony.authority import LIFETIME, Authority
from dppp.service.ceremony.coordinator import read_authority, read_requests, require_compatible
from dppp.service.ceremony.federation_file import FederationFile, Member, NonVotingMember
from dppp.service.ceremony.home import FEDERATION
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.terms import Terms, read_terms
from dppp.service.stores.new_files import PUBLIC, NewFile, refuse_to_overwrite, write_new_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Terms, and the requests of everybody who takes part: teachers, aggregator and broker."""

    terms: Terms
    requests: tuple[JoinRequest, ...]
    authority: Authority

    def __post_init__(self) -> None:
        require_compatible(self.requests)
        _require_complete([request.role for request in self.requests])

    @property
    def teachers(self) -> tuple[JoinRequest, ...]:
        """The teachers, in the order of their indexes."""
        return tuple(request for request in self.requests if request.role is Role.TEACHER)

    @property
    def trust(self) -> Trust:
        """What the terms say of as many teachers as came."""
        return Trust.with_defaults(len(self.teachers), self.terms.colluders, self.terms.dropouts)

    def calibrate(self) -> Certificate:
        """The noise that the terms take with these teachers."""
        promise = Promise(
            epsilon=self.terms.epsilon,
            delta=self.terms.delta,
            queries=self.terms.queries,
            classes=len(self.terms.class_names),
            change=self.terms.question.change(len(self.terms.class_names)),
        )
        return calibrate_for(self.terms.noise, promise, self.trust)

    def agree(
        self,
        certificate: Certificate,
        *,
        public: PublicKey | None = None,
        succeeds: bytes | None = None,
    ) -> Task:
        """The task; without a public key it is under masks."""
        (aggregator,) = (each for each in self.requests if each.role is Role.AGGREGATOR)
        terms = self.terms
        return agree(
            name=terms.name,
            data_id=terms.data_id,
            class_names=terms.class_names,
            features=terms.columns,
            teachers=[
                _entry(teacher, votes)
                for teacher, votes in zip(self.teachers, self.votes(certificate), strict=True)
            ],
            aggregator_key=aggregator.signing_key,
            certificate=certificate,
            public=public,
            abstain_below=terms.abstain_below,
            labels_per_batch=terms.labels_per_batch,
            epoch_seconds=terms.epoch_length,
            unit=terms.unit,
            succeeds=succeeds,
            question=terms.question,
        )

    def votes(self, certificate: Certificate) -> tuple[int, ...]:
        """Of each teacher: what the terms say, or what its records and the noise ask for."""
        terms, own = self.terms, self.terms.votes_of or {}
        strangers = set(own) - {each.name for each in self.teachers}
        if strangers:
            raise FederationError(
                f"the terms give votes to {', '.join(sorted(strangers))}, and no such teacher has "
                "joined",
                hint="collect its request, or correct votes_of in terms.toml",
            )
        usual = choose_votes(
            terms.votes,
            unit=terms.unit or "record",
            noise=certificate.noise,
            records=self._records(),
            classes=len(terms.class_names),
            question=terms.question,
        )
        pairs = zip(self.teachers, usual.per_teacher, strict=True)
        return tuple(own.get(teacher.name, votes) for teacher, votes in pairs)

    def _records(self) -> list[int]:
        """Of each teacher, as it said; who has votes of its own need not say."""
        own = self.terms.votes_of or {}
        if self.terms.votes == "auto" and self.terms.unit != "teacher":
            for each in self.teachers:
                if each.records is None and each.name not in own:
                    raise FederationError(
                        f"votes go by records, and {each.name} did not say how many it has",
                        hint="have it join again with `dppp join --records`, or give it votes by "
                        "votes_of in terms.toml",
                    )
        return [each.records or 0 for each in self.teachers]

    def assemble(
        self,
        task: Task,
        *,
        public: PublicKey | None = None,
        now: datetime | None = None,
        lifetime: timedelta = LIFETIME,
    ) -> FederationFile:
        """The federation file, with a TLS certificate of this lifetime for everybody."""
        issued_at = now or datetime.now(UTC)
        tls_certificates = {
            request: self.authority.issue(
                request.tls_request, request.identity, now=issued_at, lifetime=lifetime
            )
            for request in self.requests
        }
        non_voting = _non_voting_members(tls_certificates)
        return FederationFile(
            task=task,
            public=public,
            authority=self.authority.pem,
            teachers=tuple(_member(each, tls_certificates[each]) for each in self.teachers),
            aggregator=non_voting[Role.AGGREGATOR],
            broker=non_voting[Role.BROKER],
        )


def read_joined(folder: Path) -> Joined:
    """What a coordinator's folder holds, if everybody is there."""
    return Joined(
        terms=read_terms(folder),
        requests=read_requests(folder),
        authority=read_authority(folder),
    )


def make_federation_file(
    folder: Path, out: Path, *, now: datetime | None = None, lifetime: timedelta = LIFETIME
) -> FederationFile:
    """The last of what a coordinator does under masks: no key is dealt, so nobody knows one."""
    joined = read_joined(folder)
    if joined.terms.cryptosystem != "masks":
        raise InputError(
            "this federation is under paillier, and its key is still to be dealt",
            hint=f"run: dppp keys deal --federation {folder} --out {out}",
        )
    refuse_to_overwrite(out, [FEDERATION])
    task = joined.agree(joined.calibrate())
    federation = joined.assemble(task, now=now, lifetime=lifetime)
    write_new_files(out, [NewFile(name=FEDERATION, data=federation.to_bytes(), mode=PUBLIC)])
    return federation


def plain_names(names: Sequence[str], otherwise: str) -> tuple[str, ...]:
    """Each name in plain letters, with its place in a clash, or where no letter is left."""
    slugs = [_slug(name) for name in names]
    return tuple(
        slug if slug and slugs.count(slug) == 1 else f"{slug or otherwise}-{place}"
        for place, slug in enumerate(slugs, start=1)
    )


def _require_complete(roles: Sequence[Role]) -> None:
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


def _non_voting_members(
    tls_certificates: Mapping[JoinRequest, str],
) -> dict[Role, NonVotingMember]:
    return {
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


def _entry(request: JoinRequest, votes: int) -> TeacherEntry:
    """A teacher in the task; what queriers seal their rows to is its sealing key."""
    assert request.sealing_key is not None, "a teacher's request has one"
    return TeacherEntry(
        name=request.name,
        signing_key=request.signing_key,
        row_key=request.sealing_key,
        votes=votes,
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
