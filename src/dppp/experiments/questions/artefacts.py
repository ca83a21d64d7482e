"""The step of `dppp reproduce` on labels and numbers: a table, a figure for each, a sentence."""

import time
from collections.abc import Sequence
from pathlib import Path

from dppp.experiments.accuracy.curves import SEED, OnProgress
from dppp.experiments.artefact import Artefact
from dppp.experiments.figures import BLUE, name_axes, new_figure, save
from dppp.experiments.questions.measure import (
    EPSILONS,
    QuestionRow,
    measure_questions,
    summarise_questions,
)
from dppp.experiments.tables import write_table


def reproduce_questions(
    out: Path,
    *,
    epsilons: Sequence[float] = EPSILONS,
    seed: int = SEED,
    quick: bool = False,
    report: OnProgress = lambda *_: None,
) -> Artefact:
    """Labels right, and errors of numbers, against ε."""
    started = time.monotonic()
    rows = measure_questions(epsilons=epsilons, seed=seed, quick=quick, report=report)
    labels = [row for row in rows if row.measure == "labels right"]
    numbers = [row for row in rows if row.measure != "labels right"]
    draw_questions(numbers, out / "questions-numbers.png")
    return Artefact(
        command="questions",
        dataset=None,
        summary=summarise_questions(rows),
        table=write_table(rows, out / "questions.csv"),
        figure=draw_questions(labels, out / "questions-labels.png"),
        rows=rows,
        seconds=time.monotonic() - started,
    )


def draw_questions(rows: Sequence[QuestionRow], path: Path) -> Path:
    """One panel per set: the private answers against ε, and lines for what one has without."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    figure, panels = new_figure(5.2 * len(datasets), 5.6, 1, len(datasets))
    for dataset, axes in zip(datasets, [panels] if len(datasets) == 1 else panels, strict=True):
        own = [row for row in rows if row.dataset == dataset]
        first, scale = own[0], 1 if "error" in own[0].measure else 100
        places = [row.epsilon for row in own]
        for words, values, line in (
            ("one model of all records", [row.centralised for row in own], "-"),
            (f"one of {first.teachers} alone", [row.alone for row in own], "-."),
            ("always the usual answer", [row.always for row in own], ":"),
        ):
            axes.plot(places, [scale * each for each in values], f"k{line}", lw=1, label=words)
        votes = [scale * row.in_clear for row in own]
        axes.plot(places, votes, color="grey", marker=".", label="the same votes without noise")
        private = [scale * row.private for row in own]
        axes.plot(places, private, color=BLUE, marker="o", label="private, average over the noise")
        axes.set_xscale("log")
        name_axes(axes, f"{dataset}: {first.records:,} records", set(places))
        axes.set_xlabel(f"ε in total for {first.queries} answers (δ = {first.delta:g})")
        axes.set_ylabel(first.measure if scale == 1 else f"{first.measure}, %")
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize="x-small")
    return save(figure, path)
