"""Options that several commands take."""

import csv
from typing import Annotated

import typer

from dppp.errors import InputError

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
LogJsonOption = Annotated[
    bool, typer.Option("--json", help="Log JSON lines on a terminal too, as it does elsewhere.")
]

EpsilonOption = Annotated[float, typer.Option(help="Total ε, greater than 0.")]
DeltaOption = Annotated[float, typer.Option(help="Total δ, between 0 and 1.")]
QueriesOption = Annotated[int, typer.Option(help="Queries that the total covers.")]
ClassesOption = Annotated[int, typer.Option(help="Classes to vote on.")]
MaxLabelsOption = Annotated[
    int | None, typer.Option(help="The question is of labels: at most so many in a vote.")
]
LevelsOption = Annotated[
    int | None, typer.Option(help="The question is a number, in so many steps.")
]
ColludersOption = Annotated[
    int | None, typer.Option(help="Teachers who may collude. (default: teachers // 5, at least 1)")
]
DropoutsOption = Annotated[
    int | None, typer.Option(help="Teachers who may vanish. (default: teachers // 10)")
]


def split_names(text: str | None) -> tuple[str, ...]:
    """Names between commas; one that has a comma itself stands in double quotes."""
    if text is None:
        return ()
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))


def read_votes(text: str) -> int | str:
    """A number of votes, or `auto`."""
    if text == "auto":
        return text
    number = read_digits(text)
    if number is None or number < 1:
        raise InputError(
            f"--votes is auto or a number from 1 up, not {text[:40]!r}",
            hint="leave it out, for auto",
        )
    return number


def read_digits(text: str) -> int | None:
    """A whole number as people write it; None if it is not one, or is past all use."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
