"""`dppp setup`: an organisation takes what it was sent into its home, after checking it.

Nothing is written unless the federation file is the one whose hash was compared and names this
organisation with the keys of its home. Under paillier a teacher also has a share from the dealer,
which must open and belong to the key. Under masks there is none: the teacher makes its keys itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dppp.errors import FederationError, InputError
from dppp.service.ceremony.authority import (
    read_tls_certificate,
    require_tls_certificate,
    require_valid,
)
from dppp.service.ceremony.configurations import (
    CONFIGURATIONS,
    DEFAULT_LISTEN,
    EXAMPLE_MODEL,
    aggregator_configuration,
    broker_configuration,
    default_servers,
    folder_model,
    teacher_configuration,
)
from dppp.service.ceremony.federation_file import (
    FederationFile,
    Member,
    NonVotingMember,
    require_hash,
)
from dppp.service.ceremony.home import AUTHORITY, FEDERATION, SHARE, TLS_CERTIFICATE, TLS_KEY, Home
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.stores.locations import LedgerFiles, default_ledger_files
from dppp.service.stores.new_files import PUBLIC, NewFile, read_file, write_new_files


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
    """A teacher's, as in its configuration."""


def set_up(
    home: Home,
    federation: FederationFile,
    expected_hash: bytes,
    *,
    share: bytes | None = None,
    servers: Sequence[str] = (),
    listen: str = DEFAULT_LISTEN,
    model: str | None = None,
    ledger: LedgerFiles | None = None,
    carried: str | None = None,
    now: datetime | None = None,
) -> SetUp:
    """Check everything, then write all that this organisation needs to run.

    `servers` are the broker's addresses (its hosts on the usual port where none are given),
    `listen` is where the broker itself listens, `model` is the table of teacher.toml (an example
    where nothing is given), `ledger` is where a teacher counts (this user's only ledger where
    nothing is given), seen from its home.
    """
    require_hash(federation, expected_hash)
    request = home.request()
    entry = _require_own_entry(home, request, federation)
    tls_certificate = _require_tls_certificate(home, entry, federation)
    valid_until = require_valid(
        read_tls_certificate(tls_certificate), request.name, now=now or datetime.now(UTC)
    )
    files = _public_files(home, federation, tls_certificate)
    files += _share_files(home, request, federation, share)
    place = _ledger_place(request, ledger, carried)
    configuration = NewFile(
        name=CONFIGURATIONS[request.role],
        data=(
            carried
            or _configuration(
                home,
                request.role,
                federation,
                servers=tuple(servers) or default_servers(federation),
                listen=listen,
                model=model or _example_model(request, federation),
                ledger=place,
            )
        ).encode("utf-8"),
    )
    write_new_files(home.folder, [*files, configuration])
    return SetUp(
        role=request.role,
        name=request.name,
        index=federation.index_of(request.name) if request.role is Role.TEACHER else None,
        federation=federation,
        configuration=home.folder / configuration.name,
        checked=_checked(request, federation),
        valid_until=valid_until,
        ledger=None if place is None else _seen_from(home.folder, place),
    )


def _ledger_place(
    request: JoinRequest, given: LedgerFiles | None, carried: str | None
) -> LedgerFiles | None:
    """Where a teacher counts; None where its configuration was taken along and says so itself."""
    if request.role is not Role.TEACHER or carried is not None:
        return None
    return given or _default_ledger()


def _example_model(request: JoinRequest, federation: FederationFile) -> str:
    """A folder where this teacher casts several votes, else one model."""
    if request.role is not Role.TEACHER:
        return EXAMPLE_MODEL
    votes = federation.task.votes[federation.index_of(request.name) - 1]
    return folder_model(Path("models")) if votes > 1 else EXAMPLE_MODEL


def _checked(request: JoinRequest, federation: FederationFile) -> tuple[str, ...]:
    """What an operator reads afterwards."""
    of_everybody = (
        "the federation hash is the one that was compared",
        f"{request.name} is in it with the keys of this home",
    )
    if request.role is not Role.TEACHER or federation.public is None:
        return of_everybody
    return (
        *of_everybody,
        "the share opens with the sealing key of this home and belongs to the public key",
    )


