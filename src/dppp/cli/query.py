"""`dppp query`: labels for the rows of a CSV file, from a gateway."""

import csv
import hashlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dppp.cli.extras import require_service
from dppp.cli.files import make_folder, write_bytes
from dppp.cli.output import JsonOption, emit
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.service.asking import Gateway, Labelled, Plan

TOKEN_VARIABLE = "DPPP_TOKEN"  # noqa: S105 - its name, not its value


def query(
    *,
    gateway: Annotated[str, typer.Option(help="The gateway, as https://host:port.")],
    rows: Annotated[
        Path, typer.Option("--input", help="A CSV file with a header; other columns are kept out.")
    ],
    out: Annotated[Path, typer.Option(help="A CSV file for the labels and counts.")],
    token_file: Annotated[
        Path | None, typer.Option(help=f"Your token; else the variable {TOKEN_VARIABLE}.")
    ] = None,
    transcripts: Annotated[
        Path | None, typer.Option(help="A folder for the transcripts, for dppp verify.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Rows in one batch.", min=1)] = 1_000,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask anew about rows released before, at a charge.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Label the rows of a file. Stopped in the middle, the same command goes on where it was."""
    require_service()
    from dppp.service.asking import Gateway  # noqa: PLC0415

    with Gateway(gateway, _token(token_file)) as connection:
        task = connection.task()
        table = _read_rows(rows, task["features"])
        plan = _plan(out, table, batch_size, is_fresh=fresh)
        labelled, proven = _ask(connection, table, plan, transcripts, is_fresh=fresh)
        _write_labels(out, labelled, task["classes"])
        plan.finish()
        budget = connection.budget()
    result = {
        "rows": len(labelled),
        "abstained": sum(each.label is None for each in labelled),
        "out": str(out),
        "transcripts": None if transcripts is None else str(transcripts),
        "in_transcripts": proven,
        "budget": budget,
    }
    emit(result, as_json=as_json, show=lambda console: _show(console, result, budget))


def _ask(
    gateway: "Gateway",
    table: Sequence[Sequence[float]],
    plan: "Plan",
    transcripts: Path | None,
    *,
    is_fresh: bool,
) -> "tuple[list[Labelled], int]":
    """The labels, and how many of them stand in the transcripts that were kept."""
    from dppp.service.asking import ask_in_parts, count_in_transcript  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    labelled: list[Labelled] = []
    proven = 0
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
        bar = bars.add_task("asking", total=len(table))
        for number, (part, labels, transcript) in enumerate(
            ask_in_parts(
                gateway,
                table,
                plan,
                is_fresh=is_fresh,
                report=lambda done, words: bars.update(bar, completed=done, description=words),
            ),
            start=1,
        ):
            labelled += labels
            if transcripts is not None and transcript is not None:
                write_bytes(transcripts / f"batch-{number:04d}.transcript", transcript)
                own = table[part.start : part.start + part.count]
                proven += count_in_transcript(transcript, own, labels)
    return labelled, proven


def _plan(out: Path, table: Sequence[Sequence[float]], size: int, *, is_fresh: bool) -> "Plan":
    from dppp.service.asking import Plan  # noqa: PLC0415

    make_folder(out.parent)
    digest = hashlib.sha256(json.dumps([table, is_fresh]).encode()).hexdigest()
    return Plan(out.with_name(f"{out.name}.parts"), rows=len(table), size=size, digest=digest)


def _token(path: Path | None) -> str:
    if path is None:
        if TOKEN_VARIABLE not in os.environ:
            raise InputError(f"give --token-file, or set {TOKEN_VARIABLE} in the environment")
        return os.environ[TOKEN_VARIABLE].strip()
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the token in {path}: {error}") from error


def _read_rows(path: Path, features: Sequence[str]) -> list[list[float]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            lines = [(reader.line_num, line) for line in reader]  # empty ones are passed over
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {path} as a CSV file: {error}") from error
    if not lines:
        raise InputError(f"{path} has no rows below its header")
    missing = [name for name in features if name not in lines[0][1]]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}, which the task asks for")
    return [
        [_number(line[name], path, number, name) for name in features] for number, line in lines
    ]


def _number(value: Any, path: Path, line: int, column: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not math.isfinite(number):
        raise InputError(
            f"line {line} of {path} has {value!r} in column {column!r}, expected a finite number"
        )
    return number


def _write_labels(path: Path, labelled: "Sequence[Labelled]", classes: Sequence[str]) -> None:
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["row", "label", *(f"count_{name}" for name in classes)])
            for number, each in enumerate(labelled, start=1):
                writer.writerow([number, "" if each.label is None else each.label, *each.counts])
        unfinished.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _show(console: Console, result: dict[str, Any], budget: dict[str, Any]) -> None:
    console.print(
        f"{result['rows']:,} labels in {result['out']} ({result['abstained']:,} abstained).",
        soft_wrap=True,
    )
    if result["transcripts"] is not None:
        console.print(
            f"{result['in_transcripts']:,} of them stand in the transcripts in "
            f"{result['transcripts']}.",
            soft_wrap=True,
        )
    console.print(
        f"Spent so far: {budget['charged']:,} of {budget['queries']:,} queries, "
        f"ε = {budget['epsilon_spent']:.3g} of {budget['epsilon']:g} at δ = {budget['delta']:g}."
    )
