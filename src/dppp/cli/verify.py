"""`dppp verify`: check a release from its transcript alone."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dppp.cli.files import read_bytes
from dppp.cli.output import JsonOption, emit

if TYPE_CHECKING:
    from dppp.protocol.transcript import Verified


def verify(
    transcript: Annotated[Path, typer.Argument(help="A transcript file.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Replay a transcript: signatures, proofs, product, opening, labels."""
    from dppp.protocol.transcript import verify_transcript  # noqa: PLC0415

    verified = verify_transcript(read_bytes(transcript))
    task = verified.task
    result = {
        "verified": True,
        "checks": list(verified.checks),
        "task": task.name,
        "task_id": task.task_id.hex(),
        "teachers": len(task.teachers),
        "ballots": verified.ballots,
        "queries": len(verified.answers),
        "labels": [_label(verified, each.label) for each in verified.answers],
        "counts": [list(each.counts) for each in verified.answers],
        "epsilon": task.epsilon,
        "delta": task.delta,
    }
    emit(result, as_json=as_json, show=lambda console: _show(console, verified))


def _label(verified: "Verified", label: int | None) -> str | None:
    return None if label is None else verified.task.class_names[label]


def _show(console: Console, verified: "Verified") -> None:
    task = verified.task
    for check in verified.checks:
        console.print(f"[green]✓[/] {check}")
    console.print(
        f"{verified.ballots} of {len(task.teachers)} teachers voted on {len(verified.answers):,} "
        f"queries of task {task.name!r} (ε = {task.epsilon:g}, δ = {task.delta:g} in total over "
        f"{task.queries:,} queries)."
    )
    tally = Counter(_label(verified, each.label) or "abstained" for each in verified.answers)
    for name, count in tally.most_common():
        console.print(f"{count:>8,}  {name}")
