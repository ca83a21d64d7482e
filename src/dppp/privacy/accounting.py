"""What many answers cost: privacy loss distributions, composed by dp-accounting.

One release with T queries composes 2T identical losses where each query moves two counts, and one
for each count that moves where the question is another (change.py). The loss of one moved count is
put on a grid so that nothing is lost: an atom of
mass p under one neighbour and q under the other is split between the two grid points around its
loss so that both masses are kept,

    p = p₁ + p₂,   q = p₁ e^(-l₁) + p₂ e^(-l₂).                                     (A1)

Merging the two gives the atom back, so the grid's pair of distributions dominates the true one: the
composed δ(ε) is never below the true one, and the error is of second order in the step (plain
rounding up on a fixed grid, dp-accounting's default, doubles a small ε at T = 10⁴).
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dppp.errors import InputError, UncertifiedError
from dppp.privacy.change import ONE_OF_CLASSES, Change
from dppp.privacy.divergence import (
    HIGHEST_EPSILON,
    delta_at,
    require_delta,
    require_epsilon,
    require_log_concave,
)
from dppp.privacy.noise import Noise, pmf_of
from dppp.privacy.pmf import Floats
from dppp.whole_numbers import keep_whole

if TYPE_CHECKING:  # 50 MB with what it brings, and most processes only read certificates
    from dp_accounting.pld import pld_pmf

_STEPS_PER_DEVIATION = 96
"""Grid steps in a standard deviation of one count's loss."""

_MOST_STEPS = 2**17
"""Grid points of one count's loss, at the most."""

_TAIL_TRUNCATION = 1e-18
"""Mass that a composition may move to infinite loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Queries answered with the same noise, and what one vote can do to the counts of each.

    >>> from dppp import Skellam, Spending
    >>> Spending(noise=Skellam(share_variance=40.0, shares=15), queries=100).moves
    200
    """

    noise: Noise
    queries: int
    change: Change = ONE_OF_CLASSES

    def __post_init__(self) -> None:
        keep_whole(self, "queries")
        require_log_concave(self.noise, self.change)

    @property
    def moves(self) -> int:
        """How many counts move, in all queries together."""
        return self.queries * self.change.moved


@dataclass(frozen=True, slots=True, kw_only=True)
class _Losses:
    """Privacy losses of one moved count, their masses, and the mass of infinite loss."""

    losses: Floats
    masses: Floats
    infinite: float

    @classmethod
    def of(cls, noise: Noise, shift: int) -> "_Losses":
        pmf = pmf_of(noise)
        if len(pmf.masses) <= shift:
            return cls(losses=np.zeros(1), masses=np.zeros(1), infinite=1.0)
        before, after = pmf.masses[:-shift], pmf.masses[shift:]
        slack = 2 * pmf.relative_error
        infinite = float(np.sum(pmf.masses[-shift:])) + pmf.tail
        return cls(losses=np.log(before / after) + slack, masses=before, infinite=infinite)

    @property
    def variance(self) -> float:
        mean = float(np.dot(self.masses, self.losses))
        return float(np.dot(self.masses, (self.losses - mean) ** 2))

    def on_grid(self, step: float) -> "pld_pmf.DensePLDPmf":
        """Equation A1 for every atom."""
        from dp_accounting.pld import pld_pmf  # noqa: PLC0415

        below = np.floor(self.losses / step).astype(np.int64)
        rest = self.losses - below * step
        up = self.masses * np.clip(np.expm1(-rest) / math.expm1(-step), 0.0, 1.0)
        lowest = int(below.min())
        size = int(below.max()) - lowest + 2
        index = below - lowest
        grid = np.bincount(index, self.masses - up, size) + np.bincount(index + 1, up, size)
        return pld_pmf.DensePLDPmf(step, lowest, grid, self.infinite, True)


