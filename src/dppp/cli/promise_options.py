"""The options by which a command is told what is promised, and whom it must hold against."""

from typing import Annotated

import typer

EpsilonOption = Annotated[float, typer.Option(help="Total ε, greater than 0.")]
DeltaOption = Annotated[float, typer.Option(help="Total δ, between 0 and 1.")]
QueriesOption = Annotated[int, typer.Option(help="Queries that the total covers.")]
ClassesOption = Annotated[int, typer.Option(help="Classes to vote on.")]
ColludersOption = Annotated[
    int | None, typer.Option(help="Teachers who may collude. (default: teachers // 5, at least 1)")
]
DropoutsOption = Annotated[
    int | None, typer.Option(help="Teachers who may vanish. (default: teachers // 10)")
]
