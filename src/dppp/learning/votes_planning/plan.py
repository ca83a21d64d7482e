"""How many votes each teacher should cast, and what they give, before anything is deployed.

A teacher with v votes has v models, each trained on its own shard of the records. Changing one
record moves one vote, whatever v is: the noise does not grow with v, and the votes do. But the
shards shrink and the models get worse. `plan_votes` weighs the two: for each v the accuracy
expected over all noise, computed from the noise's masses and a forecast of the votes.

The promise of several votes covers a record (or a person whose records are in one shard). Only one
vote per teacher covers a whole teacher.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dppp.errors import InputError, UncertifiedError
from dppp.learning.choosing_votes import RECORDS_PER_CLASS, choose_votes
from dppp.learning.planning import best_noise
from dppp.learning.votes_planning.forecast import Forecast, VoteSource
from dppp.learning.win_probability import accuracy_of, accuracy_without_noise
from dppp.privacy.certificate import Promise
from dppp.privacy.noise import Noise
from dppp.privacy.trust import Trust
from dppp.whole_numbers import require_whole

_EPSILON_TIMES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesOutlook:
    """What so many votes of each teacher give."""

    votes: int
    records_per_shard: int
    shards: int
    shards_measured: int | None
    accuracy_expected: float
    accuracy_without_noise: float
    accuracy_single: float
    correlation: float | None
    is_guess: bool
    is_flat: bool

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The best that can be had when one thing is different."""

    teachers: int
    epsilon: float
    votes_best: int
    accuracy_expected: float

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesPlan:
    """Accuracy against votes; at least one number of votes could be worked out."""

    trust: Trust
    promise: Promise
    records: int
    noise: Noise
    """Of the honest shares."""
    by_votes: tuple[VotesOutlook, ...]
    unmeasured: tuple[int, ...]
    """Numbers of votes for which the public table has too few records."""
    votes_most: int
    votes_rule: int
    accuracy_majority: float | None
    held_out: int | None
    next_teacher: Change | None
    """None where one more teacher contradicts the colluders and dropouts that were given."""
    larger_epsilon: Change | None
    """None where so large an ε has no noise that can be certified: less needs no more."""

    @property
    def best(self) -> VotesOutlook:
        """The most accurate, the fewest votes of those; guesses only if there is nothing else."""
        return _best(self.by_votes)

    @property
    def rule(self) -> VotesOutlook | None:
        """What the rule would choose, if it could be worked out."""
        return next((each for each in self.by_votes if each.votes == self.votes_rule), None)

    @property
    def tally_deviation(self) -> float:
        """Standard deviation of the noise in a count: the shares of all teachers."""
        return math.sqrt(self.noise.of_teachers(self.trust.teachers).variance)

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {
            "teachers": self.trust.teachers,
            "colluders": self.trust.colluders,
            "dropouts": self.trust.dropouts,
            "honest_shares": self.trust.honest_shares,
            "classes": self.promise.classes,
            "epsilon": self.promise.epsilon,
            "delta": self.promise.delta,
            "queries": self.promise.queries,
            "records": self.records,
            "noise": self.noise.name,
            "variance": self.noise.variance,
            "tally_deviation": self.tally_deviation,
            "by_votes": [each.to_json() for each in self.by_votes],
            "votes_unmeasured": list(self.unmeasured),
            "votes_most": self.votes_most,
            "votes_best": self.best.votes,
            "accuracy_expected": self.best.accuracy_expected,
            "votes_rule": self.votes_rule,
            "accuracy_rule": None if self.rule is None else self.rule.accuracy_expected,
            "accuracy_majority": self.accuracy_majority,
            "held_out": self.held_out,
            "next_teacher": None if self.next_teacher is None else self.next_teacher.to_json(),
            "larger_epsilon": (
                None if self.larger_epsilon is None else self.larger_epsilon.to_json()
            ),
        }


