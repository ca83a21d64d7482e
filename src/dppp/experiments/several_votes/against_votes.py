"""Accuracy against the number of votes per teacher, over several ways to deal the records.

Used by `dppp reproduce votes`. Each teacher trains one model on each shard of its records and casts
as many votes as it has shards. The noise of the tally stays the same, so the votes outgrow it,
while each model learns from fewer records.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dppp.errors import InputError
from dppp.experiments.accuracy.curves import OnProgress
from dppp.experiments.several_votes.learners import Learner, learn_connections, learn_digits
from dppp.experiments.several_votes.shards import deal_alike, split_into_shards
from dppp.experiments.several_votes.tallies import (
    DELTA,
    QUERIES,
    certify,
    count_votes,
    races_of,
)
from dppp.learning.one_thread import one_thread
from dppp.learning.win_probability import accuracy_of, accuracy_without_noise

VOTES = (1, 2, 5, 10, 20)
SPLITS = 5
QUICK_RECORDS = 200
RECORDS = {"nsl-kdd-20": None, "mnist": 2_000}
"""Test records; None for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """How many organisations share the records, with how many votes each, at which ε."""

    teachers: int
    votes: tuple[int, ...]
    epsilons: tuple[float, ...]


FEDERATIONS = {
    "nsl-kdd-20": (
        Federation(teachers=20, votes=VOTES, epsilons=(1.0, 2.0, 8.0)),
        Federation(teachers=5, votes=VOTES, epsilons=(1.0, 2.0, 8.0)),
    ),
    "mnist": (
        Federation(teachers=25, votes=VOTES, epsilons=(1.0, 8.0)),
        Federation(teachers=250, votes=(1,), epsilons=(1.0, 8.0)),
    ),
}
QUICK_VOTES = (1, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesRow:
    """One number of votes at one ε; means over the splits, and what one would have without."""

    dataset: str
    teachers: int
    votes: int
    records_per_shard: int
    epsilon: float
    delta: float
    queries: int
    noise: str
    noise_deviation: float
    """Of the noise in a count, all shares added."""
    certified: bool
    accuracy_mean: float
    accuracy_std: float
    """Over the splits; the noise is averaged exactly."""
    accuracy_plurality: float
    accuracy_single: float
    accuracy_majority: float
    accuracy_centralised: float
    splits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """One split, one federation, one number of votes."""

    teachers: int
    votes: int
    private: dict[float, float]
    plurality: float
    single: float


@one_thread
def measure_votes(
    dataset: str,
    *,
    splits: int = SPLITS,
    seed: int = 1,
    quick: bool = False,
    report: OnProgress = lambda *_: None,
) -> list[VotesRow]:
    """Every federation of a dataset; quick: one number of organisations, few test records."""
    if dataset not in FEDERATIONS:
        raise InputError(f"votes are measured on {' or '.join(FEDERATIONS)}, not on {dataset!r}")
    learners = [_learner(dataset, seed + split, quick) for split in range(splits)]
    federations: tuple[Federation, ...] = FEDERATIONS[dataset]
    if quick:
        first = federations[0]
        federations = (
            Federation(teachers=first.teachers, votes=QUICK_VOTES, epsilons=first.epsilons),
        )
    return rows_of(learners, federations, seed=seed, report=report)


def _learner(dataset: str, seed: int, quick: bool) -> Learner:
    records = QUICK_RECORDS if quick else RECORDS[dataset]
    if dataset == "mnist":
        return learn_digits(records or QUICK_RECORDS)
    return learn_connections(seed, records)


@one_thread
def rows_of(
    learners: Sequence[Learner],
    federations: Sequence[Federation],
    *,
    seed: int,
    report: OnProgress = lambda *_: None,
) -> list[VotesRow]:
    """One learner for each split; all of its records are dealt anew for every federation."""
    measured: list[_Measured] = []
    for done, learner in enumerate(learners):
        report(done, len(learners))
        for federation in federations:
            measured += _measure(learner, federation, seed + done)
    majority = float(np.mean([_majority(learner) for learner in learners]))
    centralised = float(np.mean([_centralised(learner) for learner in learners]))
    report(len(learners), len(learners))
    return [
        _row(
            [each for each in measured if (each.teachers, each.votes) == (group.teachers, votes)],
            learners[0],
            epsilon,
            majority=majority,
            centralised=centralised,
        )
        for group in federations
        for epsilon in group.epsilons
        for votes in group.votes
    ]


def _majority(learner: Learner) -> float:
    commonest = np.bincount(learner.labels).argmax()
    return float((learner.truth == commonest).mean())


def _centralised(learner: Learner) -> float:
    votes, _ = learner.cast(np.arange(len(learner.labels)))
    return float((votes == learner.truth).mean())


def _measure(learner: Learner, federation: Federation, seed: int) -> Iterable[_Measured]:
    random = np.random.default_rng([seed, federation.teachers])
    dealt = deal_alike(len(learner.labels), federation.teachers, "equal", random)
    alone, _ = count_votes(learner, dealt)
    single = float((alone == learner.truth).mean())
    for votes in federation.votes:
        shards = [shard for own in dealt for shard in split_into_shards(own, votes, random)]
        _, counts = count_votes(learner, shards)
        races = races_of(counts, learner.truth)
        certificates = [
            certify(federation.teachers, epsilon, learner.classes)
            for epsilon in federation.epsilons
        ]
        yield _Measured(
            teachers=federation.teachers,
            votes=votes,
            private={
                each.promise.epsilon: accuracy_of(
                    races, each.noise.of_teachers(federation.teachers)
                )
                for each in certificates
            },
            plurality=accuracy_without_noise(races),
            single=single,
        )


def _row(
    measured: Sequence[_Measured],
    learner: Learner,
    epsilon: float,
    *,
    majority: float,
    centralised: float,
) -> VotesRow:
    teachers, votes = measured[0].teachers, measured[0].votes
    certificate = certify(teachers, epsilon, learner.classes)
    private = [each.private[epsilon] for each in measured]
    return VotesRow(
        dataset=learner.dataset,
        teachers=teachers,
        votes=votes,
        records_per_shard=len(learner.labels) // teachers // votes,
        epsilon=epsilon,
        delta=DELTA,
        queries=QUERIES,
        noise=certificate.noise.name,
        noise_deviation=certificate.noise.of_teachers(teachers).variance ** 0.5,
        certified=certificate.certified,
        accuracy_mean=float(np.mean(private)),
        accuracy_std=float(np.std(private, ddof=1)) if len(private) > 1 else 0.0,
        accuracy_plurality=float(np.mean([each.plurality for each in measured])),
        accuracy_single=float(np.mean([each.single for each in measured])),
        accuracy_majority=majority,
        accuracy_centralised=centralised,
        splits=len(measured),
    )


def summarise_votes(rows: Sequence[VotesRow]) -> str:
    """For each federation at its smallest ε: one vote, the best number, one organisation alone."""
    parts = []
    for dataset, teachers in dict.fromkeys((row.dataset, row.teachers) for row in rows):
        own = [row for row in rows if (row.dataset, row.teachers) == (dataset, teachers)]
        hardest = [row for row in own if row.epsilon == min(each.epsilon for each in own)]
        best = max(hardest, key=lambda row: row.accuracy_mean)
        parts.append(
            f"{dataset}, {teachers} organisations, ε = {best.epsilon:g}: "
            f"{hardest[0].accuracy_mean:.1%} with one vote each, {best.accuracy_mean:.1%} with "
            f"{best.votes}; one organisation alone {best.accuracy_single:.1%}, the majority class "
            f"{best.accuracy_majority:.1%}"
        )
    return "; ".join(parts) + "."
