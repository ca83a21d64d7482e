"""Figures like the paper's; curves without a certificate are dashed and hollow, and say so."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dppp.errors import InputError
from dppp.experiments.comparing import Curve, curve
from dppp.experiments.curves import Row
from dppp.experiments.overhead import Overhead
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS

_WAYS = {"paper": "the paper's way", "dppp": "dppp"}
_GAMMA = {None: "", 1.0: ", γ = 1", 2 / 3: ", γ = 2/3"}


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


STYLES = (
    Style(
        framework="dppp-best",
        noise="best",
        calibration="exact",
        honest=1.0,
        words="DPPP exact, best family",
        colour="tab:green",
        marker="o",
    ),
    Style(
        framework="dppp-best",
        noise="best",
        calibration="exact",
        honest=2 / 3,
        words="DPPP exact, best family",
        colour="darkgreen",
        marker="D",
    ),
    Style(
        framework="dppp",
        noise="binomial",
        calibration="paper",
        honest=1.0,
        words="DPPP binomial, paper",
        colour="tab:blue",
        marker="s",
    ),
    Style(
        framework="dppp",
        noise="binomial",
        calibration="paper",
        honest=2 / 3,
        words="DPPP binomial, paper",
        colour="navy",
        marker="v",
    ),
    Style(
        framework="dppp",
        noise="discrete-gaussian",
        calibration="paper",
        honest=1.0,
        words="DPPP discrete Gaussian, paper",
        colour="tab:red",
        marker="^",
    ),
    Style(
        framework="dppp",
        noise="discrete-gaussian",
        calibration="paper",
        honest=2 / 3,
        words="DPPP discrete Gaussian, paper",
        colour="darkred",
        marker="<",
    ),
    Style(
        framework="pate",
        noise="laplace",
        calibration="2/epsilon",
        words="PATE, Lap(2/ε), trusted aggregator",
        colour="tab:purple",
        marker="P",
    ),
    Style(
        framework="pate",
        noise="laplace",
        calibration="1/epsilon",
        words="PATE, Lap(1/ε), trusted aggregator",
        colour="plum",
        marker="X",
    ),
    Style(
        framework="ldp",
        noise="randomised-response",
        calibration="exact",
        words="LDP, randomised response",
        colour="tab:orange",
        marker="p",
    ),
    Style(
        framework="ldp",
        noise="binomial",
        calibration="paper",
        words="LDP as the paper, binomial",
        colour="goldenrod",
        marker="*",
    ),
    Style(
        framework="standalone",
        noise="binomial",
        calibration="paper",
        words="standalone, binomial",
        colour="grey",
        marker=".",
    ),
)


def draw_accuracy(rows: Sequence[Row], title: str, *, against: str, path: Path) -> Path:
    """Accuracy against `against`, epsilon or delta, with the non-private ones as lines."""
    figure, axes = new_figure(8.5, 4.8)
    for framework, line in (("centralised", "-"), ("distributed", "-.")):
        level = 100 * curve(rows, framework, "none", "none")[0].accuracy_mean
        words = f"{framework}, non-private ({level:.1f} %)"
        axes.axhline(level, color="black", linestyle=line, linewidth=1, label=words)
    for style in STYLES:
        points = curve(rows, style.framework, style.noise, style.calibration, style.honest)
        draw_curve(axes, points, [getattr(row, against) for row in points], style)
    axes.set_xscale("log")
    ticks = sorted({getattr(row, against) for row in rows} - {None})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("ε a query" if against == "epsilon" else "δ a query")
    axes.set_ylabel("right labels, %")
    axes.set_title(title, fontsize="medium", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return save(figure, path)


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


def new_figure(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    """A figure that draws to files only, and its axes."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns)


def save(figure: Any, path: Path) -> Path:
    """Write the PNG."""
    try:
        figure.savefig(path, dpi=95)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return path


def draw_overhead(rows: Sequence[Overhead], path: Path) -> Path:
    """Time and bytes against N, a line for each way and length of key."""
    figure, panels = new_figure(10.5, 3.8, 3)
    columns = (
        ("a teacher, ms a label", {"teacher_cpu_ms": "o"}),
        ("the aggregator, ms a label", {"aggregator_cpu_ms": "o"}),
        (
            "a teacher sends ●, receives ▼, bytes",
            {"teacher_sends_bytes": "o", "teacher_receives_bytes": "v"},
        ),
    )
    for axes, (title, names) in zip(panels, columns, strict=True):
        for name, marker in names.items():
            _plot_overhead(axes, rows, name, marker)
        axes.set_yscale("log")
        axes.set_xlabel("teachers")
        axes.set_title(title, fontsize="medium", loc="left")
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize="x-small")
    return save(figure, path)


def _plot_overhead(axes: Any, rows: Sequence[Overhead], name: str, marker: str) -> None:
    for way, colour in (("paper", "tab:red"), ("dppp", "tab:green")):
        for bits in sorted({row.modulus_bits for row in rows}):
            points = [row for row in rows if (row.way, row.modulus_bits) == (way, bits)]
            axes.plot(
                [row.teachers for row in points],
                [getattr(row, name) for row in points],
                color=colour,
                linestyle=":" if bits < DEFAULT_MODULUS_BITS else "-",
                marker=marker,
                markersize=4,
                label=f"{_WAYS[way]}, {bits} bits",
            )
