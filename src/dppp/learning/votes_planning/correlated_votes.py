"""Votes of models of which only the accuracy is known, and how alike their errors are.

Two assumptions, both stated wherever a number rests on them:

1. Each query has its own chance p that a model is right, drawn from a beta distribution. Its mean
   is the accuracy; its variance is such that the errors of two models correlate as stated. Given
   the query, models err independently. So the right votes are beta-binomial: with correlation 0 all
   queries are equally hard and many models are right almost always, with correlation 1 all models
   err together and a thousand know no more than one.
2. All wrong votes on a query are for the same class. That is the hardest case.
"""

from dataclasses import dataclass

import numpy as np

from dppp.errors import InputError
from dppp.learning.win_probability import Race
from dppp.privacy.pmf import Floats

_LEAST_WEIGHT = 1e-13
"""Rarer numbers of right votes are left out."""

_MOST_RACES = 2_000
"""Past this many votes, neighbouring numbers of right votes are taken together at their mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatedVotes:
    """Models that are right with `accuracy`, whose errors correlate by `correlation`."""

    accuracy: float
    correlation: float
    classes: int

    def __post_init__(self) -> None:
        if not 0 <= self.correlation <= 1:
            raise InputError(
                f"the correlation must be between 0 and 1, got {self.correlation!r}",
                hint="0: errors are independent; 1: all models err on the same queries",
            )

    def races(self, votes: int) -> tuple[Race, ...]:
        """What can happen to a query on which this many models vote, and how likely it is."""
        places, weights = _taken_together(self._right_votes(votes))
        return tuple(
            Race(leads=(2 * right - votes, *(right,) * (self.classes - 2)), weight=weight)
            for right, weight in zip(places.tolist(), weights.tolist(), strict=True)
            if weight > _LEAST_WEIGHT
        )

    def _right_votes(self, votes: int) -> Floats:
        """The chance of 0, 1, … right votes, from the ratios of neighbours."""
        if self.accuracy >= 1 or self.correlation >= 1:
            both = np.zeros(votes + 1)
            both[0], both[-1] = 1 - self.accuracy, self.accuracy
            return both
        right = np.arange(votes)
        # Times ρ / (1 - ρ), so that correlation 0 needs no other formula.
        rho = self.correlation / (1 - self.correlation)
        grows = (votes - right) * (right * rho + self.accuracy)
        falls = (right + 1) * ((votes - right - 1) * rho + 1 - self.accuracy)
        logarithms = np.concatenate(([0.0], np.cumsum(np.log(grows / falls))))
        chances = np.exp(logarithms - logarithms.max())
        return np.asarray(chances / chances.sum())


def _taken_together(chances: Floats) -> tuple[Floats, Floats]:
    """Places and weights: every place, or the mean place of some neighbours at a time."""
    width = -(-len(chances) // _MOST_RACES)
    starts = np.arange(0, len(chances), width)
    weights = np.add.reduceat(chances, starts)
    moments = np.add.reduceat(chances * np.arange(len(chances)), starts)
    means = np.divide(moments, weights, out=starts.astype(float), where=weights > 0)
    return np.rint(means).astype(np.int64), weights
