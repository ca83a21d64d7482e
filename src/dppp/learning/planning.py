"""What to expect before anything is deployed: accuracy, queries and teachers for a budget.

For a vote matrix or an expected margin, `plan` works out

1. the accuracy against ε, for each family of noise;
2. the accuracy as the number of queries grows, and how many a budget buys;
3. the smallest number of teachers that makes it useful.

Where the noise drowns the votes (`Odds.is_chance`) smaller ε and more queries are not worked out:
they only add noise, and the wider it is the longer it takes.

Noise is sized so that the honest shares alone keep the promise, but every teacher adds a share: the
accuracies here are those of a tally of all N, noisier than what privacy counts on. Dropouts take
votes and noise away alike. Nothing is drawn at random.
"""

import functools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dppp.errors import InputError, UncertifiedError
from dppp.learning.votes import count_votes
from dppp.learning.win_probability import (
    ExpectedMargin,
    VoteForecast,
    accuracy_of,
    accuracy_without_noise,
    odds_of,
)
from dppp.privacy.accounting import least_delta
from dppp.privacy.calibration import calibrate_for
from dppp.privacy.certificate import Promise
from dppp.privacy.noise import (
    FAMILIES,
    Noise,
    Polya,
    Skellam,
)
from dppp.privacy.trust import Trust

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
QUERIES = (1, 10, 100, 1_000, 10_000)
MOST_PLANNED_QUERIES = 100_000
MOST_TEACHERS = 1_000_000
"""Where the two searches end."""

_STEPS_PER_DECADE = 10
_TEACHER_STEPS = 1_000
"""Numbers of teachers are told apart up to one part in this many."""

