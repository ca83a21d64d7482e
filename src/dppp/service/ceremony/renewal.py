"""New TLS certificates for a federation that goes on; of all keys only the one for TLS changes.

TLS certificates end, and the federation file, whose hash is in every configuration, holds those
that were dealt. A renewal leaves that file alone and changes two files of a home, tls.key and
tls.pem. The organisation asks with its old identity (`request_renewal`), the coordinator signs
(`sign_renewals`), and the organisation takes it in (`install_renewal`): the way of a join request.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from dppp.errors import FederationError, InputError
from dppp.service.ceremony.assembling import plain_names
from dppp.service.ceremony.authority import (
    LIFETIME,
    make_tls_key,
    make_tls_request,
    read_tls_certificate,
    require_tls_certificate,
    require_tls_request,
    require_valid,
)
from dppp.service.ceremony.coordinator import read_authority, read_requests
from dppp.service.ceremony.home import (
    AUTHORITY,
    NEXT_TLS_KEY,
    RENEWAL,
    TLS_CERTIFICATE,
    TLS_KEY,
    Home,
    pem_of,
)
from dppp.service.ceremony.join_request import JoinRequest, sign_request
from dppp.service.stores.new_files import PUBLIC, NewFile, read_file, sync_folder, write_new_files

_NEXT_TLS_CERTIFICATE = "tls.pem.next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """A TLS certificate that the coordinator issued again, and its file."""

    request: JoinRequest
    file: str
    valid_until: datetime


def request_renewal(home: Home) -> JoinRequest:
    """Organisation: a new TLS key, which waits in the home, and the request to certify it.

    Asked again it is the same request, until its TLS certificate is installed.
    """
    if (home.folder / RENEWAL).exists():
        return _waiting(home)
    joined = home.request()
    key = make_tls_key()
    request = sign_request(
        home.signing_key(),
        identity=joined.identity,
        sealing_key=joined.sealing_key,
        tls_request=make_tls_request(key, joined.identity),
        records=joined.records,
    )
    files = [
        NewFile(name=NEXT_TLS_KEY, data=pem_of(key)),
        NewFile(name=RENEWAL, data=request.to_bytes(), mode=PUBLIC),
    ]
    write_new_files(home.folder, files)
    return request


def sign_renewals(
    folder: Path,
    requests: Sequence[JoinRequest],
    out: Path,
    *,
    now: datetime | None = None,
    lifetime: timedelta = LIFETIME,
) -> tuple[Renewed, ...]:
    """Coordinator: TLS certificates for those who joined and changed nothing but their TLS key."""
    authority, joined = read_authority(folder), read_requests(folder)
    for request in requests:
        _require_joined(request, joined)
    tls_certificates = [
        authority.issue(
            request.tls_request,
            request.identity,
            now=now or datetime.now(UTC),
            lifetime=lifetime,
        )
        for request in requests
    ]
    names = [f"{name}.pem" for name in plain_names([each.name for each in requests], "member")]
    files = [
        NewFile(name=name, data=tls_certificate.encode("ascii"), mode=PUBLIC)
        for name, tls_certificate in zip(names, tls_certificates, strict=True)
    ]
    write_new_files(out, files)
    return tuple(
        Renewed(request=request, file=name, valid_until=_end(tls_certificate))
        for request, name, tls_certificate in zip(requests, names, tls_certificates, strict=True)
    )


def install_renewal(home: Home, text: str, *, now: datetime | None = None) -> datetime:
    """Organisation: put the new key and its TLS certificate in the place of the old; when it ends.

    Nothing is changed unless all checks pass. Stopped between the two files, which then do not
    belong together, the same call again finishes it.
    """
    request = home.request()
    authority = read_file(home.folder / AUTHORITY).decode("ascii", "replace")
    tls_certificate = require_tls_certificate(text, request.identity, authority)
    valid_until = require_valid(tls_certificate, request.name, now=now or datetime.now(UTC))
    has_next_key = _has_next_key(home, tls_certificate)
    (home.folder / _NEXT_TLS_CERTIFICATE).unlink(missing_ok=True)
    new = NewFile(name=_NEXT_TLS_CERTIFICATE, data=text.encode("ascii"), mode=PUBLIC)
    write_new_files(home.folder, [new])
    try:
        if has_next_key:
            os.replace(home.folder / NEXT_TLS_KEY, home.folder / TLS_KEY)
        os.replace(home.folder / _NEXT_TLS_CERTIFICATE, home.folder / TLS_CERTIFICATE)
        (home.folder / RENEWAL).unlink(missing_ok=True)
        sync_folder(home.folder)
    except OSError as error:
        raise InputError(
            f"cannot write to {home.folder}: {error.strerror}", hint="make room and run this again"
        ) from error
    return valid_until


def _waiting(home: Home) -> JoinRequest:
    request = JoinRequest.from_bytes(read_file(home.folder / RENEWAL))
    key = require_tls_request(request.tls_request, request.identity)
    path = home.folder / NEXT_TLS_KEY
    if not path.exists() or home.tls_key(NEXT_TLS_KEY).public_key() != key:
        raise FederationError(
            f"{RENEWAL} in {home.folder} is not for the key in {NEXT_TLS_KEY}",
            hint="remove both and run this again",
        )
    return request


def _require_joined(request: JoinRequest, joined: Sequence[JoinRequest]) -> None:
    """The same member with the same keys, but for the one for TLS."""
    found = [each for each in joined if each.identity == request.identity]
    keys = (request.signing_key, request.sealing_key)
    if not found or keys != (found[0].signing_key, found[0].sealing_key):
        raise FederationError(
            f"nobody joined this federation as {request.role} {request.name!r} with the keys of "
            f"this request ({request.fingerprint}), and a renewal keeps all keys but the one for "
            "TLS",
            hint="ask for it again, from the home that joined",
        )
    if request.tls_request == found[0].tls_request:
        raise FederationError(
            f"this is the request by which {request.name!r} joined",
            hint="ask for the one that `dppp renew request` makes",
        )


def _has_next_key(home: Home, tls_certificate: x509.Certificate) -> bool:
    """Whether the TLS certificate is for the key that waits; False if for the one in use."""
    key = tls_certificate.public_key()
    if (home.folder / NEXT_TLS_KEY).exists():
        if home.tls_key(NEXT_TLS_KEY).public_key() == key:
            return True
    elif home.tls_key().public_key() == key:
        return False
    raise FederationError(
        "this TLS certificate is for another key than the one that waits in "
        f"{home.folder / NEXT_TLS_KEY}",
        hint=(
            "install the one that was signed for the last request, or ask again with `dppp renew "
            "request`"
        ),
    )


def _end(tls_certificate: str) -> datetime:
    return read_tls_certificate(tls_certificate).not_valid_after_utc
