"""`dppp verify`: check a release by its receipt or transcript, and by the id of the task."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dppp.cli.options import JsonOption
from dppp.cli.terminal import emit
from dppp.errors import InputError
from dppp.service.stores.new_files import read_file

if TYPE_CHECKING:
    from dppp.protocol.messages import TaskId
    from dppp.protocol.receipt import Verified


def verify(
    release: Annotated[Path, typer.Argument(help="A receipt or a transcript.")],
    *,
    task_id: Annotated[
        str | None,
        typer.Option("--task", help="The task's id, as a teacher told you (`dppp federation`)."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a release: endorsements, opening and labels; in a transcript every ballot too."""
    from dppp.protocol.transcript import verify_release  # noqa: PLC0415

    expected = None if task_id is None else read_task_id(task_id)
    verified = verify_release(read_file(release), expected_task=expected)
    task = verified.task
    result = {
        "verified": True,
        "checks": list(verified.checks),
        "task": task.name,
        "task_id": task.task_id.hex(),
        "cryptosystem": task.cryptosystem,
        "are_sums_checked": _are_sums_checked(verified),
        "is_task_expected": expected is not None,
        "teachers": len(task.teachers),
        "ballots": verified.ballots,
        "endorsements": len(verified.endorsers),
        "flagged": [each.is_flagged for each in verified.answers],
        "queries": len(verified.answers),
        "labels": [_label(verified, each.label) for each in verified.answers],
        "counts": [list(each.counts) for each in verified.answers],
        "epsilon": task.epsilon,
        "delta": task.delta,
    }
    emit(result, as_json=as_json, show=lambda console: _show(console, verified, expected))


def read_task_id(text: str) -> "TaskId":
    """A task's id as people type it."""
    from dppp.hashing import HASH_BYTES  # noqa: PLC0415
    from dppp.protocol.messages import TaskId  # noqa: PLC0415

    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != HASH_BYTES:
        raise InputError("a task's id has 64 hexadecimal digits", hint="copy all of it")
    return TaskId(found)


def _are_sums_checked(verified: "Verified") -> bool:
    """Whether the sums are known to be those of the list that the teachers endorsed.

    Under paillier the endorsements are over the sums too. Under masks no teacher sees them, and
    only the ballots of a transcript show it.
    """
    return verified.task.cryptosystem == "paillier" or "ballots" in verified.checks


def _label(verified: "Verified", label: int | None) -> str | None:
    return None if label is None else verified.task.class_names[label]


def _show(console: Console, verified: "Verified", expected: "TaskId | None") -> None:
    task = verified.task
    for check in verified.checks:
        console.print(f"[green]✓[/] {check}")
    console.print(
        f"{verified.ballots} of {len(task.teachers)} teachers voted on {len(verified.answers):,} "
        f"queries of task {escape(repr(task.name))} (ε = {task.epsilon:g}, δ = {task.delta:g} in "
        f"total over {task.queries:,} queries). {len(verified.endorsers)} of them endorsed this "
        f"list of ballots and no other. Ballots were sealed by {task.cryptosystem}."
    )
    if not _are_sums_checked(verified):
        console.print(
            "Under masks the sums in a receipt are the aggregator's word: that they are the sums "
            "of this list shows only in the transcript. Have an auditor verify that.",
            style="yellow",
            soft_wrap=True,
        )
    if flagged := sum(each.is_flagged for each in verified.answers):
        console.print(
            f"{flagged:,} answers have counts that votes and noise hardly ever give: a teacher may "
            "have cast more than a vote.",
            style="red",
        )
    tally = Counter(_label(verified, each.label) or "abstained" for each in verified.answers)
    for name, count in tally.most_common():
        console.print(f"{count:>8,}  {escape(name)}")
    console.print(f"Task {task.task_id.hex()}", soft_wrap=True, highlight=False)
    if expected is None:
        console.print(
            "Whether that is the task you know of was not checked, and whoever makes a receipt "
            "can make up its teachers: compare the id with a teacher's, and give it as --task.",
            style="yellow",
            soft_wrap=True,
        )
