"""The coordinator's folder: terms, authority, and the join requests that came in."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from dppp.errors import FederationError, InputError
from dppp.service.ceremony.authority import Authority
from dppp.service.ceremony.home import AUTHORITY, pem_of
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.parcel import read_requests_in
from dppp.service.ceremony.terms import TERMS, Terms
from dppp.service.stores.new_files import (
    PUBLIC,
    NewFile,
    read_file,
    refuse_to_overwrite,
    write_new_files,
)

AUTHORITY_KEY = "authority.key"
REQUESTS = "requests"


def init_federation(folder: Path, terms: Terms, *, now: datetime | None = None) -> None:
    """Begin a federation: its terms, and the certificate authority of its broker."""
    refuse_to_overwrite(folder, [REQUESTS])
    authority = Authority.make(terms.name, now=now or datetime.now(UTC))
    write_new_files(
        folder,
        [
            NewFile(name=AUTHORITY_KEY, data=pem_of(authority.key)),
            NewFile(name=AUTHORITY, data=authority.pem.encode("ascii"), mode=PUBLIC),
            NewFile(name=TERMS, data=terms.to_toml().encode("utf-8"), mode=PUBLIC),
        ],
    )
    (folder / REQUESTS).mkdir()


def collect(folder: Path, requests: Sequence[JoinRequest]) -> None:
    """Keep join requests, all of them or none; the same one again changes nothing."""
    if not (folder / REQUESTS).is_dir():
        raise InputError(
            f"{folder} is not a coordinator's folder", hint="make one with `dppp init`"
        )
    kept = read_requests(folder)
    new = [request for request in dict.fromkeys(requests) if request not in kept]
    require_compatible([*kept, *new])
    write_new_files(
        folder / REQUESTS,
        [
            NewFile(name=f"{request.fingerprint}.json", data=request.to_bytes(), mode=PUBLIC)
            for request in new
        ],
    )


def read_requests(folder: Path) -> tuple[JoinRequest, ...]:
    """All requests that were collected, teachers first, by name: everybody derives this order."""
    found = [read_request(path) for path in sorted((folder / REQUESTS).glob("*.json"))]
    roles = list(Role)
    return tuple(sorted(found, key=lambda each: (roles.index(each.role), each.name)))


def require_compatible(requests: Sequence[JoinRequest]) -> None:
    """Refuse two of one name or key, and a second aggregator or broker."""
    for what in ("name", "signing_key", "sealing_key", "nkey"):
        seen: dict[object, JoinRequest] = {}
        for request in requests:
            value = getattr(request, what)
            if value is not None and value in seen:
                raise FederationError(
                    f"{seen[value].name!r} ({seen[value].fingerprint}) and {request.name!r} "
                    f"({request.fingerprint}) have the same {what.replace('_', ' ')}",
                    hint=f"keep the right one in {REQUESTS}/ and remove the other",
                )
            seen[value] = request
    for role in (Role.AGGREGATOR, Role.BROKER):
        names = [request.name for request in requests if request.role is role]
        if len(names) > 1:
            raise FederationError(
                f"a federation has one {role}, not {' and '.join(map(repr, names))}",
                hint=f"keep one in {REQUESTS}/",
            )


def read_authority(folder: Path) -> Authority:
    """The authority that `init_federation` made."""
    return Authority.from_pem(read_file(folder / AUTHORITY_KEY), read_file(folder / AUTHORITY))


def read_requests_of(path: Path) -> tuple[JoinRequest, ...]:
    """The join requests in a file of one organisation: one, or a parcel of several."""
    try:
        return read_requests_in(read_file(path))
    except FederationError as error:
        raise FederationError(f"{path}: {error.message}", hint=error.hint) from error


def read_request(path: Path) -> JoinRequest:
    """The join request in a file; what is wrong with it names the file."""
    try:
        return JoinRequest.from_bytes(read_file(path))
    except FederationError as error:
        raise FederationError(f"{path}: {error.message}", hint=error.hint) from error
