"""How likely the class that should win does win a noisy tally: computed, not sampled.

Used by planning and by the verdict. Every count of a tally is a number of votes plus noise, and the
noise of one class is independent of that of another. A *race* is all that matters of one query: the
lead in votes of the class that should win over each of the others. With p the noise's masses and
F(x) = P(noise < x) that class wins with probability

    Σ_x p(x) ∫₀¹ Π_k (F(x + lead_k) + u p(x + lead_k)) du,                              (W1)

where the integral breaks ties evenly: each class draws a ticket, and u is the winner's. It is a
polynomial in u, so Gauss and Legendre's rule gives it without error.
"""

import functools
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.privacy.noise import Noise, pmf_of
from dppp.privacy.pmf import Floats
from dppp.whole_numbers import keep_whole, require_whole

_TAIL = 1e-15
"""Noise rarer than this, at either end, is left out: with K classes an error below K * 2e-15."""

_POINTS_PER_DEVIATION = 10
"""Wide noise is summed at this many points in a standard deviation.

The terms are smooth on that scale, and the error is below 1e-10 (tested). Noise with a point in
the middle is summed at every value.
"""

_LEAST_INFLUENCE = 0.005
"""Half a per cent: what nobody would notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Leads in votes of the class that should win, and which part of the queries looks like it."""

    leads: tuple[int, ...]
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMargin:
    """The leading class has `margin` of the votes more than any other; the others have equal votes.

    All others as strong as the runner-up is the hardest case for a margin.
    """

    margin: float
    classes: int = 10

    def __post_init__(self) -> None:
        if not 0 < self.margin <= 1:
            raise InputError(
                f"the margin must be above 0 and at most 1, got {self.margin!r}",
                hint=(
                    "0.4 means that the leading class has 40 % of the votes more than the runner-up"
                ),
            )
        keep_whole(self, "classes", least=2)

    def races(self, teachers: int) -> tuple[Race, ...]:
        """A lead between two whole numbers of votes is the one or the other, right on average."""
        lead = self.margin * teachers
        below = int(lead + 1e-9)
        part = max(0.0, lead - below)
        others = self.classes - 1
        races = (
            Race(leads=(below,) * others, weight=1 - part),
            Race(leads=(below + 1,) * others, weight=part),
        )
        return tuple(race for race in races if race.weight > 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedVotes:
    """Votes for each class, a row per query; the label that is right, where it is known."""

    counts: NDArray[np.int64]
    labels: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.counts.ndim != 2 or self.counts.shape[0] < 1:
            raise InputError(
                "the votes hold no query",
                hint="give one row per query and one column per class",
            )
        require_whole("classes", self.classes, least=2)
        if np.any(self.counts < 0) or len(set(self.counts.sum(axis=1).tolist())) > 1:
            raise InputError("every teacher votes once in every query; the counts do not add up")
        labels = self.labels
        if labels is None:
            return
        if labels.shape != (len(self.counts),) or not np.all(
            (labels >= 0) & (labels < self.classes)
        ):
            raise InputError("give the number of the right class, from 0, for every query")

    @property
    def teachers(self) -> int:
        """Votes in every query."""
        return int(self.counts[0].sum())

    @property
    def classes(self) -> int:
        """Classes to vote on."""
        return int(self.counts.shape[1])

    def races(self, teachers: int) -> tuple[Race, ...]:
        """The same votes in proportion, to whole votes; without labels any leader may win."""
        scaled = np.rint(self.counts * (teachers / self.teachers)).astype(np.int64)
        seen: Counter[tuple[int, ...]] = Counter()
        for place, row in enumerate(scaled):
            if self.labels is None:
                right, winners = int(row.argmax()), int(np.sum(row == row.max()))
            else:
                right, winners = int(self.labels[place]), 1
            seen[tuple(sorted((row[right] - np.delete(row, right)).tolist()))] += winners
        return tuple(Race(leads=leads, weight=times / len(scaled)) for leads, times in seen.items())


VoteForecast = ExpectedMargin | ObservedVotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """What noise leaves of the votes."""

    accuracy: float
    """The part of the queries that the right class wins."""
    influence: float
    """How far votes move a class's chance from that of every class alike, on average."""

    @property
    def is_chance(self) -> bool:
        """Whether the noise drowns the votes; more of it changes nothing any more."""
        return self.influence < _LEAST_INFLUENCE


def odds_of(races: tuple[Race, ...], noise: Noise) -> Odds:
    """Accuracy and influence of the votes; `noise` is that of every share added.

    Influence is a mean of distances: right and wrong majorities do not cancel in it.
    """
    tally = _TallyNoise.of(noise)
    chances = [(race, tally.win_probability(race.leads)) for race in races]
    accuracy = math.fsum(race.weight * chance for race, chance in chances)
    influence = math.fsum(
        race.weight * abs(chance - 1 / (1 + len(race.leads))) for race, chance in chances
    )
    return Odds(accuracy=min(1.0, max(0.0, accuracy)), influence=influence)


def chances_of_label(counts: NDArray[np.int64], labels: NDArray[np.int64], noise: Noise) -> Floats:
    """How likely the right class wins each query, over all noise; `noise` is of every share."""
    tally = _TallyNoise.of(noise)
    votes = counts[np.arange(len(counts)), labels]
    leads = votes[:, None] - counts
    is_other = np.arange(counts.shape[1]) != labels[:, None]
    races = np.sort(leads[is_other].reshape(len(counts), -1), axis=1)
    distinct, places = np.unique(races, axis=0, return_inverse=True)
    chances = np.array([tally.win_probability(tuple(race.tolist())) for race in distinct])
    return np.asarray(chances[places.reshape(-1)])


def accuracy_of(races: tuple[Race, ...], noise: Noise) -> float:
    """The accuracy alone."""
    return odds_of(races, noise).accuracy


def lead_needed(noise: Noise, classes: int, *, chance: float) -> int:
    """The smallest lead over every other class that wins with this chance."""
    tally = _TallyNoise.of(noise)

    def is_enough(lead: int) -> bool:
        return tally.win_probability((lead,) * (classes - 1)) >= chance

    low, high = -1, len(tally.masses)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def accuracy_without_noise(races: tuple[Race, ...]) -> float:
    """The same without noise, ties broken evenly.

    Noise may also add to it, where most teachers are wrong: at the worst it is as good as guessing.
    """
    return min(1.0, math.fsum(race.weight * _wins_without_noise(race.leads) for race in races))


def _wins_without_noise(leads: tuple[int, ...]) -> float:
    return 0.0 if min(leads) < 0 else 1 / (1 + leads.count(0))


@dataclass(frozen=True, slots=True, eq=False)
class _TallyNoise:
    """Masses of the noise, and how much lies below each value."""

    masses: Floats
    below: Floats
    stride: int

    @classmethod
    def of(cls, noise: Noise) -> "_TallyNoise":
        masses = pmf_of(noise).masses
        masses = masses[np.minimum(np.cumsum(masses), np.cumsum(masses[::-1])[::-1]) > _TAIL]
        below = np.concatenate(([0.0], np.cumsum(masses)))
        stride = 1 if noise.is_pointed else max(1, int(noise.variance**0.5 / _POINTS_PER_DEVIATION))
        return cls(masses, below, stride)

    def win_probability(self, leads: tuple[int, ...]) -> float:
        """Equation W1."""
        places = np.arange(0, len(self.masses), self.stride)
        tickets, weights = _tickets(len(leads))
        product = np.ones((len(places), len(tickets)))
        for lead, classes in Counter(leads).items():
            if lead < len(self.masses):  # else this class is too far behind to be ahead
                product *= self._not_ahead(places + lead, tickets) ** classes
        won = float(np.dot(self.masses[places], product @ weights))
        return won / float(self.masses[places].sum())

    def _not_ahead(self, places: NDArray[np.int64], tickets: Floats) -> Floats:
        """How likely another class is below a count, or at it with the worse ticket."""
        last = len(self.masses)
        is_inside = (places >= 0) & (places < last)
        at = np.where(is_inside, self.masses[np.clip(places, 0, last - 1)], 0.0)
        below = self.below[np.clip(places, 0, last)]
        return np.asarray(below[:, None] + at[:, None] * tickets)


@functools.cache
def _tickets(others: int) -> tuple[Floats, Floats]:
    """Points and weights on [0, 1] that integrate polynomials of this degree without error."""
    points, weights = np.polynomial.legendre.leggauss(others // 2 + 1)
    return (points + 1) / 2, weights / 2
