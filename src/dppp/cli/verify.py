"""`dppp verify`: check a release from its transcript, and from the id of the task."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dppp.cli.files import read_bytes
from dppp.cli.output import JsonOption, emit
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.protocol.messages import TaskId
    from dppp.protocol.transcript import Verified


def verify(
    transcript: Annotated[Path, typer.Argument(help="A transcript file.")],
    *,
    task_id: Annotated[
        str | None,
        typer.Option("--task", help="The task's id, as a teacher told you (`dppp federation`)."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Replay a transcript: signatures, proofs, product, opening, labels."""
    from dppp.protocol.transcript import verify_transcript  # noqa: PLC0415

    expected = None if task_id is None else _read_task_id(task_id)
    verified = verify_transcript(read_bytes(transcript), expected_task=expected)
    task = verified.task
    result = {
        "verified": True,
        "checks": list(verified.checks),
        "task": task.name,
        "task_id": task.task_id.hex(),
        "is_task_expected": expected is not None,
        "teachers": len(task.teachers),
        "ballots": verified.ballots,
        "queries": len(verified.answers),
        "labels": [_label(verified, each.label) for each in verified.answers],
        "counts": [list(each.counts) for each in verified.answers],
        "epsilon": task.epsilon,
        "delta": task.delta,
    }
    emit(result, as_json=as_json, show=lambda console: _show(console, verified, expected))


def _read_task_id(text: str) -> "TaskId":
    from dppp.protocol.messages import HASH_BYTES, TaskId  # noqa: PLC0415

    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != HASH_BYTES:
        raise InputError("a task's id has 64 hexadecimal digits; copy all of it")
    return TaskId(found)


def _label(verified: "Verified", label: int | None) -> str | None:
    return None if label is None else verified.task.class_names[label]


def _show(console: Console, verified: "Verified", expected: "TaskId | None") -> None:
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
    console.print(f"Task {task.task_id.hex()}", soft_wrap=True, highlight=False)
    if expected is None:
        console.print(
            "Whether that is the task you know of was not checked, and whoever makes a transcript "
            "can make up its teachers: compare the id with a teacher's, and give it as --task.",
            style="yellow",
            soft_wrap=True,
        )