class LossDistribution:
    """The composed privacy loss of all queries of all tasks that were fixed together."""

    def __init__(self, spendings: Sequence[Spending]) -> None:
        if not spendings:
            raise InputError(
                "nothing to account for", hint="give at least one noise with its queries"
            )
        losses = [_Losses.of(each.noise, each.change.shift) for each in spendings]
        counts = [spending.moves for spending in spendings]
        step = _grid_step(losses, counts)
        with np.errstate(over="ignore"):  # dp-accounting tries orders that overflow, and skips them
            parts = [
                loss.on_grid(step).self_compose(count, _TAIL_TRUNCATION)
                for loss, count in zip(losses, counts, strict=True)
            ]
        self._pmf = functools.reduce(lambda one, other: one.compose(other, 0.0), parts)
        self._rounding = _transform_error(sum(counts))

    def delta_at(self, epsilon: float) -> float:
        """δ of the whole at this ε, rounded up."""
        return min(1.0, max(0.0, float(self._pmf.get_delta_for_epsilon(epsilon))) + self._rounding)


def total_delta(spendings: Sequence[Spending], epsilon: float) -> float:
    """δ of everything answered at this ε: exact for one query, else composed; rounded up."""
    epsilon = require_epsilon(epsilon)
    if _is_one_query(spendings):
        return _delta_of_one(spendings[0], epsilon)
    return LossDistribution(spendings).delta_at(epsilon)


def delta_curve(spendings: Sequence[Spending], epsilons: Sequence[float]) -> list[float]:
    """δ at each of these ε, composing once."""
    if _is_one_query(spendings):
        return [_delta_of_one(spendings[0], epsilon) for epsilon in epsilons]
    distribution = LossDistribution(spendings)
    return [distribution.delta_at(epsilon) for epsilon in epsilons]


def account(spendings: Sequence[Spending], delta: float) -> float:
    """ε of everything answered, at this δ: the smallest with total_delta ≤ δ, rounded up.

    >>> from dppp import Skellam, Spending, account
    >>> spent = Spending(noise=Skellam(share_variance=40.0, shares=15), queries=100)
    >>> round(account([spent], 1e-5), 3)
    2.341
    """
    delta = require_delta(delta)
    if _is_one_query(spendings):
        only = spendings[0]
        return _smallest_epsilon(lambda epsilon: _delta_of_one(only, epsilon), delta)
    return _smallest_epsilon(LossDistribution(spendings).delta_at, delta)


def least_delta(queries: int, change: Change = ONE_OF_CLASSES) -> float:
    """The smallest δ that this arithmetic can tell from its own rounding over `queries` queries."""
    if queries == 1 and change.moved <= 2:
        return 1e-38
    return 16 * _transform_error(queries * change.moved)


def _transform_error(moves: int) -> float:
    """Bound on the error that composing by Fourier transforms makes in δ.

    A transform raised to the power k has a relative error of about k units in the last place; what
    was seen is ten times below this.
    """
    return (moves + 64) * 2.0**-50


def _is_one_query(spendings: Sequence[Spending]) -> bool:
    """Whether δ is one sum: one query of which no more than two counts move."""
    only = spendings[0] if len(spendings) == 1 else None
    return only is not None and only.queries == 1 and only.change.moved <= 2


def _delta_of_one(spending: Spending, epsilon: float) -> float:
    return delta_at(spending.noise, epsilon, change=spending.change)


def _grid_step(losses: Sequence[_Losses], counts: Sequence[int]) -> float:
    """A fraction of the root mean square deviation over all counts that move.

    Splitting an atom adds at most step²/4 to the variance of its loss. Noise that is almost never
    there has a tiny deviation and a wide range, which limits the number of grid points instead.
    """
    variance = sum(count * loss.variance for loss, count in zip(losses, counts, strict=True))
    widest = max(float(np.ptp(loss.losses)) for loss in losses)
    fine = math.sqrt(variance / sum(counts)) / _STEPS_PER_DEVIATION
    return max(fine, widest / _MOST_STEPS) or 1.0


def _smallest_epsilon(delta_of: Callable[[float], float], delta: float) -> float:
    """Bisect a falling δ(ε) to one part in 10⁸, and return the end that keeps δ."""
    low, high = 0.0, 1.0
    while delta_of(high) > delta:
        low, high = high, 2 * high
        if high > HIGHEST_EPSILON:
            raise UncertifiedError(
                f"even at epsilon = {HIGHEST_EPSILON:g} the answers cost more than delta = "
                f"{delta:g}",
                hint="use more noise, fewer queries or a larger delta",
            )
    while high - low > 1e-8 * high and high > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
    return high
