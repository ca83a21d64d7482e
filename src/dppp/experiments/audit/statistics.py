"""What an adversary may look at: the exact likelihood ratio, and what it learns by playing.

The likelihood ratio is the best there is where the noise is what the certificate says. Where it is
not, something else may show more: a count without noise, or two counts with the same noise, whose
sum or difference has none. So the adversary also plays some trials to learn, for each count, and
for sums and differences of two, how often each value comes in either world.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dppp.experiments.audit.game import Game, Seen, Worlds
from dppp.privacy.pmf import Floats

Statistic = Callable[[Seen], Floats]
"""A number for each trial: high speaks for world 0, low for world 1."""

_CAUTION = 4.0
"""Added to each number of times that a value was seen: what came rarely proves little."""
_NEAR = 8
"""Of so many queries all pairs are looked at, and past them each with the one before it."""
_MOST_QUERIES = 32
_WIDEST = 2**22
"""Values that a learned statistic may spread over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One moved count, or the sum or difference of two."""

    one: int
    other: int = 0
    sign: int = 0

    def of(self, seen: Seen) -> NDArray[np.int64]:
        """Its value in each trial."""
        return seen[:, self.one] + self.sign * seen[:, self.other]

    @property
    def words(self) -> str:
        """For a report."""
        if self.sign == 0:
            return f"count {self.one + 1}"
        return f"{'sum' if self.sign > 0 else 'difference'} of counts {self.one + 1} and " + str(
            self.other + 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """How often each value of a feature came, as a log ratio of the worlds."""

    feature: Feature
    lowest: int
    ratios: Floats = field(repr=False)

    def __call__(self, seen: Seen) -> Floats:
        """What was never seen says nothing."""
        place = self.feature.of(seen) - self.lowest
        is_known = (place >= 0) & (place < len(self.ratios))
        return np.where(is_known, self.ratios[np.clip(place, 0, len(self.ratios) - 1)], 0.0)


def learn(feature: Feature, worlds: Worlds, seen: Seen) -> Learned:
    """Count the values in both worlds."""
    values = feature.of(seen)
    lowest = int(values.min())
    if int(values.max()) - lowest >= _WIDEST:
        return Learned(feature=feature, lowest=lowest, ratios=np.zeros(1))
    size = int(values.max()) - lowest + 1
    stayed = np.bincount(values[~worlds] - lowest, minlength=size)
    moved = np.bincount(values[worlds] - lowest, minlength=size)
    ratios = np.log((stayed + _CAUTION) / (moved + _CAUTION))
    return Learned(feature=feature, lowest=lowest, ratios=ratios)


def features_of(game: Game) -> Iterator[Feature]:
    """Every count, sums within a query, and sums and differences of the same count of two."""
    width = game.moves.counts
    queries = min(game.queries, _MOST_QUERIES)
    for column in range(queries * width):
        yield Feature(one=column)
    pairs = [
        (query * width + one, query * width + other)
        for query in range(queries)
        for one in range(width)
        for other in range(one)
    ]
    pairs += [
        (late * width + count, early * width + count)
        for late in range(queries)
        for early in range(late)
        if late < _NEAR or early == late - 1
        for count in range(width)
    ]
    for one, other in pairs:
        yield Feature(one=one, other=other, sign=1)
        yield Feature(one=one, other=other, sign=-1)
