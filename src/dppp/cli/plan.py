"""`dppp plan`: what a budget buys, before anything is deployed.

The heavy imports are inside the command, so that `dppp --help` answers at once.
"""

import csv
from pathlib import Path
from typing import Annotated

import typer

from dppp.cli.files import read_bytes
from dppp.cli.output import JsonOption, emit
from dppp.cli.plan_tables import show_plan
from dppp.cli.progress import waiting
from dppp.cli.promise_options import (
    ColludersOption,
    DeltaOption,
    DropoutsOption,
    EpsilonOption,
    QueriesOption,
)
from dppp.errors import InputError

LABEL = "label"


def plan(
    *,
    teachers: Annotated[
        int | None, typer.Option(help="Teachers who vote. (default: the columns of --votes)")
    ] = None,
    accuracy_margin: Annotated[
        float | None,
        typer.Option(help="The part of the votes that the winner is ahead by, e.g. 0.4."),
    ] = None,
    votes: Annotated[
        Path | None,
        typer.Option(help="CSV: a row a query, a column a teacher, maybe a column `label`."),
    ] = None,
    epsilon: EpsilonOption = 1.0,
    delta: DeltaOption = 1e-5,
    queries: QueriesOption = 100,
    colluders: ColludersOption = None,
    dropouts: DropoutsOption = None,
    classes: Annotated[
        int | None, typer.Option(help="Classes to vote on. (default: 10, or those of --votes)")
    ] = None,
    target_accuracy: Annotated[float, typer.Option(help="What makes it useful to you.")] = 0.9,
    plot: Annotated[Path | None, typer.Option(help="Draw accuracy against ε to this file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """How accurate, how many queries, how many teachers?"""
    from dppp.learning.planning import plan as make_plan  # noqa: PLC0415

    table, labels = (None, None) if votes is None else read_votes(votes)
    if plot is not None:
        from dppp.cli.extras import load_pyplot  # noqa: PLC0415

        load_pyplot()  # say at once that it is missing
    with waiting("calibrating each family at each ε; about a minute"):
        made = make_plan(
            teachers=teachers,
            accuracy_margin=accuracy_margin,
            votes=table,
            labels=labels,
            classes=classes,
            colluders=colluders,
            dropouts=dropouts,
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            target_accuracy=target_accuracy,
        )
    if plot is not None:
        from dppp.cli.plan_plot import draw_accuracy  # noqa: PLC0415

        draw_accuracy(made, plot)
    emit(made.to_json(), as_json=as_json, show=lambda out: show_plan(out, made))


def read_votes(path: Path) -> tuple[list[list[str]], list[str] | None]:
    """The votes in a CSV file, and its column `label` where there is one."""
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
        rows = [row for row in csv.reader(lines, strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file in UTF-8: {error}") from error
    if len(rows) < 2:
        raise InputError(
            f"{path} holds no votes", hint="give a row of column names, then one row per query"
        )
    names = [name.strip() for name in rows[0]]
    if "" in names or len(set(names)) < len(names):
        raise InputError(
            f"the first row of {path} must name the columns, each once: a name for every teacher, "
            f"and {LABEL} for the truth if it is known"
        )
    for place, row in enumerate(rows[1:], 2):
        if len(row) != len(names):
            raise InputError(f"row {place} of {path} has {len(row)} cells, expected {len(names)}")
    if LABEL not in names:
        return rows[1:], None
    place = names.index(LABEL)
    return [row[:place] + row[place + 1 :] for row in rows[1:]], [row[place] for row in rows[1:]]
