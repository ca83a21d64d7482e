"""All checks of one home, in the order in which one depends on another."""

from collections.abc import Iterator
from pathlib import Path

from dppp.service.ceremony.identity import Role
from dppp.service.doctor.finding import Finding, run_check
from dppp.service.doctor.home_checks import (
    admit,
    check_certificates,
    check_clock,
    check_federation,
    check_files,
    check_versions,
)
from dppp.service.doctor.party_checks import (
    check_broker,
    check_ledger,
    check_model,
    check_secrets,
    check_server,
    check_store,
)


def examine(path: Path, *, gateway: str | None = None) -> Iterator[Finding]:
    """What is found in the home or by the configuration at a path, check by check."""
    patient = admit(path)
    yield from run_check("versions", check_versions)
    yield from run_check("files", lambda: check_files(patient))
    yield from run_check("federation", lambda: check_federation(patient))
    yield from run_check("certificates", lambda: check_certificates(patient))
    yield from run_check("clock", lambda: check_clock(patient, gateway))
    match patient.role:
        case Role.BROKER:
            yield from run_check("server", lambda: check_server(patient))
        case Role.AGGREGATOR:
            yield from run_check("store", lambda: check_store(patient))
            yield from run_check("broker", lambda: check_broker(patient))
        case Role.TEACHER:
            yield from run_check("ledger", lambda: check_ledger(patient))
            yield from run_check("secrets", lambda: check_secrets(patient))
            yield from run_check("model", lambda: check_model(patient))
            yield from run_check("broker", lambda: check_broker(patient))
