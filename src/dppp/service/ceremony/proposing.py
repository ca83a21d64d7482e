"""The coordinator's part in a change of members: propose it, and collect who signed it.

A proposal is a new coordinator's folder beside the old one, with the same authority and the
requests of those who stay, so that the next renewal or change starts from it.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dppp.errors import FederationError, InputError
from dppp.privacy.certificate import Certificate, issue_certificate
from dppp.privacy.noise import in_shares
from dppp.service.ceremony.assembling import Joined
from dppp.service.ceremony.change import CHANGE, Change, SignedBy, find_member, read_change
from dppp.service.ceremony.change_letters import Consent, Rotation
from dppp.service.ceremony.coordinator import (
    AUTHORITY_KEY,
    REQUESTS,
    read_authority,
    read_requests,
)
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.home import AUTHORITY
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.terms import TERMS, Terms, read_terms
from dppp.service.stores.new_files import (
    PUBLIC,
    NewFile,
    read_file,
    refuse_to_overwrite,
    sync_folder,
    write_new_files,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a coordinator wants to change: who comes, with which keys, and who goes."""

    requests: tuple[JoinRequest, ...] = ()
    rotations: tuple[Rotation, ...] = ()
    removed: tuple[str, ...] = ()
    queries: int

    @property
    def newcomers(self) -> tuple[JoinRequest, ...]:
        """Everybody with new keys."""
        return (*self.requests, *(each.request for each in self.rotations))


def propose_change(
    folder: Path, old: FederationFile, wanted: Wanted, out: Path, *, now: datetime | None = None
) -> Change:
    """Coordinator: a new folder with the change in it, which nobody has signed yet."""
    refuse_to_overwrite(out, [CHANGE, REQUESTS])
    requests = _requests_after(read_requests(folder), old, wanted)
    joined = Joined(
        terms=_terms_after(read_terms(folder), wanted, requests),
        requests=requests,
        authority=read_authority(folder),
    )
    task = joined.agree(_same_noise(joined, old), succeeds=old.task.task_id)
    change = Change(
        old=old,
        new=joined.assemble(task, now=now or datetime.now(UTC)),
        rotations=_rotations(old, wanted.rotations),
    )
    files = [
        NewFile(name=AUTHORITY_KEY, data=read_file(folder / AUTHORITY_KEY)),
        NewFile(name=AUTHORITY, data=read_file(folder / AUTHORITY), mode=PUBLIC),
        NewFile(name=TERMS, data=joined.terms.to_toml().encode("utf-8"), mode=PUBLIC),
        NewFile(name=CHANGE, data=change.to_bytes(), mode=PUBLIC),
    ]
    write_new_files(out, files)
    kept = [
        NewFile(name=f"{each.fingerprint}.json", data=each.to_bytes(), mode=PUBLIC)
        for each in requests
    ]
    write_new_files(out / REQUESTS, kept)
    return change


def collect_consents(folder: Path, consents: Sequence[Consent]) -> Change:
    """Coordinator: the change with these signatures too; those of another change are refused."""
    change = read_change(folder / CHANGE)
    for each in consents:
        if each.federation_hash != change.new.hash:
            raise FederationError(
                f"{each.signed.name} signed another change than the one in {folder}",
                hint="compare the federation hash by telephone, and have this one signed",
            )
    signed = change.with_consents([each.signed for each in consents])
    _replace(folder / CHANGE, signed.to_bytes())
    return signed


def _requests_after(
    before: Sequence[JoinRequest], old: FederationFile, wanted: Wanted
) -> tuple[JoinRequest, ...]:
    """Of those who stay, and of those who come or come with new keys; in everybody's order."""
    members = {each.name: each for each in old.everybody}
    for request in before:
        member = members.get(request.name)
        if member is None or member.signing_key != request.signing_key:
            raise FederationError(
                f"the folder has a request of {request.name!r} that is not in the federation file",
                hint="give the federation file that was made from this folder",
            )
    strangers = [name for name in wanted.removed if name not in members]
    if strangers:
        raise InputError(
            f"there is no {strangers[0]!r} to remove in this federation",
            hint=f"its members are {', '.join(members)}",
        )
    gone = {*wanted.removed, *(each.name for each in wanted.newcomers)}
    found = [*(each for each in before if each.name not in gone), *wanted.newcomers]
    roles = list(Role)
    return tuple(sorted(found, key=lambda each: (roles.index(each.role), each.name)))


def _terms_after(terms: Terms, wanted: Wanted, requests: Sequence[JoinRequest]) -> Terms:
    """The same question; votes that were given to who goes are no longer given."""
    if terms.cryptosystem != "masks":
        raise InputError(
            "under paillier the key is dealt for its teachers, so they cannot change",
            hint="make a new federation",
        )
    names = {each.name for each in requests}
    own = {name: votes for name, votes in (terms.votes_of or {}).items() if name in names}
    return terms.model_copy(update={"queries": wanted.queries, "votes_of": own or None})


def _same_noise(joined: Joined, old: FederationFile) -> Certificate:
    """All the noise that the old task paid for, in the shares of the new teachers."""
    task, trust = old.task, joined.trust
    if joined.terms.queries > task.queries:
        raise InputError(
            f"the task that is succeeded paid for {task.queries} queries, and the change asks for "
            f"{joined.terms.queries}",
            hint="give --queries, at most what every teacher has left (`dppp ledger show`)",
        )
    promise = replace(task.promise, queries=joined.terms.queries)
    noise = in_shares(task.noise, trust.honest_shares)
    return issue_certificate(noise, promise, trust, calibration="exact")


def _rotations(old: FederationFile, rotations: Sequence[Rotation]) -> tuple[SignedBy, ...]:
    for each in rotations:
        if each.task_id != old.task.task_id:
            raise FederationError(
                f"{each.request.name!r} asked for new keys in another task than this one, so this "
                "is an old request or one of another federation",
                hint="ask it to run `dppp change rotate` in the home of this task",
            )
        if find_member(old, each.request.name) is None:
            raise FederationError(
                f"{each.request.name!r} is not in this federation, so it has no keys to rotate",
                hint="ask it for the request that `dppp join` makes",
            )
    signed = [
        SignedBy(name=each.request.name, signature=each.signature)
        for each in sorted(rotations, key=lambda each: each.request.name)
    ]
    return tuple(signed)


def _replace(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    write_new_files(path.parent, [NewFile(name=unfinished.name, data=data, mode=PUBLIC)])
    os.replace(unfinished, path)
    sync_folder(path.parent)
