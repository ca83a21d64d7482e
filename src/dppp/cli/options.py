"""Options that several commands take."""

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
LogJsonOption = Annotated[
    bool, typer.Option("--json", help="Log JSON lines on a terminal too, as it does elsewhere.")
]

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
