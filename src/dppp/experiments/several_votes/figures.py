"""Figures of this folder: accuracy against votes, and who gains by company."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dppp.experiments.figures import BLUE, VERMILION, name_axes, new_figure, save
from dppp.experiments.several_votes.against_votes import VotesRow
from dppp.experiments.several_votes.company import CompanyRow

_COLOURS = {1.0: BLUE, 2.0: "#009E73", 8.0: VERMILION}


def draw_votes(rows: Sequence[VotesRow], path: Path) -> Path:
    """One panel per federation: a curve for each ε, and what one has without.

    A federation that was measured with one number of votes only is marks beside the others.
    """
    federations = list(dict.fromkeys((row.dataset, row.teachers) for row in rows))
    measured = {each: _of(rows, *each) for each in federations}
    curves = {each: own for each, own in measured.items() if len({row.votes for row in own}) > 1}
    figure, panels = new_figure(4.2 * len(curves), 5.4, 1, len(curves))
    for ((dataset, teachers), own), axes in zip(curves.items(), np.atleast_1d(panels), strict=True):
        _draw_without(axes, own)
        _draw_federation(axes, own, "o")
        for (other, _), marks in measured.items():
            if other == dataset and marks not in curves.values():
                _draw_federation(axes, marks, "D")
        axes.set_xscale("log")
        name_axes(axes, f"{dataset}: {teachers} organisations", {row.votes for row in own})
        axes.set_xlabel("votes per organisation")
        axes.set_ylabel("right labels, %")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), fontsize="small")
    first = rows[0]
    figure.suptitle(f"δ = {first.delta:g}, {first.queries} answers in total", fontsize="medium")
    return save(figure, path)


def _of(rows: Sequence[VotesRow], dataset: str, teachers: int) -> list[VotesRow]:
    return [row for row in rows if (row.dataset, row.teachers) == (dataset, teachers)]


def _draw_without(axes: Any, rows: Sequence[VotesRow]) -> None:
    first = rows[0]
    for words, level, line in (
        ("one model of all records", first.accuracy_centralised, "-"),
        (f"one of {first.teachers} alone", first.accuracy_single, "-."),
        ("majority class", first.accuracy_majority, ":"),
    ):
        label = f"{words} ({level:.1%})"
        axes.axhline(100 * level, color="black", linestyle=line, linewidth=1, label=label)


def _draw_federation(axes: Any, rows: Sequence[VotesRow], marker: str) -> None:
    for epsilon in sorted({row.epsilon for row in rows}):
        points = [row for row in rows if row.epsilon == epsilon]
        axes.errorbar(
            [row.votes for row in points],
            [100 * row.accuracy_mean for row in points],
            yerr=[100 * row.accuracy_std for row in points],
            color=_COLOURS.get(epsilon, "grey"),
            marker=marker,
            markersize=5 if marker == "o" else 7,
            markerfacecolor="white" if marker == "D" else None,
            label=f"ε = {epsilon:g}"
            if marker == "o"
            else f"{points[0].teachers} organisations, one vote each, ε = {epsilon:g}",
        )


def draw_company(rows: Sequence[CompanyRow], path: Path) -> Path:
    """One panel per dealing: every way to vote, beside the organisations alone."""
    dealings = list(dict.fromkeys(row.dealing for row in rows))
    figure, panels = new_figure(4 * len(dealings), 4.6, 1, len(dealings))
    for number, (dealing, axes) in enumerate(zip(dealings, np.atleast_1d(panels), strict=True)):
        own = [row for row in rows if row.dealing == dealing]
        ways = list(dict.fromkeys(row.way for row in own))
        _draw_alone(axes, own[0])
        _draw_ways(axes, own, ways)
        axes.set_yticks(range(len(ways)), ways if number == 0 else [""] * len(ways))
        axes.invert_yaxis()
        axes.set_title(dealing, fontsize="medium", loc="left")
        axes.set_xlabel("right labels, %")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize="x-small")
    first = rows[0]
    figure.suptitle(
        f"{first.dataset}: {first.teachers} organisations, δ = {first.delta:g}, "
        f"{first.queries} answers in total",
        fontsize="medium",
    )
    return save(figure, path)


def _draw_alone(axes: Any, row: CompanyRow) -> None:
    for words, level, line in (
        ("alone, worst", row.alone_worst, ":"),
        ("alone, average", row.alone_mean, "-."),
        ("alone, best", row.alone_best, "-"),
    ):
        label = f"{words} ({level:.1%})"
        axes.axvline(100 * level, color="black", linestyle=line, linewidth=1, label=label)


def _draw_ways(axes: Any, rows: Sequence[CompanyRow], ways: Sequence[str]) -> None:
    for epsilon in sorted({row.epsilon for row in rows}):
        points = [row for row in rows if row.epsilon == epsilon]
        axes.errorbar(
            [100 * row.accuracy_mean for row in points],
            [ways.index(row.way) for row in points],
            xerr=[100 * row.accuracy_std for row in points],
            color=_COLOURS.get(epsilon, "grey"),
            linestyle="",
            marker="o" if epsilon == min(_COLOURS) else "D",
            markersize=6,
            label=f"together, ε = {epsilon:g}",
        )
