"""The two steps of `dppp reproduce` on several votes: a table, a figure, a sentence each."""

import time
from collections.abc import Sequence
from pathlib import Path

from dppp.experiments.accuracy.curves import SEED, OnProgress
from dppp.experiments.artefact import Artefact
from dppp.experiments.several_votes import against_votes, company
from dppp.experiments.several_votes.against_votes import measure_votes, summarise_votes
from dppp.experiments.several_votes.company import measure_company, summarise_company
from dppp.experiments.several_votes.figures import draw_company, draw_votes
from dppp.experiments.tables import write_table


def reproduce_votes(
    datasets: Sequence[str],
    out: Path,
    *,
    splits: int = against_votes.SPLITS,
    seed: int = SEED,
    quick: bool = False,
    report: OnProgress = lambda *_: None,
) -> Artefact:
    """Accuracy against votes per organisation, and one vote of ten times as many (MNIST)."""
    started = time.monotonic()
    rows = [
        row
        for dataset in datasets
        for row in measure_votes(dataset, splits=splits, seed=seed, quick=quick, report=report)
    ]
    return Artefact(
        command="votes",
        dataset=datasets[0] if len(datasets) == 1 else None,
        summary=summarise_votes(rows),
        table=write_table(rows, out / "votes.csv"),
        figure=draw_votes(rows, out / "votes.png"),
        rows=rows,
        seconds=time.monotonic() - started,
    )


def reproduce_company(
    out: Path,
    *,
    splits: int = company.SPLITS,
    seed: int = SEED,
    quick: bool = False,
    report: OnProgress = lambda *_: None,
) -> Artefact:
    """Who gains by company: votes by size, silence, and every organisation alone."""
    started = time.monotonic()
    records = company.QUICK_RECORDS if quick else None
    rows = measure_company(splits=splits, seed=seed, records=records, report=report)
    return Artefact(
        command="company",
        dataset=company.DATASET,
        summary=summarise_company(rows),
        table=write_table(rows, out / "company.csv"),
        figure=draw_company(rows, out / "company.png"),
        rows=rows,
        seconds=time.monotonic() - started,
    )
