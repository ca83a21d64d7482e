"""The search for the smallest noise of a family whose exact δ is within a promise.

Every search ends on noise whose own δ was worked out and is within the promise, whatever shape δ
has as a function of the parameter. How small it is depends on the family:

- binomial, Skellam, Pólya of one shape: the larger parameter is the smaller noise plus independent
  noise, so δ never rises with it. There is one boundary, and bisection finds it.
- discrete Gaussian: δ may rise with sigma. The losses of one share are multiples of 1/σ², and where
  one of them passes ε, at σ² = k/ε, δ stops falling and rises for a while: for ε = 4, σ = 1.03125
  has a δ that is 3 % above that of σ = 1. So several stretches of sigma may be within the promise.
  Besides the boundary that was found first, smaller variances are tried: k/ε in a share for every
  whole k, and `_SCAN_POINTS` in even steps. The least of them that is within the promise is lowered
  to its own boundary. A stretch between two of these points can be missed (sums of several shares
  have kinks elsewhere, too); what is returned is then more noise than needed, never less.
"""

import functools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeVar

from scipy import optimize

from dppp.privacy.accounting import total_delta
from dppp.privacy.certificate import Formula, Promise
from dppp.privacy.noise import Binomial, DiscreteGaussian, Noise, Polya, Skellam
from dppp.privacy.paper_bounds import analytic_gaussian_sigma

POLYA_SHAPES = (1, 2, 4, 8, 16, 32, 64)
"""Shapes of the sum that are tried; more makes the noise closer to Skellam."""

_SCAN_STEP = 0.02
_SCAN_POINTS = 104
"""Steps of the logarithm of the variance: down to an eighth of it.

The widest rise that was seen (ε = 20, one share) spans a factor of three.
"""

_SMOOTH_SIGMA = 4.0
"""From here on the scan is left out: no rise was seen past σ = 2.04, for ε up to 60."""

_FAR_FROM_DELTA = 10
"""Below this many times δ, ε hardly matters; Pólya noise of small shape then has the widest tails.

Starting with it took 150 of the 155 seconds that ε = δ = 1e-5 took.
"""

_N = TypeVar("_N", Skellam, DiscreteGaussian, Polya)


def smallest_noise(name: str, promise: Promise, shares: int) -> tuple[Noise, Formula]:
    """Noise of this family within the promise, and what was found before making shares of it."""
    return _SEARCHES[name](promise, shares)


def gaussian_deviation(promise: Promise) -> float:
    """The σ per count of continuous Gaussian noise: near that of every family where it is wide."""
    return math.sqrt(_gaussian_variance(promise))


