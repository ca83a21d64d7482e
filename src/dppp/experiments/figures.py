"""Figures of what the paper's show; curves without a certificate are dashed, hollow, and say so.

The paper draws all in one panel. Here each idea has its own, beside the same reference. Colours are
those of Okabe and Ito, which people who confuse red and green can tell apart, lighter or darker
where a curve has a sibling; every curve of a panel has a mark of its own too. Used by all that
draws a figure of the experiments.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dppp.errors import InputError
from dppp.experiments.accuracy.curve_comparison import Curve, curve, only_row
from dppp.experiments.accuracy.curves import Row

BLUE, VERMILION = "#0072B2", "#D55E00"
_GREEN, _BROWN, _PURPLE, _ORANGE = "#009E73", "#8A3D00", "#8F3F6B", "#E69F00"
_DOTS_PER_INCH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Which rows make a curve, what it is called and how it looks."""

    framework: str
    noise: str
    calibration: str
    honest: float | None = None
    words: str
    colour: str
    marker: str


def _style(
    row: tuple[str, str, str], honest: float | None, words: str, colour: str, marker: str
) -> Style:
    framework, noise, calibration = row
    return Style(
        framework=framework,
        noise=noise,
        calibration=calibration,
        honest=honest,
        words=words,
        colour=colour,
        marker=marker,
    )


_EXACT = ("dppp-best", "best", "exact")
_BINOMIAL = ("dppp", "binomial", "paper")
_GAUSSIAN = ("dppp", "discrete-gaussian", "paper")
COMPARED = _style(_EXACT, 2 / 3, "two thirds of the teachers honest, γ = 2/3", BLUE, "D")
"""The curve that every panel has, to compare with."""

PANELS = {
    "dppp: noise sized exactly": (
        _style(_EXACT, 1.0, "all teachers honest, γ = 1", _GREEN, "o"),
        COMPARED,
    ),
    "The paper's noise": (
        _style(_BINOMIAL, 1.0, "binomial, γ = 1", _GREEN, "s"),
        _style(_BINOMIAL, 2 / 3, "binomial, γ = 2/3", "#66C5AB", "v"),
        _style(_GAUSSIAN, 1.0, "discrete Gaussian, γ = 1", VERMILION, "^"),
        _style(_GAUSSIAN, 2 / 3, "discrete Gaussian, γ = 2/3", _BROWN, "<"),
    ),
    "A trusted aggregator adds the noise (PATE)": (
        _style(("pate", "laplace", "2/epsilon"), None, "Laplace of scale 2/ε", _PURPLE, "P"),
        _style(("pate", "laplace", "1/epsilon"), None, "Laplace of scale 1/ε", "#CC79A7", "X"),
    ),
    "Each teacher hides its own vote": (
        _style(("ldp", "randomised-response", "exact"), None, "randomised response", _ORANGE, "p"),
        _style(("ldp", "binomial", "paper"), None, "the paper's local noise", "#8C6100", "*"),
        _style(("standalone", "binomial", "paper"), None, "one teacher, asked alone", "grey", "."),
    ),
}
"""What is compared with what, a few curves at a time."""


def draw_accuracy(rows: Sequence[Row], title: str, *, against: str, path: Path) -> Path:
    """Accuracy against `against`, epsilon or delta: a panel for each idea, all on one scale."""
    figure, panels = new_figure(10, 9.4, 2, 2)
    for axes in panels.flat[1:]:
        axes.sharey(panels.flat[0])
    for axes, (name, styles) in zip(panels.flat, PANELS.items(), strict=True):
        _draw_without_privacy(axes, rows, is_named=axes is panels.flat[0])
        if COMPARED not in styles:
            points = _points(rows, COMPARED)
            places = [getattr(row, against) for row in points]
            level = [100 * row.accuracy_mean for row in points]
            axes.plot(
                places, level, color=BLUE, alpha=0.35, linewidth=4, label="dppp, exact, γ = 2/3"
            )
        for style in styles:
            points = _points(rows, style)
            draw_curve(axes, points, [getattr(row, against) for row in points], style)
        axes.set_xscale("log")
        name_axes(axes, name, {getattr(row, against) for row in rows} - {None})
        axes.set_xlabel("ε per query" if against == "epsilon" else "δ per query")
        axes.set_ylabel("right labels, %")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize="small")
    figure.suptitle(title, fontsize="medium")
    return save(figure, path)


def _points(rows: Sequence[Row], style: Style) -> Curve:
    return curve(rows, style.framework, style.noise, style.calibration, style.honest)


def _draw_without_privacy(axes: Any, rows: Sequence[Row], *, is_named: bool) -> None:
    """What privacy costs is the way down from these two lines; named in one panel."""
    for framework, words, line in (
        ("centralised", "one model of all records, no privacy", "-"),
        ("distributed", "all votes, no noise", "-."),
    ):
        level = 100 * only_row(rows, framework).accuracy_mean
        label = f"{words} ({level:.1f} %)" if is_named else None
        axes.axhline(level, color="black", linestyle=line, linewidth=1, label=label)


def name_axes(axes: Any, title: str, ticks: set[Any]) -> None:
    """What all panels have: a title, a tick wherever something was measured, a faint grid."""
    places = sorted(ticks)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    axes.set_title(title, fontsize="medium", loc="left")
    axes.grid(alpha=0.3)


def draw_curve(axes: Any, points: Curve, places: Sequence[float], style: Style) -> None:
    """One curve: hollow where a point is not certified, dashed if any point is not."""
    is_certified = [row.certified for row in points]
    missing = is_certified.count(False)
    note = "" if missing == 0 else " (not certified)"
    if 0 < missing < len(points):
        note = f" (not certified at {missing} of {len(points)})"
    accuracy = [100 * row.accuracy_mean for row in points]
    axes.errorbar(
        places,
        accuracy,
        yerr=[100 * row.accuracy_std for row in points],
        color=style.colour,
        linestyle="--" if missing else "-",
        linewidth=1.2,
        elinewidth=0.6,
        marker=style.marker,
        markersize=5,
        markerfacecolor="white" if missing else style.colour,
        label=style.words + note,
    )
    sure = [place for place, is_sure in enumerate(is_certified) if is_sure]
    if missing and sure:
        axes.plot(
            [places[each] for each in sure],
            [accuracy[each] for each in sure],
            linestyle="",
            marker=style.marker,
            markersize=5,
            color=style.colour,
        )


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """A figure that draws to files only, and its axes."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def save(figure: Any, path: Path) -> Path:
    """Write the PNG, with a palette of 256 colours: a third of the size, and it looks the same."""
    from PIL import Image  # noqa: PLC0415  (matplotlib brings it)

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=_DOTS_PER_INCH)
    try:
        Image.open(drawn).convert("RGB").quantize(256).save(path, optimize=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return path
