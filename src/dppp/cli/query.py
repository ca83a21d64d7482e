"""`dppp query`: labels for the rows of a CSV file, from a gateway."""

import csv
import hashlib
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dppp.cli.optional_packages import require_service
from dppp.cli.options import JsonOption
from dppp.cli.output_files import require_folder_above, require_place, write_bytes
from dppp.cli.terminal import emit
from dppp.cli.verify import read_task_id
from dppp.errors import GatewayError, GatewayFault, InputError

if TYPE_CHECKING:
    from dppp.protocol.columns import Column
    from dppp.protocol.inputs import Cell
    from dppp.protocol.messages import TaskId
    from dppp.protocol.task import Task
    from dppp.service.querier.asking import AskedParts, OwnRows, Released
    from dppp.service.querier.connection import GatewayConnection, Labelled
    from dppp.service.querier.row_secrets import RowSecrets
    from dppp.service.querier.signed_labels import SignedLabels

TOKEN_VARIABLE = "DPPP_TOKEN"  # noqa: S105 - its name, not its value


def query(
    *,
    gateway: Annotated[str, typer.Option(help="The gateway, as https://host:port.")],
    rows: Annotated[
        Path,
        typer.Option(
            "--input",
            help="A table with a header, as a CSV or Parquet file. Columns that the task does "
            "not name are not sent.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="A CSV file for the labels and counts.")],
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"A file with your token. (default: the variable {TOKEN_VARIABLE})"),
    ] = None,
    receipts: Annotated[
        Path | None, typer.Option(help="A folder for the receipts, for dppp verify.")
    ] = None,
    transcripts: Annotated[
        Path | None,
        typer.Option(
            help="A folder for full transcripts, for dppp verify; needs an auditor's token."
        ),
    ] = None,
    task_id: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="The task's id, as a teacher told you; every receipt is checked against it.",
        ),
    ] = None,
    row_key: Annotated[
        Path | None,
        typer.Option(
            help="A file with the secrets of your rows, made if missing: keep it, for free repeats "
            "and dppp verify. (default: beside --out, with .rowkey at its end)"
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Rows in one batch.", min=1)] = 1_000,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Ask again about rows that have labels already; this costs budget."
        ),
    ] = False,
    insist: Annotated[
        bool,
        typer.Option(
            "--insist",
            help="Ask even while too few teachers are online for a release. What is aborted then "
            "stays charged.",
        ),
    ] = False,
    alone: Annotated[
        bool,
        typer.Option(
            "--alone",
            help="Keep a single row out of a batch with the rows of other queriers, who would see "
            "its counts.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Get labels, or numbers, for the rows of a file, which only the teachers can read.

    If it is stopped, the same command goes on from there.
    """
    require_service()
    from dppp.service.querier.connection import GatewayConnection  # noqa: PLC0415
    from dppp.service.querier.row_secrets import RowSecrets  # noqa: PLC0415

    require_place(out)
    for folder in (receipts, transcripts):
        if folder is not None:
            require_folder_above(folder)
    keep = _Keep(
        receipts=receipts,
        transcripts=transcripts,
        task_id=None if task_id is None else read_task_id(task_id),
    )
    on_wait = _say_nothing if as_json else _say_waiting
    with GatewayConnection(gateway, _token(token_file), on_wait=on_wait) as connection:
        if transcripts is not None:
            connection.require_transcripts()
        task = connection.task()
        _require_task(task, keep.task_id)
        table = _read_rows(rows, task.columns)
        secrets_file = row_key or out.with_name(f"{out.name}.rowkey")
        row_secrets = RowSecrets(secrets_file)
        plan = _plan(out, table, batch_size, row_secrets, is_fresh=fresh)
        if keep.task_id is None:
            _say_unknown_keys()
        own = _own_rows(task, table, row_secrets)
        asking = {"is_fresh": fresh, "insist": insist, "share": not alone}
        labelled, is_signed = _ask(connection, own, plan, keep, **asking)
        unsigned = len(labelled) - sum(is_signed)
        if fresh:
            _require_all_signed(unsigned)
        _write_labels(out, labelled, is_signed, task)
        plan.finish()
        if keep.task_id is not None:
            _say_unsigned(unsigned, out)
        budget = connection.budget()
    result = {
        "out": str(out),
        "question": task.question.kind,
        **_count(labelled, is_signed),
        **keep.describe(),
        "row_key": str(secrets_file),
        "budget": budget,
    }
    emit(result, as_json=as_json, show=lambda console: _show(console, result, budget))


def _require_task(task: "Task", expected: "TaskId | None") -> None:
    """Before anything is sealed: whose keys the rows are sealed to stands in the task."""
    if expected not in (None, task.task_id):
        raise GatewayFault(
            f"the gateway's task has the id {task.task_id.hex()}, which is not the one that you "
            "gave; nothing was sent",
            hint="compare the id with a teacher's; by other keys the gateway could read your rows",
        )


def _say_unknown_keys() -> None:
    Console(stderr=True).print(
        "Your rows are sealed to the keys in the gateway's terms. It could have given keys of its "
        "own, and read them: give --task, as a teacher told you.",
        style="yellow",
        soft_wrap=True,
    )


def _say_waiting(why: str) -> None:
    """A minute without a word looks like a program that hangs."""
    Console(stderr=True).print(f"Waiting: {why}", style="yellow", soft_wrap=True, markup=False)


def _say_nothing(_: str) -> None:
    """Standard error is for one JSON object."""


def _count(labelled: "Sequence[Labelled]", is_signed: Sequence[bool]) -> dict[str, object]:
    return {
        "rows": len(labelled),
        "abstained": sum(
            each.label is None and each.labels is None and each.value is None for each in labelled
        ),
        "in_receipts": sum(is_signed),
        "flagged": sum(each.is_flagged for each in labelled),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keep:
    """What is kept of each batch beside its labels, and the task that it must be of."""

    receipts: Path | None
    transcripts: Path | None
    task_id: "TaskId | None"

    def describe(self) -> dict[str, object]:
        """Where it is kept, and whether it was checked against a task."""
        return {
            "receipts": None if self.receipts is None else str(self.receipts),
            "transcripts": None if self.transcripts is None else str(self.transcripts),
            "is_verified": self.task_id is not None,
        }

    def take(
        self,
        number: int,
        released: "Released",
        signed: "SignedLabels",
    ) -> list[bool]:
        """Check and keep; which of the rows have their label in a receipt."""
        from dppp.protocol.receipt import verify_receipt  # noqa: PLC0415

        if released.receipt is not None and self.task_id is not None:
            verify_receipt(released.receipt, expected_task=self.task_id)
        found = signed.find(released.receipt, released.query_ids, released.labels)
        if released.receipt is None:
            return found  # all were released before
        if self.receipts is not None:
            _keep(self.receipts, number, "receipt", released.receipt)
        if self.transcripts is not None and released.transcript is not None:
            _keep(self.transcripts, number, "transcript", released.transcript)
        return found


def _keep(folder: Path, number: int, ending: str, data: bytes) -> None:
    """Under the batch's number, or the next that is free: what another run kept there stays."""
    path = folder / f"batch-{number:04d}.{ending}"
    while path.exists() and path.read_bytes() != data:
        number += 1
        path = folder / f"batch-{number:04d}.{ending}"
    write_bytes(path, data)


def _require_all_signed(unsigned: int) -> None:
    """Rows that are asked afresh are all in a receipt."""
    if unsigned:
        raise GatewayFault(
            f"{unsigned:,} labels stand in no receipt, though all rows were asked afresh; nothing "
            "was written",
            hint="tell the teachers",
        )


def _say_unsigned(unsigned: int, out: Path) -> None:
    """Whoever names the task wants every label checked."""
    if unsigned:
        raise GatewayError(
            f"{unsigned:,} labels stand in no receipt: they were released before, says the "
            f"gateway and nobody else. {out} marks them in its column in_receipt",
            hint="ask for these rows with --fresh, at a charge",
        )


def _ask(
    gateway: "GatewayConnection",
    own: "OwnRows",
    plan: "AskedParts",
    keep: _Keep,
    *,
    is_fresh: bool,
    insist: bool,
    share: bool,
) -> "tuple[list[Labelled], list[bool]]":
    """The labels, and which of them stand in receipts."""
    from dppp.service.querier.asking import ask_in_parts  # noqa: PLC0415
    from dppp.service.querier.signed_labels import SignedLabels  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    labelled: list[Labelled] = []
    is_signed: list[bool] = []
    signed = SignedLabels(own.task)
    console = Console(stderr=True)
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as bars:
        bar = bars.add_task("asking", total=len(own.rows))
        for number, released in enumerate(
            ask_in_parts(
                gateway,
                own,
                plan,
                is_fresh=is_fresh,
                insist=insist,
                share=share,
                with_transcripts=keep.transcripts is not None,
                report=lambda done, words: bars.update(bar, completed=done, description=words),
            ),
            start=1,
        ):
            labelled += released.labels
            is_signed += keep.take(number, released, signed)
    return labelled, is_signed


def _plan(
    out: Path,
    table: "Sequence[Sequence[Cell]]",
    size: int,
    secrets: "RowSecrets",
    *,
    is_fresh: bool,
) -> "AskedParts":
    """Which rows go into which batch, and under which secret: a new one where all is asked anew."""
    from dppp.service.querier.asking import AskedParts  # noqa: PLC0415

    path = out.with_name(f"{out.name}.parts")
    return AskedParts(
        path,
        rows=len(table),
        size=size,
        digest=hashlib.sha256(json.dumps([table, is_fresh]).encode()).hexdigest(),
        secret=secrets.add() if is_fresh and not path.exists() else len(secrets) - 1,
    )


def _own_rows(task: "Task", table: "Sequence[Sequence[Cell]]", secrets: "RowSecrets") -> "OwnRows":
    from dppp.protocol.inputs import encode_rows  # noqa: PLC0415
    from dppp.service.querier.asking import OwnRows  # noqa: PLC0415

    return OwnRows(task=task, rows=encode_rows(table, task.columns), secrets=secrets)


def _token(path: Path | None) -> str:
    if path is None:
        if TOKEN_VARIABLE not in os.environ:
            raise InputError(
                "there is no token",
                hint=f"give --token-file, or set {TOKEN_VARIABLE} in the environment",
            )
        return os.environ[TOKEN_VARIABLE].strip()
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the token in {path}: {error}", hint="give the file that you were sent"
        ) from error


def _read_rows(path: Path, columns: "Sequence[Column]") -> "list[list[Cell]]":
    """What is asked about: the task's features, in its order."""
    from dppp.learning.cells import inputs_of  # noqa: PLC0415
    from dppp.learning.csv_table import read_table  # noqa: PLC0415

    table = read_table(path)
    if not table.rows:
        raise InputError(f"{path} has no rows below its header", hint="give the rows to ask about")
    return inputs_of(table, columns)


def _write_labels(
    path: Path,
    labelled: "Sequence[Labelled]",
    is_signed: Sequence[bool],
    task: "Task",
) -> None:
    """A line for each row: its answer, the noisy counts, and what to think of them."""
    kind = task.question.kind
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            counts = [f"count_{name}" for name in task.class_names]
            answer, sure = _ANSWER_COLUMNS[kind]
            writer.writerow(["row", *answer, *counts, *sure, "flagged", "in_receipt"])
            for number, (each, signed) in enumerate(zip(labelled, is_signed, strict=True), start=1):
                found, told = _answer_cells(kind, each, task.class_names)
                words = ["true" if flag else "false" for flag in (each.is_flagged, signed)]
                writer.writerow([number, *found, *each.counts, *told, *words])
        unfinished.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}", hint="choose another place"
        ) from error


