"""What `dppp demo` says of twenty banks, and their picture: a larger table, at ε = 1."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from dppp.cli.optional_packages import load_pyplot
from dppp.cli.output_files import save_figure
from dppp.cli.terminal import steps_progress

if TYPE_CHECKING:
    from dppp.learning.examples.banks import Answered

SEED = 0
_BLUE, _GREY = "#0072B2", "#C8C8C8"
_BAR_CELLS = 16
_ROWS = (
    ("banks, votes in the clear", "accuracy_plurality"),
    ("[bold]banks with dppp[/]", "accuracy_expected"),
    ("the same with one vote of each", "accuracy_one_vote"),
    ("one bank alone, on average", "accuracy_single"),
    ("the worst bank alone", "accuracy_single_worst"),
    ("always the majority class", "accuracy_majority"),
    ("one bank under local privacy", "accuracy_local"),
)


def ask_twice(console: Console) -> "tuple[Answered, Answered]":
    """Banks that all see the same world, then banks that each see a part of it."""
    from dppp.learning.examples.banks import ask_banks, make_payments  # noqa: PLC0415

    with steps_progress(2) as begin:
        begin("twenty banks train and are asked")
        payments = make_payments(SEED)
        alike = ask_banks(payments, apart=False, seed=SEED)
        begin("twenty banks that each see a part of the world")
        apart = ask_banks(payments, apart=True, seed=SEED)
    tell_alike(console, alike)
    tell_apart(console, apart)
    return alike, apart


def tell_alike(console: Console, found: "Answered") -> None:
    """Why ε = 1 is enough here, and to whom it is worth it."""
    votes, verdict = sum(found.votes), found.verdict
    console.rule("8  A larger table, and ε = 1")
    console.print(
        f"Small data need a large ε: {len(found.votes)} hospitals had one vote each, since 22 "
        "records make one model and no more; at ε = 1 the noise would be larger than all votes "
        "together. So, a larger table: "
        f"{sum(found.records):,} payments, fraud or fine, made up on the spot, are dealt at random "
        f"to {len(found.records)} banks. Each bank trains {found.votes[0]} models on parts of its "
        f"{found.records[0]:,} records and casts as many votes. The promise is for one record, "
        "which moves one vote: so the noise stays the same (a standard deviation of "
        f"{found.deviation:.0f} in a count) and there are {votes} votes instead of "
        f"{len(found.votes)}.\n"
        f"{verdict.queries} payments were asked about, by masked ballots: "
        f"{_percent(found.right)} right. Of {verdict.rows:,} that were held out, on average over "
        "all noise:"
    )
    _tell_rows(console, found)


def tell_apart(console: Console, found: "Answered") -> None:
    """Why organisations come together at all."""
    console.rule("9  Banks that each see a part of the world")
    console.print(
        "The same payments, but not dealt alike: payments are of sixty kinds, and nine tenths of a "
        f"bank's are of {found.kinds:.0f} of them, on average. Banks have {min(found.records):,} "
        f"to {max(found.records):,} records. At the same ε = 1 {_percent(found.right)} of "
        f"{found.verdict.queries} private answers were right. On average over all noise:"
    )
    _tell_rows(console, found)


def _tell_rows(console: Console, found: "Answered") -> None:
    figures = found.to_json()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("right labels")
    table.add_column("", no_wrap=True)
    for text, name in _ROWS:
        part = float(str(figures[name]))
        table.add_row(text, f"{'█' * round(_BAR_CELLS * part):<{_BAR_CELLS}} {_percent(part)}")
    console.print(table)
    for sentence in found.verdict.sentences:
        console.print(sentence, markup=False)


def draw_banks(acts: "Sequence[Answered]", path: Path) -> None:
    """Both acts beside each other."""
    pyplot = load_pyplot()
    titles = ("every bank sees the same world", "each bank sees a part of it")
    with pyplot.rc_context({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False}):
        figure, panels = pyplot.subplots(1, 2, figsize=(12.5, 4.2), layout="constrained")
        for axes, found, title in zip(panels, acts, titles, strict=True):
            _draw(axes, found, f"ε = 1: {title}")
        panels[1].set_yticklabels([])
        figure.get_layout_engine().set(wspace=0.08)
        save_figure(figure, path)
    pyplot.close(figure)


def _draw(axes: Any, found: "Answered", title: str) -> None:
    figures = found.to_json()
    for place, (_, name) in enumerate(reversed(_ROWS)):
        percent = 100 * float(str(figures[name]))
        is_private = name == "accuracy_expected"
        axes.barh(place, percent, color=_BLUE if is_private else _GREY, height=0.6)
        ink = "white" if is_private else "black"
        axes.text(2, place, f"{percent:.1f} %", va="center", color=ink, fontweight="bold")
    names = [text.replace("[bold]", "").replace("[/]", "") for text, _ in reversed(_ROWS)]
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, 101)
    axes.set_xticks(range(0, 101, 25), [f"{tick} %" for tick in range(0, 101, 25)])
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, loc="left")


def _percent(part: float) -> str:
    return f"{100 * part:.1f}\N{NO-BREAK SPACE}%"
