"""Who gains by company: organisations of unlike size that each see a part of the world.

Used by `dppp reproduce skew`. NSL-KDD-20 is dealt to 20 organisations alike (equal
sizes, or sizes that fall as 1, 1/2, 1/3) or by clusters. Each has one vote, ten, or votes in
proportion to its records; with silence, a model that is less sure than a public threshold casts an
all-zero vote. Beside every answer stands what each organisation would have by itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from dppp.experiments.accuracy.curves import OnProgress
from dppp.experiments.datasets.nsl_kdd import NslKdd, load_nsl_kdd
from dppp.experiments.several_votes.learners import Learner, connections_learner
from dppp.experiments.several_votes.shards import (
    deal_alike,
    deal_by_clusters,
    find_clusters,
    split_into_shards,
    votes_by_size,
)
from dppp.experiments.several_votes.tallies import (
    DELTA,
    QUERIES,
    certify,
    count_votes,
    races_of,
)
from dppp.experiments.teachers.stored_votes import NO_VOTE
from dppp.experiments.teachers.svm import ConnectionReader
from dppp.experiments.teachers.uneven_split import Rows
from dppp.learning.one_thread import one_thread
from dppp.learning.win_probability import accuracy_of, accuracy_without_noise

DATASET = "nsl-kdd-20"
TEACHERS = 20
VOTES = 10
SPLITS = 5
QUICK_RECORDS = 200
CLUSTERS = 50
ALPHA = 0.1
EPSILONS = (1.0, 8.0)
THRESHOLD = 0.6
"""Of predicted probability. Public, and fixed before anything was measured with it."""
DEALINGS = ("alike, equal sizes", "alike, power-law sizes", "by clusters")
WAYS = (
    "one vote",
    "ten votes",
    "votes by size",
    "ten votes, silent if unsure",
    "votes by size, silent if unsure",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyRow:
    """One dealing, one way to vote, one ε; means over the splits."""

    dataset: str
    teachers: int
    dealing: str
    way: str
    threshold: float | None
    epsilon: float
    delta: float
    queries: int
    certified: bool
    noise_deviation: float
    records_least: float
    records_most: float
    votes_total: float
    silent: float
    """The part of the votes that are all zeros."""
    accuracy_mean: float
    accuracy_std: float
    accuracy_plurality: float
    alone_mean: float
    alone_worst: float
    alone_best: float
    gainers: float
    """The part of the organisations whose own model is right less often than the answers."""
    accuracy_majority: float
    accuracy_centralised: float
    splits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    dealing: str
    way: str
    epsilon: float
    records: tuple[int, ...]
    votes: int
    silent: float
    private: float
    plurality: float
    alone: tuple[float, ...]
    majority: float
    centralised: float


@one_thread
def measure_company(
    *,
    splits: int = SPLITS,
    seed: int = 1,
    dealings: Sequence[str] = DEALINGS,
    records: int | None = None,
    report: OnProgress = lambda *_: None,
) -> list[CompanyRow]:
    """Every dealing and every way to vote on NSL-KDD-20; `records` of the test part."""
    measured: list[_Measured] = []
    for split in range(splits):
        report(split, splits)
        data = load_nsl_kdd(seed=seed + split)
        measured += measure_split(data, dealings=dealings, seed=seed + split, records=records)
    report(splits, splits)
    return company_rows(measured)


@one_thread
def measure_split(
    data: NslKdd,
    *,
    dealings: Sequence[str] = DEALINGS,
    seed: int,
    records: int | None = None,
) -> Iterator[_Measured]:
    """One split of the records, dealt in each way."""
    learner = connections_learner(data, records)
    whole, _ = learner.cast(np.arange(len(learner.labels)))
    centralised = float((whole == learner.truth).mean())
    for dealing in dealings:
        random = np.random.default_rng([seed, DEALINGS.index(dealing)])
        yield from _measure(learner, dealing, deal(data, dealing, random), centralised, random)


def deal(data: NslKdd, dealing: str, random: Generator) -> list[Rows]:
    """The rows of each organisation."""
    if dealing != "by clusters":
        sizes = "equal" if dealing == "alike, equal sizes" else "power-law"
        return deal_alike(len(data.train.labels), TEACHERS, sizes, random)
    rows = ConnectionReader.of(data.train).read(data.train)
    clusters = find_clusters(rows, CLUSTERS, int(random.integers(1 << 31)))
    return deal_by_clusters(clusters, TEACHERS, ALPHA, random)


def _measure(
    learner: Learner, dealing: str, dealt: Sequence[Rows], centralised: float, random: Generator
) -> Iterator[_Measured]:
    single, _ = count_votes(learner, dealt)
    alone = tuple((single == learner.truth).mean(axis=1).tolist())
    majority = float((learner.truth == np.bincount(learner.labels).argmax()).mean())
    seed = int(random.integers(1 << 31))
    for way in WAYS:
        # One seed for all ways: silence is compared on the same shards.
        shards = _shards(dealt, way, np.random.default_rng(seed))
        votes, counts = count_votes(learner, shards, threshold_of(way))
        races = races_of(counts, learner.truth)
        for epsilon in EPSILONS:
            noise = certify(len(dealt), epsilon, learner.classes).noise.of_teachers(len(dealt))
            yield _Measured(
                dealing=dealing,
                way=way,
                epsilon=epsilon,
                records=tuple(len(own) for own in dealt),
                votes=len(votes),
                silent=float((votes == NO_VOTE).mean()),
                private=accuracy_of(races, noise),
                plurality=accuracy_without_noise(races),
                alone=alone,
                majority=majority,
                centralised=centralised,
            )


def threshold_of(way: str) -> float | None:
    """Below which a model is silent, if the way to vote has silence."""
    return THRESHOLD if "silent" in way else None


def _shards(dealt: Sequence[Rows], way: str, random: Generator) -> list[Rows]:
    numbers = [1 if way == "one vote" else VOTES] * len(dealt)
    if "by size" in way:
        numbers = votes_by_size([len(own) for own in dealt], VOTES)
    pairs = zip(dealt, numbers, strict=True)
    return [shard for own, votes in pairs for shard in split_into_shards(own, votes, random)]


def company_rows(measured: Sequence[_Measured]) -> list[CompanyRow]:
    """Means over the splits, in the order of measurement."""
    keys = dict.fromkeys((each.dealing, each.way, each.epsilon) for each in measured)
    return [
        _row([each for each in measured if (each.dealing, each.way, each.epsilon) == key])
        for key in keys
    ]


def _row(measured: Sequence[_Measured]) -> CompanyRow:
    first = measured[0]
    teachers = len(first.records)
    certificate = certify(teachers, first.epsilon, 2)
    private = np.array([each.private for each in measured])
    alone = np.array([each.alone for each in measured])

    def mean(name: str) -> float:
        return float(np.mean([getattr(each, name) for each in measured]))

    return CompanyRow(
        dataset=DATASET,
        teachers=teachers,
        dealing=first.dealing,
        way=first.way,
        threshold=threshold_of(first.way),
        epsilon=first.epsilon,
        delta=DELTA,
        queries=QUERIES,
        certified=certificate.certified,
        noise_deviation=certificate.noise.of_teachers(teachers).variance ** 0.5,
        records_least=float(np.mean([min(each.records) for each in measured])),
        records_most=float(np.mean([max(each.records) for each in measured])),
        votes_total=mean("votes"),
        silent=mean("silent"),
        accuracy_mean=float(private.mean()),
        accuracy_std=float(private.std(ddof=1)) if len(private) > 1 else 0.0,
        accuracy_plurality=mean("plurality"),
        alone_mean=float(alone.mean()),
        alone_worst=float(alone.min(axis=1).mean()),
        alone_best=float(alone.max(axis=1).mean()),
        gainers=float((alone < private[:, None]).mean()),
        accuracy_majority=mean("majority"),
        accuracy_centralised=mean("centralised"),
        splits=len(measured),
    )


def summarise_company(rows: Sequence[CompanyRow]) -> str:
    """The last dealing: alone, and together with one vote and with the best way to vote."""
    own = [row for row in rows if row.dealing == rows[-1].dealing]
    parts = []
    for epsilon in sorted({row.epsilon for row in own}):
        ways = [row for row in own if row.epsilon == epsilon]
        best = max(ways, key=lambda row: row.accuracy_mean)
        parts.append(
            f"at ε = {epsilon:g} {ways[0].accuracy_mean:.1%} with one vote each and "
            f"{best.accuracy_mean:.1%} with {best.way} ({best.gainers:.0%} of them gain)"
        )
    first = own[0]
    return (
        f"{first.dataset}, {first.teachers} organisations, {first.dealing}: alone "
        f"{first.alone_mean:.1%} on average, the worst {first.alone_worst:.1%}, the best "
        f"{first.alone_best:.1%}; together " + ", ".join(parts) + "."
    )
