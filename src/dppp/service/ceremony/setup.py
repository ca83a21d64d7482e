"""`dppp setup`: an organisation takes what the dealer sent into its home, after checking it.

Nothing is written unless the federation file is the one whose hash was compared, stands beside the
own name with the own keys, and the share opens and belongs to the key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dppp.errors import FederationError, InputError
from dppp.service.ceremony.authority import read_certificate, require_certificate, require_valid
from dppp.service.ceremony.broker_config import DEFAULT_LISTEN, broker_configuration
from dppp.service.ceremony.config_templates import (
    EXAMPLE_MODEL,
    aggregator_configuration,
    default_servers,
    teacher_configuration,
)
from dppp.service.ceremony.federation_file import (
    FederationFile,
    Member,
    NonVotingMember,
    require_hash,
)
from dppp.service.ceremony.home import AUTHORITY, CERTIFICATE, FEDERATION, SHARE, TLS_KEY, Home
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.stores.locations import LedgerFiles, default_ledger_files
from dppp.service.stores.new_files import PUBLIC, NewFile, read_file, write_new_files

CONFIGURATIONS = {
    Role.TEACHER: "teacher.toml",
    Role.AGGREGATOR: "aggregator.toml",
    Role.BROKER: "nats.conf",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """What was checked, and where the configuration is."""

    role: Role
    name: str
    index: int | None
    federation: FederationFile
    configuration: Path
    checked: tuple[str, ...]
    valid_until: datetime
    ledger: LedgerFiles | None
    """A teacher's, as it stands in the configuration."""


def set_up(
    home: Home,
    federation: FederationFile,
    expected_hash: bytes,
    *,
    share: bytes | None = None,
    servers: Sequence[str] = (),
    listen: str = DEFAULT_LISTEN,
    model: str = EXAMPLE_MODEL,
    ledger: LedgerFiles | None = None,
    now: datetime | None = None,
) -> SetUp:
    """Check everything, then write all that this organisation needs to run.

    `servers` are the broker's addresses (its hosts on the usual port where none are given),
    `listen` is where the broker itself listens, `model` is the table of teacher.toml, `ledger` is
    where a teacher counts (this user's only ledger where nothing is given), seen from its home.
    """
    require_hash(federation, expected_hash)
    request = home.request()
    entry = _require_own_entry(home, request, federation)
    certificate = _require_certificate(home, entry, federation)
    valid_until = require_valid(
        read_certificate(certificate), request.name, now=now or datetime.now(UTC)
    )
    checked = [
        "the federation hash is the one that was compared",
        f"{request.name} stands in it with the keys of this home",
    ]
    files = [
        NewFile(name=FEDERATION, data=federation.to_bytes(), mode=PUBLIC),
        NewFile(name=AUTHORITY, data=federation.authority.encode("ascii"), mode=PUBLIC),
    ]
    if not (home.folder / CERTIFICATE).exists():
        files.append(NewFile(name=CERTIFICATE, data=certificate.encode("ascii"), mode=PUBLIC))
    if request.role is Role.TEACHER:
        files.append(NewFile(name=SHARE, data=_require_share(home, federation, share)))
        checked.append(
            "the share opens with the sealing key of this home and belongs to the public key"
        )
    elif share is not None:
        raise InputError(f"{request.name} is no teacher and has no share; leave out --share")
    place: LedgerFiles | None = None
    addresses = tuple(servers) or default_servers(federation)
    match request.role:
        case Role.TEACHER:
            place = ledger or _default_ledger()
            text = teacher_configuration(federation, addresses, place, model)
        case Role.AGGREGATOR:
            text = aggregator_configuration(federation, addresses)
        case Role.BROKER:
            text = broker_configuration(federation, folder=home.folder, listen=listen)
    configuration = CONFIGURATIONS[request.role]
    files.append(NewFile(name=configuration, data=text.encode("utf-8")))
    write_new_files(home.folder, files)
    return SetUp(
        role=request.role,
        name=request.name,
        index=federation.index_of(request.name) if request.role is Role.TEACHER else None,
        federation=federation,
        configuration=home.folder / configuration,
        checked=tuple(checked),
        valid_until=valid_until,
        ledger=None if place is None else _seen_from(home.folder, place),
    )


def _default_ledger() -> LedgerFiles:
    """The only ledger of this user, with folders for it that nobody else can read.

    Elsewhere folders are not made: one would stand in for a disk that is not mounted.
    """
    place = default_ledger_files()
    for folder in (place.path.parent, place.head.parent):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot make {folder} for the ledger: {error.strerror}; give --ledger and --head"
            ) from error
    return place


def _seen_from(folder: Path, place: LedgerFiles) -> LedgerFiles:
    return LedgerFiles(path=folder / place.path, head=folder / place.head)


def _require_own_entry(
    home: Home, request: JoinRequest, federation: FederationFile
) -> Member | NonVotingMember:
    """The entry under the own name and role; every key in it is the own one."""
    found = [entry for entry in federation.everybody if entry.identity == request.identity]
    own = home.signing_key().public_key().public_bytes_raw()
    if not found or not request.signing_key == found[0].signing_key == own:
        raise FederationError(
            f"the federation does not have {request.name!r} as {request.role} with the keys of "
            f"this home; send {home.folder / 'join-request.json'} to the coordinator again"
        )
    entry = found[0]
    if isinstance(entry, Member) and entry.sealing_key != request.sealing_key:
        raise FederationError(
            "the share would be sealed to another key than this home's; tell the others, and use "
            "nothing of this federation file"
        )
    return entry


def _require_certificate(
    home: Home, entry: Member | NonVotingMember, federation: FederationFile
) -> str:
    """The certificate for the own TLS key: that of the file, or a renewed one in the home."""
    renewed = home.folder / CERTIFICATE
    text = entry.certificate
    if renewed.exists():
        text = read_file(renewed).decode("ascii", "replace")
        require_certificate(text, entry.identity, federation.authority)
    if read_certificate(text).public_key() != home.tls_key().public_key():
        raise FederationError(
            "the certificate is for another TLS key than this home's; if it was renewed, put "
            f"{CERTIFICATE} beside {TLS_KEY}, otherwise tell the others, and use nothing of this "
            "federation file"
        )
    return text


def _require_share(home: Home, federation: FederationFile, share: bytes | None) -> bytes:
    if share is None:
        raise InputError("a teacher needs its share; give --share with the file from the dealer")
    home.open_share(share, federation)
    return share
