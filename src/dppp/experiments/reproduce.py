"""The paper's evaluation, step by step: tables, figures and a sentence that sums up each.

Used by `dppp reproduce`. Every step takes the folder to write to and returns an `Artefact`.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from dppp.experiments.accuracy.claims import check_delta_claims, check_epsilon_claims
from dppp.experiments.accuracy.curve_comparison import summarise_delta, summarise_epsilon
from dppp.experiments.accuracy.curves import (
    DELTA,
    FIXED_EPSILONS,
    REPETITIONS,
    SEED,
    OnProgress,
    Row,
    accuracy_by_delta,
    accuracy_by_epsilon,
)
from dppp.experiments.accuracy.encrypted import EncryptedPoint, deal_for, run_encrypted
from dppp.experiments.artefact import Artefact
from dppp.experiments.costs.overhead import (
    MODULUS_BITS,
    TEACHERS,
    draw_overhead,
    measure_overhead,
    summarise_overhead,
)
from dppp.experiments.figures import draw_accuracy
from dppp.experiments.skew import draw_skew, measure_skew, summarise_skew
from dppp.experiments.tables import write_table
from dppp.experiments.teachers.ensembles import load_ensemble
from dppp.experiments.teachers.stored_votes import StoredVotes

BEST, BINOMIAL = ("best", "exact"), ("binomial", "paper")
ENCRYPTED = {
    "mnist": (20, (BEST,)),
    "nsl-kdd-20": (200, (BEST, BINOMIAL)),
    "breast-cancer": (190, (BEST, BINOMIAL)),
}
"""How many records of each dataset also go through the real protocol, with which noise."""


def reproduce_epsilon(
    dataset: str,
    out: Path,
    *,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
    with_encryption: bool = True,
    report: OnProgress = lambda *_: None,
) -> Artefact:
    """Accuracy against ε (Fig. 2), the claims on it, and a point through the real protocol."""
    votes = load_ensemble(dataset)
    started = time.monotonic()
    rows = accuracy_by_epsilon(votes, repetitions=repetitions, seed=seed, report=report)
    name = f"accuracy-epsilon-{dataset}"
    table = write_table(rows, out / f"{name}.csv")
    figure = draw_accuracy(
        rows,
        f"{dataset}: {votes.teachers} teachers, δ = {DELTA:g} per query, {repetitions} repetitions",
        against="epsilon",
        path=out / f"{name}.png",
    )
    seconds = time.monotonic() - started
    points = encrypted_points(votes) if with_encryption else []
    return Artefact(
        command="accuracy-epsilon",
        dataset=dataset,
        summary=summarise_epsilon(votes, rows),
        table=table,
        figure=figure,
        rows=rows,
        claims=check_epsilon_claims(rows, dataset=dataset),
        encrypted=points,
        seconds=seconds,
    )


def reproduce_delta(
    dataset: str,
    out: Path,
    *,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
    by_epsilon: Sequence[Row] | None = None,
    report: OnProgress = lambda *_: None,
) -> Artefact:
    """Accuracy against δ (Fig. 3), and whether ε matters more; rows against ε if there are any."""
    votes = load_ensemble(dataset)
    started = time.monotonic()
    rows = accuracy_by_delta(votes, repetitions=repetitions, seed=seed, report=report)
    other = by_epsilon or accuracy_by_epsilon(votes, repetitions=repetitions, seed=seed)
    name = f"accuracy-delta-{dataset}"
    epsilon = FIXED_EPSILONS[dataset]
    claims = check_delta_claims(other, rows)
    return Artefact(
        command="accuracy-delta",
        dataset=dataset,
        summary=summarise_delta(other, rows, epsilon),
        table=write_table(rows, out / f"{name}.csv"),
        figure=draw_accuracy(
            rows,
            f"{dataset}: {votes.teachers} teachers, ε = {epsilon:g} per query, "
            f"{repetitions} repetitions",
            against="delta",
            path=out / f"{name}.png",
        ),
        rows=rows,
        claims=claims,
        seconds=time.monotonic() - started,
    )


def reproduce_overhead(
    out: Path,
    *,
    teachers: Sequence[int] = TEACHERS,
    modulus_bits: Sequence[int] = MODULUS_BITS,
    report: OnProgress = lambda *_: None,
) -> Artefact:
    """Time and bytes of a teacher and the aggregator, the paper's way and ours."""
    started = time.monotonic()
    rows = measure_overhead(teachers=teachers, modulus_bits=modulus_bits, report=report)
    return Artefact(
        command="overhead",
        dataset=None,
        summary=summarise_overhead(rows),
        table=write_table(rows, out / "overhead.csv"),
        figure=draw_overhead(rows, out / "overhead.png"),
        rows=rows,
        seconds=time.monotonic() - started,
    )


def reproduce_skew(
    datasets: Sequence[str],
    out: Path,
    *,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
    report: OnProgress = lambda *_: None,
) -> Artefact:
    """Accuracy against label skew, with equal and power-law sizes, with and without silence."""
    started = time.monotonic()
    rows = [
        row
        for dataset in datasets
        for row in measure_skew(dataset, repetitions=repetitions, seed=seed, report=report)
    ]
    return Artefact(
        command="skew",
        dataset=datasets[0] if len(datasets) == 1 else None,
        summary=summarise_skew(rows),
        table=write_table(rows, out / "skew.csv"),
        figure=draw_skew(rows, out / "skew.png"),
        rows=rows,
        seconds=time.monotonic() - started,
    )


def encrypted_points(votes: StoredVotes) -> list[EncryptedPoint]:
    """Some records at the dataset's ε, 2048 bits; both noises have a certificate."""
    if votes.dataset not in ENCRYPTED:
        return []
    records, chosen = ENCRYPTED[votes.dataset]
    some = votes.slice(records)
    key, epsilon = deal_for(some), FIXED_EPSILONS[votes.dataset]
    return [
        run_encrypted(
            some, epsilon=epsilon, delta=DELTA, family=family, calibration=calibration, key=key
        )
        for family, calibration in chosen
    ]
