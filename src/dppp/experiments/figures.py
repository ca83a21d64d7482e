"""Figures like the paper's; curves without a certificate are dashed and hollow, and say so.

Colours are those of Okabe and Ito, which people who confuse red and green can tell apart, lighter
or darker where a curve has a sibling; every curve of a panel has a mark of its own too. Used by all
that draws a figure of the experiments.
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
_GAMMA = {None: "", 1.0: ", γ = 1", 2 / 3: ", γ = 2/3"}
_GAUSSIAN = "DPPP discrete Gaussian, paper"
_TRUSTED = "PATE, Lap({}/ε), trusted aggregator"
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

    @property
    def label(self) -> str:
        """The name in the legend."""
        return self.words + _GAMMA[self.honest]


STYLES = tuple(
    Style(
        framework=framework,
        noise=noise,
        calibration=calibration,
        honest=honest,
        words=words,
        colour=colour,
        marker=marker,
    )
    for framework, noise, calibration, honest, words, colour, marker in (
        ("dppp-best", "best", "exact", 1.0, "DPPP exact, best family", BLUE, "o"),
        ("dppp-best", "best", "exact", 2 / 3, "DPPP exact, best family", "#56B4E9", "D"),
        ("dppp", "binomial", "paper", 1.0, "DPPP binomial, paper", "#009E73", "s"),
        ("dppp", "binomial", "paper", 2 / 3, "DPPP binomial, paper", "#66C5AB", "v"),
        ("dppp", "discrete-gaussian", "paper", 1.0, _GAUSSIAN, VERMILION, "^"),
        ("dppp", "discrete-gaussian", "paper", 2 / 3, _GAUSSIAN, "#8A3D00", "<"),
        ("pate", "laplace", "2/epsilon", None, _TRUSTED.format(2), "#CC79A7", "P"),
        ("pate", "laplace", "1/epsilon", None, _TRUSTED.format(1), "#8F3F6B", "X"),
        ("ldp", "randomised-response", "exact", None, "LDP, randomised response", "#E69F00", "p"),
        ("ldp", "binomial", "paper", None, "LDP as the paper, binomial", "#8C6100", "*"),
        ("standalone", "binomial", "paper", None, "standalone, binomial", "grey", "."),
    )
)


def draw_accuracy(rows: Sequence[Row], title: str, *, against: str, path: Path) -> Path:
    """Accuracy against `against`, epsilon or delta, with the non-private ones as lines."""
    figure, axes = new_figure(8, 6.2)
    for framework, line in (("centralised", "-"), ("distributed", "-.")):
        level = 100 * only_row(rows, framework).accuracy_mean
        words = f"{framework}, non-private ({level:.1f} %)"
        axes.axhline(level, color="black", linestyle=line, linewidth=1, label=words)
    for style in STYLES:
        points = curve(rows, style.framework, style.noise, style.calibration, style.honest)
        draw_curve(axes, points, [getattr(row, against) for row in points], style)
    axes.set_xscale("log")
    name_axes(axes, title, {getattr(row, against) for row in rows} - {None})
    axes.set_xlabel("ε per query" if against == "epsilon" else "δ per query")
    axes.set_ylabel("right labels, %")
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    return save(figure, path)


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
        label=style.label + note,
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
