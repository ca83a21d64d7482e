"""`dppp federation`: what a federation file says, for people and for programs."""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dppp.cli.optional_packages import require_service
from dppp.cli.options import JsonOption
from dppp.cli.terminal import emit, say
from dppp.learning.choosing_votes import votes_for_noise
from dppp.protocol.units import describe_unit

if TYPE_CHECKING:
    from dppp.protocol.columns import Column
    from dppp.protocol.task import Task
    from dppp.service.ceremony.federation_file import FederationFile


def federation(
    file: Annotated[Path, typer.Argument(help="A federation file.", show_default=False)],
    *,
    as_json: JsonOption = False,
) -> None:
    """Anybody: check a federation file; show what it says, its hash, and when certificates end."""
    require_service()
    from dppp.service.ceremony.federation_file import read_federation  # noqa: PLC0415
    from dppp.service.ceremony.home import TLS_CERTIFICATE, Home  # noqa: PLC0415

    found = read_federation(file, None)
    is_in_home = (file.parent / TLS_CERTIFICATE).exists()
    end = Home(folder=file.parent).tls_certificate().not_valid_after_utc if is_in_home else None
    result = _describe(found, end)
    emit(result, as_json=as_json, show=lambda console: show_federation(console, found, end))


def _describe(federation: "FederationFile", own_end: datetime | None) -> dict[str, object]:
    """For programs; `own_end` is that of the certificate beside the file."""
    task = federation.task
    return {
        "federation_hash": federation.hash.hex(),
        "task_id": task.task_id.hex(),
        "name": task.name,
        "data_id": task.data_id,
        "class_names": list(task.class_names),
        "question": asdict(task.question),
        "features": list(task.features),
        "columns": [{"name": column.name, **asdict(column.type)} for column in task.columns],
        "abstain_below": task.abstain_below,
        "unit": task.unit,
        "votes": list(task.votes),
        "members": [
            {"index": index, "name": member.name, "signing_key": member.signing_key.hex()}
            for index, member in enumerate(federation.teachers, start=1)
        ],
        "aggregator": federation.aggregator.name,
        "broker": federation.broker.name,
        "hosts": list(federation.broker.hosts),
        **_describe_cryptosystem(federation),
        "certificate": task.certificate.to_json(),
        "certificates_dealt_until": federation.tls_certificates_end.isoformat(),
        "authority_valid_until": federation.authority_end.isoformat(),
        "own_certificate_valid_until": None if own_end is None else own_end.isoformat(),
    }


def _describe_cryptosystem(federation: "FederationFile") -> dict[str, object]:
    """The ring under masks, the key under paillier; what the other one has is null."""
    masks, public = federation.task.masks, federation.public
    return {
        "cryptosystem": federation.task.cryptosystem,
        "ring_degree": None if masks is None else masks.degree,
        "ring_modulus_bits": None if masks is None else masks.modulus_bits,
        "security_bits": None if masks is None else masks.security_bits,
        "epoch_seconds": None if masks is None else masks.epoch_seconds,
        "key_id": None if public is None else public.key_id.hex(),
        "modulus_bits": None if public is None else public.modulus_bits,
        "s": None if public is None else public.s,
    }


def cryptosystem_line(federation: "FederationFile") -> str:
    """How ballots are sealed, and how well."""
    masks, public = federation.task.masks, federation.public
    if masks is not None:
        return (
            f"masks: ring of degree {masks.degree:,}, modulus of {masks.modulus_bits} bits, "
            f"{masks.security_bits} bits of security; sealing keys for "
            f"{masks.epoch_seconds / 3600:g} hours each; no dealer"
        )
    assert public is not None, "under paillier there is a key"
    size = f"{public.modulus_bits} bits, s = {public.s}, {public.key_id.hex()[:16]}…"
    return f"paillier: a key of {size}; whoever dealt it could read ballots"


_NAMES_OF = {"choice": "classes", "labels": "labels"}


def show_federation(
    console: Console, federation: "FederationFile", own_end: datetime | None
) -> None:
    """The same, a line each."""
    task = federation.task
    certificate, trust = task.certificate, task.trust
    kept = "kept" if certificate.certified else "BROKEN"
    if trust.colluders == 0:
        kept += ", but not against a teacher who sees the counts: it knows its own noise (C = 0)"
    delivered = certificate.exact_delta + certificate.sampling_delta
    lines = [
        ("federation hash", federation.hash.hex()),
        ("task", task.name),
        ("task id", task.task_id.hex()),
        ("data", task.data_id),
        ("question", task.question.describe(task.class_names)),
        *(
            []
            if task.question.kind == "number"
            else [(_NAMES_OF[task.question.kind], ", ".join(task.class_names))]
        ),
        ("features", _shortened(tuple(map(_feature_line, task.columns)))),
        ("promise", f"ε = {task.epsilon:g}, δ = {task.delta:g} over {task.queries:,} queries"),
        ("delivered", f"δ = {delivered:.6g}: the promise is {kept}"),
        ("unit", f"{task.unit}: {describe_unit(task.unit)}"),
        ("votes", votes_line(task)),
        ("noise", f"{task.noise.name}, variance {task.noise.variance:.6g} per count"),
        (
            "trust",
            f"{trust.teachers} teachers, {trust.colluders} may collude, {trust.dropouts} may "
            f"vanish; {trust.threshold} endorse a list before it is opened"
            + ("" if trust.survives_withholding else "; silent colluders can stop a batch"),
        ),
        ("cryptosystem", cryptosystem_line(federation)),
        *(
            (
                f"teacher {index}",
                f"{entry.name}, {entry.votes} vote{'' if entry.votes == 1 else 's'}",
            )
            for index, entry in enumerate(task.teachers, start=1)
        ),
        ("aggregator", federation.aggregator.name),
        ("broker", f"{federation.broker.name} at {', '.join(federation.broker.hosts)}"),
        (
            "certificates",
            f"as dealt valid until {federation.tls_certificates_end:%Y-%m-%d}, authority until "
            f"{federation.authority_end:%Y-%m-%d}",
        ),
    ]
    if own_end is not None:
        lines.append(("in this home", f"certificate valid until {own_end:%Y-%m-%d}"))
    say(console, *(f"{name:>15}  {value}" for name, value in lines))


def _feature_line(column: "Column") -> str:
    """A feature's name, and what it holds if that is not just a number."""
    if column.type.is_plain:
        return column.name
    values = f" of {len(column.type.values)}" if column.type.values else ""
    missing = ", may be missing" if column.type.may_be_missing else ""
    return f"{column.name} ({column.type.kind}{values}{missing})"


def _shortened(names: tuple[str, ...], most: int = 8) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} … ({len(names)} in all)"


def votes_line(task: "Task") -> str:
    """How many votes the teachers have."""
    low, high = min(task.votes), max(task.votes)
    each = f"{low}" if low == high else f"{low} to {high}"
    line = f"{each} of each teacher, {sum(task.votes)} in all"
    wanted = votes_for_noise(task.noise, task.trust.teachers)
    return line if sum(task.votes) >= wanted * len(task.votes) else f"{line} ({_few(wanted)})"


def _few(wanted: int) -> str:
    return f"few for this noise, which asks for {wanted} of each"
