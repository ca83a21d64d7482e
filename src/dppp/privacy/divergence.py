"""Exact δ(ε) of one noisy release, from the masses of the noise alone.

Where the question is one of c classes (change.py has the others), one record may change one
teacher's vote from one class to another, so two counts move, by -1 and +1, and the noise of the two
is independent. With p the masses of the noise, the pair of distributions is p(x) p(y) against
p(x+1) p(y-1), and

    δ(ε) = Σ max(0, p(x) p(y) - e^ε p(x+1) p(y-1)).                                  (D1)

Exchanging the two coordinates exchanges the two distributions, so both directions have the same δ.
A vote that appears or vanishes moves one count only, which is a projection of this. For a number,
one count moves by up to L, and the pair is p(x) against p(x+L). More than two counts are composed
(accounting.py). The single-coordinate δ(ε) is what Theorem 1 of the paper bounds; it is here for
comparison.

Every result carries an upper bound on its own error (rounding, and mass left out of the tails,
which counts as infinite loss), so that it is never below the true δ.
"""

import math
from numbers import Real

import numpy as np

from dppp.errors import InputError
from dppp.privacy.change import ONE_OF_CLASSES, Change
from dppp.privacy.noise import Noise, pmf_of
from dppp.privacy.pmf import Floats, Pmf

SCOPES = ("joint", "single-coordinate")

HIGHEST_EPSILON = 500.0
"""Past this e^ε leaves the range of floats, and the promise has left any use long before."""


def delta_at(
    noise: Noise, epsilon: float, *, scope: str = "joint", change: Change = ONE_OF_CLASSES
) -> float:
    """The exact δ of one release with this noise at this ε, rounded up; at most two counts move.

    >>> from dppp import Binomial, delta_at
    >>> f"{delta_at(Binomial(total_tosses=1000), 0.5):.4g}"
    '2.505e-10'
    >>> f"{delta_at(Binomial(total_tosses=1000), 0.5, scope='single-coordinate'):.4g}"
    '3.489e-17'
    """
    epsilon = require_epsilon(epsilon)
    if scope not in SCOPES:
        raise InputError(f"unknown scope {scope!r}", hint=f"choose one of {', '.join(SCOPES)}")
    if scope == "single-coordinate":
        change = Change(moved=1, shift=change.shift)
    assert change.moved <= 2, "more counts are composed (total_delta)"
    require_log_concave(noise, change)
    if epsilon >= change.moved * change.shift * noise.highest_loss:
        return 0.0
    pmf = pmf_of(noise)
    if change.moved == 2:
        return joint_delta(pmf, epsilon)
    return single_delta(pmf, epsilon, shift=change.shift)


def require_log_concave(noise: Noise, change: Change) -> None:
    """Refuse noise for which a small move of one count may cost more than a large one."""
    if change.shift > 1 and not noise.is_log_concave:
        raise InputError(
            f"{noise.name} noise of this shape is not log-concave, so the largest move of a count "
            "may not be the worst",
            hint="use a shape of at least 1 in the sum, or another family",
        )


def joint_delta(pmf: Pmf, epsilon: float) -> float:
    """Equation D1: two counts move, by -1 and +1.

    With loss u(x) = ln p(x)/p(x+1) the sum runs over u(x) - u(y') > ε, where y' = y - 1. Sorted by
    u, the inner sums over y' are prefix sums, so the whole costs one sort and one search.
    """
    before, after, loss = _sorted_by_loss(pmf)
    reached = np.searchsorted(loss, loss - epsilon, side="left")
    sum_after = np.concatenate(([0.0], np.cumsum(after)))[reached]
    sum_before = np.concatenate(([0.0], np.cumsum(before)))[reached]
    gained = before * sum_after
    lost = math.exp(epsilon) * after * sum_before
    edge = float(pmf.masses[-1]) + pmf.tail
    unmatched = edge * (2 - edge)  # either coordinate where the other distribution has no mass
    error = (2 * pmf.relative_error + _rounding(pmf)) * float(np.sum(gained + lost))
    return min(1.0, max(0.0, float(np.sum(gained - lost))) + unmatched + error)


def single_delta(pmf: Pmf, epsilon: float, *, shift: int = 1) -> float:
    """One count moves: Σ max(0, p(x) - e^ε p(x+shift)), the larger of both directions."""
    if shift >= len(pmf.masses):
        return 1.0
    lower, upper = pmf.masses[:-shift], pmf.masses[shift:]
    # The masses are symmetric, so what has no counterpart is the same at both ends.
    unmatched = float(np.sum(pmf.masses[-shift:])) + pmf.tail
    excess = max(_one_way(pmf, lower, upper, epsilon), _one_way(pmf, upper, lower, epsilon))
    return min(1.0, excess + unmatched)


def _one_way(pmf: Pmf, before: Floats, after: Floats, epsilon: float) -> float:
    growth = math.exp(epsilon)
    excess = before - growth * after
    counted = excess > 0
    error = (pmf.relative_error + _rounding(pmf)) * float(
        np.sum((before + growth * after)[counted])
    )
    return float(np.sum(excess[counted])) + error


def _sorted_by_loss(pmf: Pmf) -> tuple[Floats, Floats, Floats]:
    before, after = pmf.masses[:-1], pmf.masses[1:]
    loss = np.log(before / after)
    if np.any(loss[1:] < loss[:-1]):
        order = np.argsort(loss, kind="stable")
        return before[order], after[order], loss[order]
    return before, after, loss


def _rounding(pmf: Pmf) -> float:
    """Relative error of a prefix sum over the masses, and of the few operations after it."""
    return float((len(pmf.masses) + 8) * 2.0**-52)


def require_epsilon(epsilon: object) -> float:
    """The ε as a `float`, also of numpy's numbers; refuses one that promises nothing."""
    number = _real("epsilon", epsilon, hint="try 1")
    if not 0 < number <= HIGHEST_EPSILON:
        raise InputError(
            f"epsilon must be greater than 0 and at most {HIGHEST_EPSILON:g}, got {number}",
            hint="try 1",
        )
    return number


def require_delta(delta: object) -> float:
    """The δ as a `float`, also of numpy's numbers; refuses one that promises nothing."""
    number = _real("delta", delta, hint="try 1e-5")
    if not 0 < number < 1:
        raise InputError(
            f"delta must lie between 0 and 1, both excluded, got {number}", hint="try 1e-5"
        )
    return number


def _real(name: str, value: object, *, hint: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise InputError(f"{name} must be a number, got {value!r}", hint=hint)
    try:
        return float(value)
    except OverflowError:
        return math.inf
