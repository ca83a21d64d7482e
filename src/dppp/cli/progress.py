"""Progress bars for long work, on standard error so that output stays clean."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from dppp.federation import Progress as Report

_STAGES = {
    "batch request": "teachers vote, add noise, encrypt",
    "ballot list": "teachers check the list, give shares",
    "proof request": "teachers prove their shares",
}


@contextmanager
def federation_progress() -> "Iterator[Report]":
    """A bar for each stage of a batch; says nothing where nobody watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    bars = Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bars:
        stages = {}

        def report(kind: str, done: int, total: int) -> None:
            if kind not in stages:
                stages[kind] = bars.add_task(_STAGES.get(kind, kind), total=total)
            bars.update(stages[kind], completed=done, total=total)

        yield report


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A sign of life while something of unknown length goes on."""
    with Console(stderr=True).status(what):
        yield