def plan_votes(
    source: VoteSource,
    *,
    teachers: int,
    colluders: int | None = None,
    dropouts: int | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    queries: int = 100,
    votes: Sequence[int] | None = None,
) -> VotesPlan:
    """Accuracy for each number of votes, what is best, and what would change it.

    `votes` are the numbers to try besides 1 and the rule's: by default 2, 5, 10, 20, … up to what
    the records allow.
    """
    trust = Trust.with_defaults(teachers, colluders, dropouts)
    promise = Promise(epsilon=epsilon, delta=delta, queries=queries, classes=source.classes)
    most = most_votes(source.records, source.classes)
    noise = best_noise(promise, trust)
    rule = _votes_by_rule(noise, trust.teachers, source)
    tried = sorted({1, rule, *(_grid(most) if votes is None else _within(votes, source, most))})
    forecasts = {count: source.forecast(count, trust.teachers) for count in tried}
    known = {count: each for count, each in forecasts.items() if each is not None}
    if not known:
        raise InputError(
            f"the table is too small to show how models of {source.records // tried[-1]:,} records "
            "vote",
            hint="take a larger table, or lower --records",
        )

    def outlooks(noise: Noise, teachers: int) -> tuple[VotesOutlook, ...]:
        shard_of = {count: max(1, source.records // count) for count in known}
        return tuple(
            _outlook(each, count, shard_of[count], teachers, noise) for count, each in known.items()
        )

    return VotesPlan(
        trust=trust,
        promise=promise,
        records=source.records,
        noise=noise,
        by_votes=outlooks(noise, trust.teachers),
        unmeasured=tuple(count for count in tried if count not in known),
        votes_most=most,
        votes_rule=rule,
        accuracy_majority=source.accuracy_majority,
        held_out=source.held_out,
        next_teacher=_next_teacher(outlooks, promise, trust, colluders, dropouts),
        larger_epsilon=_larger_epsilon(outlooks, promise, trust),
    )


def most_votes(records: int, classes: int) -> int:
    """So many that a shard has at least RECORDS_PER_CLASS records for each class; at least 1."""
    return max(1, records // (RECORDS_PER_CLASS * classes))


def _votes_by_rule(noise: Noise, teachers: int, source: VoteSource) -> int:
    """What `votes="auto"` chooses, from public numbers only."""
    records = (source.records,) * teachers
    chosen = choose_votes(
        "auto", unit="record", noise=noise, records=records, classes=source.classes
    )
    return chosen.per_teacher[0]


def _grid(most: int) -> Iterable[int]:
    """1, 2, 5, 10, 20, … and the most."""
    decades = range(len(str(most)))
    return {most, *(k * 10**d for d in decades for k in (1, 2, 5) if k * 10**d <= most)}


def _within(votes: Sequence[int], source: VoteSource, most: int) -> list[int]:
    counts = [require_whole("votes per teacher", each) for each in votes]
    for count in counts:
        if count > most:
            raise InputError(
                f"{count} votes of {source.records:,} records are shards of "
                f"{source.records // count}; {source.classes} classes need "
                f"{RECORDS_PER_CLASS * source.classes}",
                hint=f"try at most {most} votes per teacher",
            )
    return counts


def _outlook(
    forecast: Forecast, votes: int, shard: int, teachers: int, noise: Noise
) -> VotesOutlook:
    races = forecast.votes.races(votes * teachers)
    return VotesOutlook(
        votes=votes,
        records_per_shard=shard,
        shards=votes * teachers,
        shards_measured=forecast.shards_measured,
        accuracy_expected=accuracy_of(races, noise.of_teachers(teachers)),
        accuracy_without_noise=accuracy_without_noise(races),
        accuracy_single=forecast.accuracy_single,
        correlation=forecast.correlation,
        is_guess=forecast.is_guess,
        is_flat=forecast.is_flat,
    )


_Outlooks = Callable[[Noise, int], tuple[VotesOutlook, ...]]


def _best(found: Sequence[VotesOutlook]) -> VotesOutlook:
    covered = [each for each in found if not each.is_guess] or found
    return max(covered, key=lambda each: (round(each.accuracy_expected, 6), -each.votes))


def _change(outlooks: _Outlooks, promise: Promise, trust: Trust) -> Change:
    best = _best(outlooks(best_noise(promise, trust), trust.teachers))
    return Change(
        teachers=trust.teachers,
        epsilon=promise.epsilon,
        votes_best=best.votes,
        accuracy_expected=best.accuracy_expected,
    )


def _next_teacher(
    outlooks: _Outlooks,
    promise: Promise,
    trust: Trust,
    colluders: int | None,
    dropouts: int | None,
) -> Change | None:
    """With as many records as the others; colluders and dropouts as they were given."""
    try:
        grown = Trust.with_defaults(trust.teachers + 1, colluders, dropouts)
    except InputError:
        return None
    return _change(outlooks, promise, grown)


def _larger_epsilon(outlooks: _Outlooks, promise: Promise, trust: Trust) -> Change | None:
    larger = replace(promise, epsilon=_EPSILON_TIMES * promise.epsilon)
    try:
        return _change(outlooks, larger, trust)
    except UncertifiedError:
        return None
