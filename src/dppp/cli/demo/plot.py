"""The picture of `dppp demo`: how accurate, and what it cost."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dppp.cli.optional_packages import load_pyplot
from dppp.cli.output_files import save_figure
from dppp.learning.examples.hospital_batches import AnsweredBatch
from dppp.learning.examples.hospitals import Accuracies
from dppp.privacy.certificate import Promise

_BLUE, _GREY, _VERMILION = "#0072B2", "#C8C8C8", "#D55E00"
"""Of Okabe and Ito's palette, which colour-blind people can tell apart."""

_BARS = (
    ("one hospital alone (mean)", "single_mean", _GREY),
    ("20 hospitals with dppp", "private", _BLUE),
    ("20 hospitals, votes in the clear", "plurality", _GREY),
    ("one model of all records", "centralised", _GREY),
)
_STYLE = {
    "font.size": 12,
    "axes.titlesize": 14,
    "axes.titlepad": 14,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw_story(
    now: Accuracies,
    on_average: Accuracies,
    batches: Sequence[AnsweredBatch],
    promise: Promise,
    path: Path,
) -> None:
    """Two panels: accuracy beside what less privacy would give; ε after each batch."""
    pyplot = load_pyplot()
    with pyplot.rc_context(_STYLE):
        figure, (left, right) = pyplot.subplots(
            1, 2, figsize=(12.5, 4.4), width_ratios=(1.25, 1), layout="constrained"
        )
        figure.get_layout_engine().set(wspace=0.05)
        _draw_accuracies(left, now, on_average)
        _draw_budget(right, batches, promise)
        save_figure(figure, path)
    pyplot.close(figure)


def _draw_accuracies(axes: Any, now: Accuracies, on_average: Accuracies) -> None:
    for place, (_, name, colour) in enumerate(_BARS):
        percent, average = 100 * getattr(now, name), 100 * getattr(on_average, name)
        axes.barh(place, percent, color=colour, height=0.55)
        ink = "white" if colour == _BLUE else "black"
        axes.text(2, place, f"{percent:.1f} %", va="center", color=ink, fontweight="bold")
        axes.plot(average, place, "D", color=_VERMILION, markersize=8, mec="white")
        axes.text(103, place, f"{average:.1f} %", va="center", color=_VERMILION)
    axes.plot(
        (100 * now.single_min, 100 * now.single_max),
        (-0.4, -0.4),
        "|-",
        color="black",
        markersize=9,
    )
    axes.text(
        100 * now.single_min - 1.5, -0.4, "worst to best", ha="right", va="center", fontsize=10
    )
    axes.text(
        103,
        len(_BARS) - 0.55,
        f"◆ all {on_average.patients} held out,\non average",
        color=_VERMILION,
        fontsize=10,
    )
    axes.set_yticks(range(len(_BARS)), [text for text, _, _ in _BARS])
    axes.set_xlim(0, 101)
    axes.set_xticks(range(0, 101, 25), [f"{tick} %" for tick in range(0, 101, 25)])
    axes.tick_params(axis="y", length=0)
    axes.set_title(f"Right labels of the same {now.patients} patients", loc="left")


def _draw_budget(axes: Any, batches: Sequence[AnsweredBatch], promise: Promise) -> None:
    for place, batch in enumerate(batches):
        epsilon = batch.epsilon_spent
        axes.bar(place, epsilon, color=_BLUE, width=0.6)
        axes.annotate(
            f"{epsilon:.2f}",
            (place, epsilon),
            xytext=(0, -6),
            textcoords="offset points",
            ha="center",
            va="top",
            color="white",
            fontweight="bold",
        )
    axes.set_xticks(
        range(len(batches)),
        [f"batch {batch.number}\n{len(batch.voters)} ballots" for batch in batches],
    )
    axes.axhline(promise.epsilon, color=_VERMILION, linewidth=2)
    promised = f"promised for all {promise.queries} patients: {promise.epsilon:g}"
    axes.text(-0.4, 1.02 * promise.epsilon, promised, color=_VERMILION)
    axes.set_ylim(0, 1.12 * promise.epsilon)
    axes.locator_params(axis="y", nbins=5)
    axes.tick_params(axis="x", length=0)
    axes.set_title(f"ε spent so far (at δ = {promise.delta:g})", loc="left")
