"""What commands print: results as JSON or for people, and progress where somebody watches."""

import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from dppp.federation import OnMessage as Report

_STAGES = {
    "ballot request": "teachers vote, add noise, encrypt",
    "ballot list": "teachers check the list and endorse it",
    "certified list": "teachers give decryption shares",
    "proof request": "teachers prove their shares",
}


def emit(result: Mapping[str, object], *, as_json: bool, show: Callable[[Console], None]) -> None:
    """Print `result` as one JSON object, or let `show` draw it on a console."""
    if as_json:
        json.dump(result, sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        show(Console(highlight=False))


def say(console: Console, *lines: str) -> None:
    """Print lines as they are: paths are not cut, brackets are not markup."""
    console.print("\n".join(lines), soft_wrap=True, markup=False)


def say_notes(notes: Iterable[str]) -> None:
    """What somebody should know of what was read, beside the result."""
    console = Console(stderr=True, highlight=False)
    for note in notes:
        console.print(f"note: {note}", style="yellow", soft_wrap=True, markup=False)


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


@contextmanager
def steps_progress(total: int) -> Iterator[Callable[[str], object]]:
    """One bar over a few long steps, to be told what the next one is."""
    with _bars() as bars:
        bar = bars.add_task("", total=total)
        begun = itertools.count()
        yield lambda what: bars.update(bar, description=what, completed=next(begun))


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
