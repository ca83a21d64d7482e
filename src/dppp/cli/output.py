"""How commands speak: one JSON object with --json, a table for people otherwise."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Annotated

import typer
from rich.console import Console

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
LogJsonOption = Annotated[
    bool, typer.Option("--json", help="Log JSON lines at a terminal too, as anywhere else.")
]


def emit(result: Mapping[str, object], *, as_json: bool, show: Callable[[Console], None]) -> None:
    """Print `result` as JSON, or let `show` draw it on a console."""
    if as_json:
        json.dump(result, sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        show(Console(highlight=False))