_ANSWER_COLUMNS = {
    "choice": (["label"], ["lead_by_noise"]),
    "labels": (["labels"], []),
    "number": (["value"], ["standard_error"]),
}
"""What a file of labels has beside the counts, before and after them."""


def _answer_cells(
    kind: str, labelled: "Labelled", names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The same for one row. Labels stand between semicolons, one with a semicolon in quotes."""
    if kind == "number":
        value = "" if labelled.value is None else f"{labelled.value:.10g}"
        error = "" if labelled.standard_error is None else f"{labelled.standard_error:.3g}"
        return [value], [error]
    if kind == "labels":
        return [join_labels(labelled.labels or (), names)], []
    lead = "" if labelled.lead_by_noise is None else f"{labelled.lead_by_noise:.3g}"
    return ["" if labelled.label is None else labelled.label], [lead]


def join_labels(labels: Sequence[str], names: Sequence[str]) -> str:
    """Several labels in one cell, in the order of the task."""
    text = io.StringIO()
    wanted = [name for name in names if name in labels]
    csv.writer(text, delimiter=";", lineterminator="").writerow(wanted)
    return text.getvalue() if wanted else ""


def _show(console: Console, result: dict[str, Any], budget: dict[str, Any]) -> None:
    is_choice = result["question"] == "choice"
    what = "labels" if is_choice else "answers"
    abstained = f" ({result['abstained']:,} abstained)" if is_choice else ""
    console.print(
        f"{result['rows']:,} {what} in {result['out']}{abstained}.",
        soft_wrap=True,
        markup=False,
    )
    checked = "was checked" if result["is_verified"] else "was not checked (give --task)"
    kept = "" if result["receipts"] is None else f", kept in {result['receipts']}"
    has_others = result["in_receipts"] < result["rows"]
    others = " The others were released before, says the gateway." if has_others else ""
    console.print(
        f"{result['in_receipts']:,} of them stand in receipts{kept}. That teachers of the task you "
        f"know of signed these {checked}.{others}",
        soft_wrap=True,
        markup=False,
    )
    if result["flagged"]:
        console.print(
            f"{result['flagged']:,} {what} have counts that votes and noise hardly ever give: a "
            "teacher may have cast more than a vote.",
            style="red",
            soft_wrap=True,
        )
    console.print(
        f"Spent so far: {budget['charged']:,} of {budget['queries']:,} queries, "
        f"ε = {budget['epsilon_spent']:.3g} of {budget['epsilon']:g} at δ = {budget['delta']:g}."
    )
