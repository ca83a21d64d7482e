"""Progress bars for long work, on standard error, where somebody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from dppp.federation import OnMessage as Report

_STAGES = {
    "batch request": "teachers vote, add noise, encrypt",
    "ballot list": "teachers check the list, give shares",
    "proof request": "teachers prove their shares",
}


@contextmanager
def federation_progress() -> "Iterator[Report]":
    """A bar for each stage of a batch; says nothing where nobody watches."""
    with _bars() as bars:
        stages = {}

        def report(kind: str, done: int, total: int) -> None:
            if kind not in stages:
                stages[kind] = bars.add_task(_STAGES.get(kind, kind), total=total)
            bars.update(stages[kind], completed=done, total=total)

        yield report


@contextmanager
def counted_progress(what: str) -> Iterator[Callable[[int, int], object]]:
    """One bar, to be told how much is done of how much."""
    with _bars() as bars:
        bar = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)


def _bars() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A sign of life while something of unknown length goes on."""
    with Console(stderr=True).status(what):
        yield
