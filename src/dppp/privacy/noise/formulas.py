"""What the formulas of the families share: the numbers they are worked out in, and two bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
from scipy.linalg import lapack

from dppp.errors import InputError
from dppp.privacy.pmf import LOG_TAIL, Floats, Pmf, pmf_from_ratios

Number = Any
"""A float, or a gmpy2.mpfr where the sampler needs more digits; the formulas serve both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """Which numbers a formula is worked out in, and how many bits of them are good."""

    number: Callable[[float], Number]
    exp: Callable[[Number], Number]
    bits: int


FLOATS = Arithmetic(number=float, exp=math.exp, bits=53)


class HasRatios(Protocol):
    """Symmetric noise with a formula for the ratio of each mass to the one before it."""

    @property
    def centre(self) -> int:
        """The most likely value, the upper one of two."""

    @property
    def is_half_centred(self) -> bool:
        """Whether there are two."""

    def reach(self, log_tail: float) -> int:
        """How far from the centre the masses matter."""

    def limit_ratio(self, reach: int) -> float:
        """A bound on the ratios past `reach`."""

    def ratios(self, reach: int) -> Sequence[Number] | Floats:
        """p(centre + k) / p(centre + k - 1) for k = 1 … reach."""


def pmf_by_ratios(noise: HasRatios) -> Pmf:
    """The masses, outward from the centre."""
    reach = noise.reach(LOG_TAIL)
    return pmf_from_ratios(
        noise.ratios(reach),
        centre=noise.centre,
        is_half_centred=noise.is_half_centred,
        limit=noise.limit_ratio(reach),
    )


def chernoff_reach(
    log_moment: Callable[[Floats], Floats], *, highest: float, log_tail: float
) -> int:
    """The least k with P(X ≥ k) ≤ exp(log_tail) that a Chernoff bound can show."""
    t = highest * np.geomspace(1e-7, 0.9999, 600)
    return math.ceil(float(np.min((log_moment(t) - log_tail) / t))) + 1


def steps_to_forget(limit: float, bits: int) -> int:
    """Steps of a backward recurrence until its starting value no longer shows in `bits` bits."""
    return math.ceil(bits * math.log(2) / (-2 * math.log(limit))) + 10


def eliminate(diagonal: Floats, below: Floats, above: Floats) -> Floats | None:
    """d(i) = diagonal(i) - below(i-1) above(i-1) / d(i-1): a recurrence at LAPACK's speed.

    These are the pivots of a tridiagonal elimination; a loop of Python takes forty times as long.
    None where rows would have been exchanged, which makes other numbers of them.
    """
    _, pivots, _, _, order, failed = lapack.dgttrf(below, diagonal, above)
    is_in_order = failed == 0 and np.array_equal(order, np.arange(1, len(diagonal) + 1))
    return np.asarray(pivots, dtype=np.float64) if is_in_order else None


def keep_positive(record: object, *names: str) -> None:
    """Refuse parameters that are not positive numbers; numpy's become Python's.

    Called when a frozen data class is made. Tasks and certificates know no other kind of number.
    """
    for name in names:
        value = getattr(record, name)
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not 0 < value < math.inf:
            raise InputError(
                f"{name} must be a positive number, got {value!r}", hint="give one above 0"
            )
        if type(value) not in (int, float):
            object.__setattr__(record, name, float(value))