_FEW_QUERIES = 10
"""From here on Skellam is as good as Pólya (docs/privacy.md, section 3), and is found sooner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What one calibration means for accuracy."""

    epsilon: float
    queries: int
    noise: str
    variance: float
    """Of the honest shares, per class."""
    tally_variance: float
    """Of the shares of all teachers, per class."""
    accuracy: float
    at_chance: bool
    """The noise drowns the votes: it might as well be guessed."""

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a budget buys."""

    votes: VoteForecast
    trust: Trust
    promise: Promise
    target_accuracy: float
    accuracy_without_noise: float
    by_epsilon: tuple[Outlook, ...]
    by_queries: tuple[Outlook, ...]
    most_queries: int | None
    """Up to MOST_PLANNED_QUERIES, above ten in ten steps a decade; None if not even one does."""
    fewest_teachers: int | None
    """Above 1,000 to three digits; None if none up to MOST_TEACHERS are enough."""

    @property
    def right_means(self) -> str:
        """What accuracy is measured against: the label, or the class with the most votes."""
        is_known = not isinstance(self.votes, ExpectedMargin) and self.votes.labels is not None
        return "label" if is_known else "plurality"

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        margin = self.votes.margin if isinstance(self.votes, ExpectedMargin) else None
        return {
            "teachers": self.trust.teachers,
            "colluders": self.trust.colluders,
            "dropouts": self.trust.dropouts,
            "honest_shares": self.trust.honest_shares,
            "classes": self.promise.classes,
            "epsilon": self.promise.epsilon,
            "delta": self.promise.delta,
            "queries": self.promise.queries,
            "accuracy_margin": margin,
            "right_means": self.right_means,
            "accuracy_without_noise": self.accuracy_without_noise,
            "by_epsilon": [each.to_json() for each in self.by_epsilon],
            "by_queries": [each.to_json() for each in self.by_queries],
            "target_accuracy": self.target_accuracy,
            "most_queries": self.most_queries,
            "fewest_teachers": self.fewest_teachers,
        }


def plan(
    *,
    teachers: int | None = None,
    accuracy_margin: float | None = None,
    votes: Any = None,
    labels: Any = None,
    classes: int | None = None,
    colluders: int | None = None,
    dropouts: int | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    queries: int = 100,
    target_accuracy: float = 0.9,
    epsilons: Sequence[float] = EPSILONS,
) -> Plan:
    """What (ε, δ) over all `queries` buys, for a vote matrix or an expected margin.

    `votes` has a row per query and a column per teacher; `labels` are the true classes, if known.
    """
    given, teachers = _votes(teachers, accuracy_margin, votes, labels, classes)
    _require_target(target_accuracy, given.classes)
    promise = Promise(epsilon=epsilon, delta=delta, queries=queries, classes=given.classes)
    trust = Trust.with_defaults(teachers, colluders, dropouts)
    planner = _Planner(given, trust, promise)
    return Plan(
        votes=given,
        trust=trust,
        promise=promise,
        target_accuracy=target_accuracy,
        accuracy_without_noise=accuracy_without_noise(given.races(teachers)),
        by_epsilon=tuple(planner.by_epsilon({*epsilons, epsilon})),
        by_queries=tuple(planner.by_queries()),
        most_queries=planner.most_queries(target_accuracy),
        fewest_teachers=planner.fewest_teachers(target_accuracy, colluders, dropouts),
    )


def _require_target(target: float, classes: int) -> None:
    if not 1 / classes < target <= 1:
        raise InputError(
            f"the target accuracy must be above 1/{classes}, which guessing reaches, and at most "
            f"1, got {target!r}",
            hint="for example 0.9",
        )


def _votes(
    teachers: int | None,
    accuracy_margin: float | None,
    votes: Any,
    labels: Any,
    classes: int | None,
) -> tuple[VoteForecast, int]:
    if (accuracy_margin is None) == (votes is None):
        raise InputError(
            "it takes either an accuracy margin or votes, and not both", hint="give one of them"
        )
    if accuracy_margin is not None:
        if teachers is None:
            raise InputError(
                "nothing says how many teachers vote",
                hint="give their number: teachers or --teachers",
            )
        margin = ExpectedMargin(margin=accuracy_margin, classes=10 if classes is None else classes)
        return margin, teachers
    observed = count_votes(votes, labels, classes=classes)
    if teachers is not None and teachers != observed.teachers:
        raise InputError(
            f"the votes are of {observed.teachers} teachers, not of {teachers}",
            hint="leave the number of teachers out",
        )
    return observed, observed.teachers


class _Planner:
    """One set of votes and a promise."""

    def __init__(self, votes: VoteForecast, trust: Trust, promise: Promise) -> None:
        self._votes = votes
        self._trust = trust
        self._promise = promise
        self._races = votes.races(trust.teachers)
        self.best = functools.cache(self._best)

    def by_epsilon(self, epsilons: Collection[float]) -> list[Outlook]:
        """Accuracy against ε for each family, down to where the noise drowns the votes."""
        found: list[Outlook] = []
        for epsilon in sorted(epsilons, reverse=True):
            best = self._best(self._promise.queries, epsilon)
            if best is not None and best.at_chance:
                return [best, *found]
            found = [*self._each_family(epsilon), *found]
        return found

    def _each_family(self, epsilon: float) -> Iterator[Outlook]:
        """A family that cannot be certified at an ε is left out there."""
        for name in FAMILIES:
            try:
                noise = self._noise(name, epsilon, self._promise.queries)
            except UncertifiedError:
                continue
            yield self._outlook(noise, epsilon, self._promise.queries)

    def _best(self, queries: int, epsilon: float) -> Outlook | None:
        """The outlook with the best of the noise that any number shares; None if uncertifiable."""
        try:
            noise = self._best_noise(queries, epsilon)
        except UncertifiedError:
            return None
        return self._outlook(noise, epsilon, queries)

    def _best_noise(self, queries: int, epsilon: float) -> Skellam | Polya:
        return best_noise(replace(self._promise, epsilon=epsilon, queries=queries), self._trust)

    def _noise(self, name: str, epsilon: float, queries: int) -> Noise:
        promise = replace(self._promise, epsilon=epsilon, queries=queries)
        return _calibrated(name, promise, self._trust)

    def _outlook(self, noise: Noise, epsilon: float, queries: int) -> Outlook:
        tally = noise.of_teachers(self._trust.teachers)
        odds = odds_of(self._races, tally)
        return Outlook(
            epsilon=epsilon,
            queries=queries,
            noise=noise.name,
            variance=noise.variance,
            tally_variance=tally.variance,
            accuracy=odds.accuracy,
            at_chance=odds.is_chance,
        )

    def by_queries(self) -> Iterator[Outlook]:
        """Accuracy for more and more queries, as far as votes matter and noise is certifiable."""
        for count in self._computable(QUERIES):
            outlook = self.best(count, self._promise.epsilon)
            if outlook is None:
                return
            yield outlook
            if outlook.at_chance:
                return

    def _computable(self, counts: Sequence[int]) -> list[int]:
        """Those for which a δ as small as the promised one can be told from rounding."""
        return [count for count in counts if least_delta(count) <= self._promise.delta]

    def most_queries(self, target: float) -> int | None:
        """The largest number of a geometric grid that reaches the target."""
        grid = self._computable(_geometric_grid(MOST_PLANNED_QUERIES))
        tried = {each.queries: each.accuracy for each in self.by_queries()}
        reached = [count for count, accuracy in tried.items() if accuracy >= target]
        if not reached:
            return None
        low = grid.index(max(reached))
        high = min((grid.index(count) for count in tried if count > grid[low]), default=len(grid))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._reaches(target, grid[middle]) else (low, middle)
        return grid[low]

    def _reaches(self, target: float, queries: int) -> bool:
        outlook = self.best(queries, self._promise.epsilon)
        return outlook is not None and outlook.accuracy >= target

    def fewest_teachers(
        self, target: float, colluders: int | None, dropouts: int | None
    ) -> int | None:
        """The smallest number, with the same margins and parts of colluders and dropouts.

        Whole numbers of colluders and dropouts make the noise of all shares go up and down a little
        with a period of ten teachers, so the twenty numbers below a small one are tried as well.
        """
        noise = self._best_noise(self._promise.queries, self._promise.epsilon)

        def is_enough(teachers: int) -> bool:
            trust = self._scaled_trust(teachers, colluders, dropouts)
            if trust is None:
                return False
            tally = noise.shared_among(trust.honest_shares).of_teachers(teachers)
            return accuracy_of(self._votes.races(teachers), tally) >= target

        now = self._trust.teachers
        low, high = (1, 4) if is_enough(now) else (now, now)
        while not is_enough(high):
            if high >= MOST_TEACHERS:
                return None
            low, high = high, min(2 * high, MOST_TEACHERS)
        step = max(1, high // _TEACHER_STEPS)
        while high - low > step:
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        if step > 1:
            return high
        return next(count for count in range(max(2, high - 20), high + 1) if is_enough(count))

    def _scaled_trust(
        self, teachers: int, colluders: int | None, dropouts: int | None
    ) -> Trust | None:
        """The same parts of other numbers; None where these numbers contradict one another."""
        now = self._trust.teachers
        try:
            return Trust.with_defaults(
                teachers,
                None if colluders is None else colluders * teachers // now,
                None if dropouts is None else dropouts * teachers // now,
            )
        except InputError:
            return None


def best_noise(promise: Promise, trust: Trust) -> Skellam | Polya:
    """The better of the two families that any number of teachers can share."""
    names = (Skellam.name, Polya.name) if promise.queries < _FEW_QUERIES else (Skellam.name,)
    found = min(
        (_calibrated(name, promise, trust) for name in names), key=lambda noise: noise.variance
    )
    assert isinstance(found, Skellam | Polya), "the two that any number of teachers can share"
    return found


@functools.lru_cache(maxsize=1024)
def _calibrated(name: str, promise: Promise, trust: Trust) -> Noise:
    """Calibrate once: people change the margin or the target and ask again."""
    return calibrate_for(name, promise, trust).noise


def _geometric_grid(last: int) -> list[int]:
    """Every number up to ten, then ten steps a decade up to `last`, two digits each."""
    decades = round(math.log10(last))
    steps = (10 ** (step / _STEPS_PER_DECADE) for step in range(decades * _STEPS_PER_DECADE + 1))
    return sorted({*range(1, 11), *(int(float(f"{value:.2g}")) for value in steps)})