def _configuration(
    home: Home,
    role: Role,
    federation: FederationFile,
    *,
    servers: Sequence[str],
    listen: str,
    model: str,
    ledger: LedgerFiles | None,
) -> str:
    match role:
        case Role.TEACHER:
            assert ledger is not None, "a teacher has one"
            return teacher_configuration(federation, servers, ledger, model)
        case Role.AGGREGATOR:
            return aggregator_configuration(federation, servers)
        case Role.BROKER:
            return broker_configuration(federation, folder=home.folder, listen=listen)


def _public_files(home: Home, federation: FederationFile, tls_certificate: str) -> list[NewFile]:
    """What everybody's home holds; a TLS certificate that was renewed stays."""
    files = [
        NewFile(name=FEDERATION, data=federation.to_bytes(), mode=PUBLIC),
        NewFile(name=AUTHORITY, data=federation.authority.encode("ascii"), mode=PUBLIC),
    ]
    if not (home.folder / TLS_CERTIFICATE).exists():
        data = tls_certificate.encode("ascii")
        files.append(NewFile(name=TLS_CERTIFICATE, data=data, mode=PUBLIC))
    return files


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
                f"cannot make {folder} for the ledger: {error.strerror}",
                hint="give --ledger and --head",
            ) from error
    return place


def _seen_from(folder: Path, place: LedgerFiles) -> LedgerFiles:
    return LedgerFiles(path=folder / place.path, head=folder / place.head)


def _require_own_entry(
    home: Home, request: JoinRequest, federation: FederationFile
) -> Member | NonVotingMember:
    """The entry under this organisation's name and role; every key in it is the home's."""
    found = [entry for entry in federation.everybody if entry.identity == request.identity]
    own = home.signing_key().public_key().public_bytes_raw()
    if not found or not request.signing_key == found[0].signing_key == own:
        raise FederationError(
            f"the federation does not have {request.name!r} as {request.role} with the keys of "
            "this home",
            hint=f"send {home.folder / 'join-request.json'} to the coordinator again",
        )
    entry = found[0]
    if isinstance(entry, Member) and entry.sealing_key != request.sealing_key:
        raise FederationError(
            "the federation has another sealing key of this teacher than this home's",
            hint="tell the others, and use nothing of this federation file",
        )
    return entry


def _require_tls_certificate(
    home: Home, entry: Member | NonVotingMember, federation: FederationFile
) -> str:
    """The TLS certificate for the home's key: that of the file, or a renewed one in the home."""
    renewed = home.folder / TLS_CERTIFICATE
    text = entry.tls_certificate
    if renewed.exists():
        text = read_file(renewed).decode("ascii", "replace")
        require_tls_certificate(text, entry.identity, federation.authority)
    if read_tls_certificate(text).public_key() != home.tls_key().public_key():
        raise FederationError(
            "the TLS certificate is for another key than this home's",
            hint=(
                f"if it was renewed, put {TLS_CERTIFICATE} beside {TLS_KEY}, otherwise tell the "
                "others, and use nothing of this federation file"
            ),
        )
    return text


def _share_files(
    home: Home, request: JoinRequest, federation: FederationFile, share: bytes | None
) -> list[NewFile]:
    """A teacher's share, if it opens and is its own; under masks nobody has one."""
    if federation.public is None:
        if share is not None:
            raise InputError(
                "a federation under masks has no key, and so no shares", hint="leave out --share"
            )
        return []
    if request.role is not Role.TEACHER:
        if share is not None:
            raise InputError(
                f"{request.name} is not a teacher and has no share", hint="leave out --share"
            )
        return []
    if share is None:
        raise InputError(
            "a teacher needs its share", hint="give --share with the file from the dealer"
        )
    home.open_share(share, federation)
    return [NewFile(name=SHARE, data=share)]
