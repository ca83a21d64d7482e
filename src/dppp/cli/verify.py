"""`dppp verify`: check a release by its receipt or transcript, and by the id of the task."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dppp.cli.options import JsonOption
from dppp.cli.terminal import emit
from dppp.errors import InputError
from dppp.service.stores.new_files import read_file

_FEW_ROWS = 20
"""Rows of a release that are named on the terminal."""

if TYPE_CHECKING:
    from dppp.protocol.messages import TaskId
    from dppp.protocol.receipt import Verified
    from dppp.protocol.release import Release


def verify(
    release: Annotated[Path, typer.Argument(help="A receipt or a transcript.")],
    *,
    task_id: Annotated[
        str | None,
        typer.Option("--task", help="The task's id, as a teacher told you (`dppp federation`)."),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(help="A CSV file with a header: say which of its rows this is about."),
    ] = None,
    row_key: Annotated[
        Path | None,
        typer.Option(help="With --rows: the file of row secrets that `dppp query` kept."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a release: endorsements, opening and labels; in a transcript every ballot too."""
    if (rows is None) != (row_key is None):
        raise InputError(
            "--rows and --row-key belong together: without the secret nobody can tell which rows "
            "a release is about",
            hint="give both, or neither",
        )
    from dppp.protocol.transcript import verify_release  # noqa: PLC0415

    expected = None if task_id is None else read_task_id(task_id)
    verified = verify_release(read_file(release), expected_task=expected)
    task = verified.task
    found = None if rows is None or row_key is None else find_rows(verified, rows, row_key)
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
        "question": task.question.kind,
        "labels": [_label(verified, each) for each in verified.answers],
        "values": [each.value for each in verified.answers],
        "counts": [list(each.counts) for each in verified.answers],
        "rows": found,
        "epsilon": task.epsilon,
        "delta": task.delta,
    }

    def show(console: Console) -> None:
        _show(console, verified, expected)
        if found is not None:
            _show_rows(console, verified, found)

    emit(result, as_json=as_json, show=show)


def find_rows(verified: "Verified", rows: Path, row_key: Path) -> list[int | None]:
    """The number of the row, from 1, that each query is about; None if it is about none of them."""
    from dppp.learning.cells import inputs_of  # noqa: PLC0415
    from dppp.learning.csv_table import read_table  # noqa: PLC0415
    from dppp.protocol.inputs import encode_rows  # noqa: PLC0415
    from dppp.protocol.messages import split_query_ids  # noqa: PLC0415
    from dppp.protocol.rows import query_ids_of  # noqa: PLC0415
    from dppp.service.querier.row_secrets import RowSecrets  # noqa: PLC0415

    task = verified.task
    encoded = encode_rows(inputs_of(read_table(rows), task.columns), task.columns)
    numbers: dict[bytes, int] = {}
    for key in RowSecrets(row_key, may_make=False).row_keys(task.task_id):
        query_ids = split_query_ids(query_ids_of(key, task.task_id, encoded))
        for number, query_id in enumerate(query_ids, start=1):
            numbers.setdefault(query_id, number)
    return [numbers.get(each) for each in verified.query_ids]


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


def _label(verified: "Verified", answer: "Release") -> str | list[str] | None:
    """The label of an answer, or its labels; None where there is neither."""
    names = verified.task.class_names
    if answer.labels is not None:
        return [names[place] for place in answer.labels]
    return None if answer.label is None else names[answer.label]


def _words(verified: "Verified", answer: "Release") -> str:
    """An answer as people read it."""
    kind = verified.task.question.kind
    if kind == "number":
        return "nothing" if answer.value is None else f"{answer.value:.6g}"
    found = _label(verified, answer)
    if kind == "labels":
        return "nothing" if found is None else ", ".join(found) or "no label"
    return "abstained" if found is None else str(found)


def _show_rows(console: Console, verified: "Verified", found: Sequence[int | None]) -> None:
    for answer, number in list(zip(verified.answers, found, strict=True))[:_FEW_ROWS]:
        label = _words(verified, answer)
        name = "none of your rows" if number is None else f"row {number:,}"
        console.print(f"{name:>12}  {escape(label)}")
    if len(found) > _FEW_ROWS:
        console.print(f"and {len(found) - _FEW_ROWS:,} more, in the order of the release: --json")
    if missing := found.count(None):
        console.print(
            f"{missing:,} queries are about none of these rows, or were asked under another "
            "row secret.",
            style="yellow",
            soft_wrap=True,
        )


def _show_answers(console: Console, verified: "Verified") -> None:
    """How often each answer was given; of numbers their range."""
    if verified.task.question.kind == "number":
        values = [each.value for each in verified.answers if each.value is not None]
        if values:
            console.print(f"{len(values):>8,}  numbers from {min(values):.6g} to {max(values):.6g}")
        return
    tally = Counter(_words(verified, each) for each in verified.answers)
    for name, count in tally.most_common():
        console.print(f"{count:>8,}  {escape(name)}")


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
    _show_answers(console, verified)
    console.print(f"Task {task.task_id.hex()}", soft_wrap=True, highlight=False)
    if expected is None:
        console.print(
            "Whether that is the task you know of was not checked, and whoever makes a receipt "
            "can make up its teachers: compare the id with a teacher's, and give it as --task.",
            style="yellow",
            soft_wrap=True,
        )
