"""What every home is looked at for: files, keys, federation, certificates, clock, versions."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import httpx

from dppp import __version__
from dppp.errors import FederationError, InputError
from dppp.protocol.wire import VERSION as WIRE_VERSION
from dppp.service.ceremony.authority import require_valid
from dppp.service.ceremony.change import find_member
from dppp.service.ceremony.configurations import CONFIGURATIONS
from dppp.service.ceremony.federation_file import FederationFile, read_federation, read_hash
from dppp.service.ceremony.home import (
    FEDERATION,
    NATS_SEED,
    SEALING_KEY,
    SHARE,
    SIGNING_KEY,
    TLS_KEY,
    Home,
)
from dppp.service.ceremony.identity import Role
from dppp.service.doctor.finding import Finding, failed, good, skipped, warning
from dppp.service.process.config import AggregatorConfig, TeacherConfig, read_config
from dppp.service.process.tls_certificate_watch import WARNING_SECONDS

_SECRETS = (SIGNING_KEY, SEALING_KEY, NATS_SEED, TLS_KEY, SHARE)
_PACKAGES = ("cryptography", "msgpack", "nats-py", "numpy", "pydantic", "scipy", "sqlalchemy")
_MOST_SECONDS_OFF = 120
_LEAST_FREE = 100 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """A home, its role, and its configuration where it has one of ours."""

    home: Home
    role: Role
    path: Path
    config: TeacherConfig | AggregatorConfig | None

    @property
    def federation(self) -> FederationFile:
        """The federation that is configured; of a broker the file in its home."""
        if self.config is None:
            return read_federation(self.home.folder / FEDERATION, None)
        return read_federation(self.config.federation, read_hash(self.config.federation_hash))


def admit(path: Path) -> Patient:
    """The home at a path, which may be its configuration."""
    if not path.exists():
        raise InputError(f"there is no {path}", hint="name a home or its configuration")
    folder = path if path.is_dir() else path.parent
    role = Home(folder=folder).request().role
    file = path if path.is_file() else folder / CONFIGURATIONS[role]
    if not file.is_file():
        raise InputError(f"there is no {file}", hint="run `dppp setup` first, or name the file")
    if role is Role.BROKER:
        return Patient(home=Home(folder=folder), role=role, path=file, config=None)
    config: TeacherConfig | AggregatorConfig
    if role is Role.TEACHER:
        config = read_config(file, TeacherConfig)
    else:
        config = read_config(file, AggregatorConfig)
    return Patient(home=Home(folder=config.home), role=role, path=file, config=config)


def check_versions() -> Iterator[Finding]:
    """What runs here: to be compared with the others."""
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            yield failed("versions", f"{name} is missing", "install dppp with the extra `service`")
    python = platform.python_version()
    ours = f"dppp {__version__}, wire format {WIRE_VERSION}, Python {python}"
    yield good("versions", f"{ours}, {', '.join(found)}")


def check_files(patient: Patient) -> Iterator[Finding]:
    """Who may read and write what is secret."""
    folder = patient.home.folder
    wrong = list(_open_files(folder))
    yield from wrong
    if not wrong:
        yield good("files", f"{folder}: secrets are for their owner only")


def _open_files(folder: Path) -> Iterator[Finding]:
    for name in _SECRETS:
        path = folder / name
        if path.exists() and path.stat().st_mode & 0o077:
            yield failed("files", f"others can read {path}", f"run: chmod 600 {path}")
        elif path.exists() and not os.access(path, os.R_OK):
            yield failed("files", f"this user cannot read {path}", "run this as its owner")
    if folder.stat().st_mode & 0o022:
        yield failed("files", f"others can write to {folder}", f"run: chmod go-w {folder}")


def check_federation(patient: Patient) -> Iterator[Finding]:
    """The file is the one that was agreed on, and this home is in it with its keys."""
    federation, request = patient.federation, patient.home.request()
    member = find_member(federation, request.name)
    own = patient.home.signing_key().public_key().public_bytes_raw()
    if member is None or member.signing_key != own or member.identity.role is not patient.role:
        raise FederationError(
            f"{request.name} is not in the federation with the keys of this home",
            hint="set the home up again with the federation file whose hash was compared",
        )
    if patient.role is not Role.BROKER:
        patient.home.nats_seed()
    if patient.role is Role.TEACHER:
        patient.home.sealing_key()
    task = federation.task
    yield good("federation", f"{task.name}, {patient.role} {request.name}, {federation.hash.hex()}")


def check_certificates(patient: Patient) -> Iterator[Finding]:
    """When the ways to the broker end."""
    now = datetime.now(UTC)
    end = require_valid(patient.home.tls_certificate(), str(patient.home.folder), now=now)
    if patient.home.tls_certificate().public_key() != patient.home.tls_key().public_key():
        raise FederationError(
            "tls.pem is not for tls.key", hint="type `dppp renew install` again, or restore both"
        )
    authority = patient.federation.authority_end
    for what, until, remedy in (
        ("the TLS certificate", end, "dppp renew request"),
        ("the authority", authority, "agree on a new federation before it ends"),
    ):
        said = f"{what} ends on {until:%Y-%m-%d}"
        if (until - now).total_seconds() < WARNING_SECONDS:
            yield warning("certificates", said, remedy)
        else:
            yield good("certificates", said)


def check_clock(patient: Patient, gateway: str | None) -> Iterator[Finding]:
    """Against the aggregator's gateway, and never before what was signed."""
    start = patient.home.tls_certificate().not_valid_before_utc
    now = datetime.now(UTC)
    if now < start:
        yield failed("clock", f"it is {now:%Y-%m-%d %H:%M} UTC here, too early", "set the clock")
        return
    if gateway is None:
        yield skipped(
            "clock",
            f"it is {now:%Y-%m-%d %H:%M:%S} UTC here; a broker does not say what time it is there",
            "give --gateway with the aggregator's address to compare, or look at NTP",
        )
        return
    try:
        said = httpx.head(f"{gateway.rstrip('/')}/health", timeout=10).headers["date"]
        theirs = parsedate_to_datetime(said)
    except (httpx.HTTPError, httpx.InvalidURL, KeyError, ValueError) as error:
        yield failed(
            "clock", f"{gateway} does not say what time it is ({error})", "check the address"
        )
        return
    off = (datetime.now(UTC) - theirs).total_seconds()
    if abs(off) > _MOST_SECONDS_OFF:
        yield failed("clock", f"{off:+.0f} s against {gateway}", "set the clock (NTP)")
    else:
        yield good("clock", f"within {_MOST_SECONDS_OFF} s of {gateway}")


def check_disk(what: str, folder: Path) -> Iterator[Finding]:
    """Room for what must be stored before anything is sent."""
    if not os.access(folder, os.W_OK):
        yield failed("disk", f"{what}: this user cannot write to {folder}", "run as its owner")
        return
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    said = f"{what}: {free // 2**20:,} MB free in {folder}"
    if free < _LEAST_FREE:
        yield failed("disk", said, "make room: a full disk stops answers")
    else:
        yield good("disk", said)
