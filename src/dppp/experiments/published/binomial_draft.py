"""The expired Internet-Draft on binomial noise in multi-party computation, checked exactly.

draft-case-ppm-binomial-dp-01 (Case and Thomson, July 2024, expired January 2025) adds Bin(N, 1/2)
to f(D)/s, so a record that moves f by Δ moves the sum by Δ/s. It takes N from Theorem 1 of cpSGD
(Agarwal et al. 2018), as formula (7), and then offers "an alternative and more direct approach", a
quadratic equation in N. Both are here as printed. The quadratic is not formula (7) solved for N:

- the coefficient of N is printed as 2εc₂/c₁² - 1, where squaring gives -2εc₂/c₁² - 1, so what it
  solves is ε = c₁/√N - c₂/N;
- c₁ is printed without the factor 1/s that c₂ has.

The table of parameters in the draft holds TODO, so there is no number of its own to check. Used by
`dppp reproduce binomial-draft`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dppp.privacy.noise import Binomial, pmf_of
from dppp.privacy.pmf import Pmf

_MOST_TOSSES = 2**44


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """What one record may change: a vote moves from one class to another, or a single count moves.

    `steps` is 1/s: how many whole steps of the noise one vote is.
    """

    dimension: int
    steps: int = 1

    @property
    def counts_moved(self) -> int:
        """Two counts of a histogram, or the only one."""
        return min(self.dimension, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCheck:
    """One promise: the tosses by both ways of the draft, what they deliver, and what is enough."""

    epsilon: float
    delta: float
    dimension: int
    steps: int
    formula_tosses: int
    """The least N that satisfies both constraints of the draft."""
    formula_delta: float
    """Its exact δ at ε."""
    least_tosses: int
    """The least N that keeps the promise exactly, by bisection."""
    printed_tosses: int | None
    """The larger root of the printed quadratic; None where it has no real root."""
    printed_delta: float | None

    @property
    def is_formula_certified(self) -> bool:
        """Whether formula (7) keeps its promise here."""
        return self.formula_delta <= self.delta

    @property
    def is_printed_refuted(self) -> bool:
        """Whether the quadratic gives a number that breaks the promise."""
        return self.printed_delta is not None and self.printed_delta > self.delta


PROMISES = tuple(
    (epsilon, delta, Histogram(dimension=dimension, steps=steps))
    for epsilon, delta in ((3.0, 1e-5), (1.0, 1e-5), (0.1, 1e-5), (0.01, 1e-5), (0.01, 2.0**-24))
    for dimension, steps in ((1, 1), (10, 1), (10, 5))
)
"""The draft's three ε at its δ (it prints 10e-6), the smallest ε and the largest δ of the ranges it
names; one count and a histogram of ten; whole votes and fifths (s = 0.2)."""


def check_draft(
    promises: Sequence[tuple[float, float, Histogram]] = PROMISES,
) -> list[DraftCheck]:
    """Every promise, by the draft's two ways and exactly."""
    return [_check(epsilon, delta, histogram) for epsilon, delta, histogram in promises]


def _check(epsilon: float, delta: float, histogram: Histogram) -> DraftCheck:
    by_formula = formula_tosses(epsilon, delta, histogram)
    printed = printed_quadratic_tosses(epsilon, delta, histogram)
    return DraftCheck(
        epsilon=epsilon,
        delta=delta,
        dimension=histogram.dimension,
        steps=histogram.steps,
        formula_tosses=by_formula,
        formula_delta=exact_delta(by_formula, epsilon, histogram),
        least_tosses=_least(
            lambda tosses: exact_delta(tosses, epsilon, histogram) <= delta, by_formula
        ),
        printed_tosses=printed,
        printed_delta=None if printed is None else exact_delta(printed, epsilon, histogram),
    )


def formula_epsilon(tosses: int, delta: float, histogram: Histogram) -> float:
    """The draft's epsilon_delta_constraint, formula (7): c₁/√N + c₂/N with both factors 1/s."""
    first, second = _coefficients(delta, histogram)
    return histogram.steps * first / math.sqrt(tosses) + second / tosses