def _smallest_binomial(promise: Promise, shares: int) -> tuple[Noise, Formula]:
    tosses = _smallest_tosses(promise)
    noise = Binomial(total_tosses=-(-tosses // shares) * shares, shares=shares)
    return noise, (("total_tosses", tosses), ("sum_tosses", noise.total_tosses))


def _smallest_skellam(promise: Promise, shares: int) -> tuple[Noise, Formula]:
    return _boundary(promise, functools.partial(_skellam, shares=shares)), ()


def _smallest_discrete_gaussian(promise: Promise, shares: int) -> tuple[Noise, Formula]:
    """The first boundary that is found, or one below it that the scan finds."""
    make = functools.partial(_discrete_gaussian, shares=shares)
    found = _boundary(promise, make)
    if found.share_sigma > _SMOOTH_SIGMA:
        return found, ()
    return _least_of_scan(promise, make, found), ()


def _best_polya(promise: Promise, shares: int) -> tuple[Noise, Formula]:
    """The smallest variance over the shapes; past the best one it only grows.

    One query is best served by small shapes, and many, or an ε near δ, by large ones: start there.
    """
    best: Noise | None = None
    is_small_best = promise.queries == 1 and promise.epsilon > _FAR_FROM_DELTA * promise.delta
    for shape in POLYA_SHAPES if is_small_best else reversed(POLYA_SHAPES):
        noise = _boundary(promise, functools.partial(_polya, shape=shape, shares=shares))
        if best is not None and noise.variance > best.variance:
            break
        best = noise
    assert best is not None
    return best, ()


_SEARCHES: Mapping[str, Callable[[Promise, int], tuple[Noise, Formula]]] = {
    Binomial.name: _smallest_binomial,
    DiscreteGaussian.name: _smallest_discrete_gaussian,
    Skellam.name: _smallest_skellam,
    Polya.name: _best_polya,
}


def _boundary(promise: Promise, make: Callable[[float], _N]) -> _N:
    """Noise just within the promise, where `make` gives the noise of a variance.

    It was itself evaluated: the search for a change of sign only says where to look.
    """
    # Variances that are close are rounded to the same noise: many of the steps ask for it again.
    excess_of = functools.cache(functools.partial(_log_excess, promise=promise))

    def excess(log_variance: float) -> float:
        return excess_of(make(math.exp(log_variance)))

    low, high = _bracket(excess, math.log(_gaussian_variance(promise)))
    log_variance = float(optimize.brentq(excess, low, high, xtol=1e-9))
    step = 1e-10
    while excess(log_variance) > 0:
        log_variance += step
        step *= 2
    return make(math.exp(log_variance))


def _least_of_scan(
    promise: Promise, make: Callable[[float], DiscreteGaussian], found: DiscreteGaussian
) -> DiscreteGaussian:
    """The least of the scanned variances within the promise, lowered to its boundary."""

    def is_enough(log_variance: float) -> bool:
        return _log_excess(make(math.exp(log_variance)), promise) <= 0

    points = _scan_points(promise.epsilon, found)
    enough = [place for place, each in enumerate(points) if is_enough(each)]
    if not enough:
        return found
    high = points[enough[-1]]
    low = [*points, points[-1] - _SCAN_STEP][enough[-1] + 1]
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return make(math.exp(high))


def _scan_points(epsilon: float, found: DiscreteGaussian) -> list[float]:
    """Logarithms of smaller variances of the sum, falling."""
    start = math.log(found.shares * found.share_sigma**2)
    steps = [start - _SCAN_STEP * step for step in range(1, _SCAN_POINTS + 1)]
    kinks = [
        math.log(found.shares * k / epsilon)
        for k in range(1, math.ceil(epsilon * found.share_sigma**2))
    ]
    return sorted({*steps, *(each for each in kinks if each > steps[-1])}, reverse=True)


def _smallest_tosses(promise: Promise) -> int:
    """The smallest n for which Binomial(n, 1/2) is within the promise."""

    def is_enough(tosses: int) -> bool:
        return _log_excess(Binomial(total_tosses=tosses), promise) <= 0

    high = max(2, math.ceil(4 * _gaussian_variance(promise)))
    width = max(1, high // 64)
    while not is_enough(high):
        high, width = high + width, 2 * width
    low = max(0, high - width)
    while low > 0 and is_enough(low):
        low, high, width = max(0, low - 2 * width), low, 2 * width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _log_excess(noise: Noise, promise: Promise) -> float:
    delta = total_delta([promise.spending(noise)], promise.epsilon)
    return math.log(max(delta, 1e-300)) - math.log(promise.delta)


def _bracket(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """An interval in which a falling function changes its sign."""
    low, high, step = start, start, 0.02
    while excess(low) <= 0:
        low, high, step = low - step, low, 2 * step
    while excess(high) > 0:
        low, high, step = high, high + step, 2 * step
    return low, high


def _gaussian_variance(promise: Promise) -> float:
    """Where to start: continuous Gaussian noise against the length of all moves together."""
    sensitivity = promise.change.shift * math.sqrt(promise.change.moved * promise.queries)
    return analytic_gaussian_sigma(promise.epsilon, promise.delta, sensitivity) ** 2


def _skellam(variance: float, shares: int) -> Skellam:
    return Skellam(share_variance=_round_up(variance / shares), shares=shares)


def _discrete_gaussian(variance: float, shares: int) -> DiscreteGaussian:
    return DiscreteGaussian(share_sigma=_round_up(math.sqrt(variance / shares)), shares=shares)


def _polya(variance: float, shape: int, shares: int) -> Polya:
    """The ratio q solves variance = 2 shape q/(1-q)²; rounded up where that leaves it below 1."""
    a = shape / variance
    ratio = 1 / (1 + a + math.sqrt(a * (a + 2)))
    return Polya(shape=shape, ratio=min(_round_up(ratio), math.nextafter(1, 0)), shares=shares)


def _round_up(value: float) -> float:
    """Up to twelve significant digits, so that a parameter can be read and typed."""
    digits = 11 - math.floor(math.log10(value))
    scaled = Fraction(value) * Fraction(10) ** digits
    return float(Fraction(math.ceil(scaled)) / Fraction(10) ** digits)