def formula_tosses(epsilon: float, delta: float, histogram: Histogram) -> int:
    """The least N within both constraints; each of them holds from some N on."""
    floor = math.ceil(4 * max(23 * math.log(10 * histogram.dimension / delta), 2 * histogram.steps))
    return _least(
        lambda tosses: tosses >= floor and formula_epsilon(tosses, delta, histogram) <= epsilon,
        floor,
    )


def printed_quadratic_tosses(epsilon: float, delta: float, histogram: Histogram) -> int | None:
    """The larger root of the quadratic as the draft prints it, not below its other constraint."""
    first, second = _coefficients(delta, histogram)
    a = (epsilon / first) ** 2
    b = 2 * epsilon * second / first**2 - 1
    c = (second / first) ** 2
    discriminant = b * b - 4 * a * c
    if discriminant < 0 or b > 0:
        return None
    root = (-b + math.sqrt(discriminant)) / (2 * a)
    floor = 4 * max(23 * math.log(10 * histogram.dimension / delta), 2 * histogram.steps)
    return math.ceil(max(root, floor))


def _coefficients(delta: float, histogram: Histogram) -> tuple[float, float]:
    """c₁ and c₂ as printed: the former without 1/s."""
    one = float(histogram.counts_moved)
    two, infinity = math.sqrt(one), 1.0
    first = 2 * two * math.sqrt(2 * math.log(1.25 / delta))
    b_p, c_p, d_p = 1 / 3, math.sqrt(2) * 7 / 4, 2 / 3
    second = (two * c_p * math.sqrt(math.log(10 / delta)) + one * b_p) / (1 - delta / 10)
    second += 2 * infinity * math.log(1.25 / delta) / 3
    second += infinity * d_p * math.log(20 * histogram.dimension / delta) * math.log(10 / delta)
    return first, 4 * histogram.steps * second


def exact_delta(tosses: int, epsilon: float, histogram: Histogram) -> float:
    """δ(ε) of Bin(N, 1/2) on every count when the counts that move do so by `steps`, rounded up."""
    pmf = pmf_of(Binomial(total_tosses=tosses))
    if len(pmf.masses) <= histogram.steps:
        return 1.0
    if histogram.counts_moved == 1:
        return _delta_of_one(pmf, epsilon, histogram.steps)
    return _delta_of_two(pmf, epsilon, histogram.steps)


def _delta_of_one(pmf: Pmf, epsilon: float, steps: int) -> float:
    """Σ max(0, p(x) - e^ε p(x + steps)); binomial noise is symmetric, so once is enough."""
    before, after = pmf.masses[:-steps], pmf.masses[steps:]
    gained, lost = before, math.exp(epsilon) * after
    counted = gained > lost
    total = float(np.sum(gained[counted] - lost[counted]))
    error = _relative_error(pmf) * float(np.sum(gained[counted] + lost[counted]))
    return min(1.0, total + _unmatched(pmf, steps) + error)


def _delta_of_two(pmf: Pmf, epsilon: float, steps: int) -> float:
    """Equation D1 (privacy/divergence.py) with counts that move by `steps` in place of 1.

    The loss of a binomial count rises with the count, so the sums over the other count are prefix
    sums, found by a search.
    """
    before, after = pmf.masses[:-steps], pmf.masses[steps:]
    loss = np.log(before) - np.log(after)
    reached = np.searchsorted(loss, loss - epsilon, side="left")
    sum_after = np.concatenate(([0.0], np.cumsum(after)))[reached]
    sum_before = np.concatenate(([0.0], np.cumsum(before)))[reached]
    gained, lost = before * sum_after, math.exp(epsilon) * after * sum_before
    error = 2 * _relative_error(pmf) * float(np.sum(gained + lost))
    total = max(0.0, float(np.sum(gained - lost)))
    return min(1.0, total + 2 * _unmatched(pmf, steps) + error)


def _unmatched(pmf: Pmf, steps: int) -> float:
    """Mass that the moved distribution may not have at all."""
    return float(pmf.masses[-steps:].sum()) + pmf.tail


def _relative_error(pmf: Pmf) -> float:
    """Of a mass, and of a prefix sum over them."""
    return pmf.relative_error + (len(pmf.masses) + 8) * 2.0**-52


def _least(is_enough: Callable[[int], bool], start: int) -> int:
    """The least whole number from which on it is enough; `start` is a guess."""
    high = max(start, 1)
    while not is_enough(high) and high < _MOST_TOSSES:
        high *= 2
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
