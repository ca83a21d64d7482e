"""Probability masses on consecutive integers, with a bound on what is left out and on rounding.

Used by the noise families to describe the noise in a tally, and by divergence and accounting to
measure it. All noise here is symmetric about its centre, so a mass function is built from one half:
the ratios p(k)/p(k-1) outward from the centre, which every family gives in a form without
cancellation. Masses keep their relative accuracy far into the tails; the normalising constant is
the sum itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LOG_TAIL = -95.0
"""Natural logarithm of the mass that a mass function may leave out: about 5e-42."""

_UNIT = 2.0**-52


@dataclass(frozen=True, slots=True, kw_only=True)
class Pmf:
    """Masses of first, first + 1, …; `tail` bounds the mass outside, on both sides together.

    `relative_error` bounds the relative error of every mass.
    """

    first: int
    masses: Floats
    tail: float
    relative_error: float


def pmf_from_ratios(
    ratios: Sequence[float] | Floats, *, centre: int, is_half_centred: bool, limit: float
) -> Pmf:
    """Build a symmetric mass function from the ratios p(centre + k) / p(centre + k - 1), k ≥ 1.

    Centred between two integers, `centre` is the upper of them and its mirror image has the same
    mass. `limit` bounds every ratio past the last one given, which bounds the tail.
    """
    upper = np.concatenate(([1.0], np.cumprod(np.asarray(ratios, dtype=np.float64))))
    lower = upper[::-1] if is_half_centred else upper[:0:-1]
    total = float(np.sum(upper)) + float(np.sum(lower))
    masses = np.concatenate((lower, upper)) / total
    tail = 2 * float(masses[-1]) * limit / (1 - limit)
    return without_empty_ends(
        Pmf(
            first=centre - len(lower),
            masses=masses,
            tail=tail,
            relative_error=4 * len(upper) * _UNIT,
        )
    )


def without_empty_ends(pmf: Pmf) -> Pmf:
    """Drop masses at both ends that are too small for a float to tell from 0."""
    filled = np.flatnonzero(pmf.masses > np.finfo(np.float64).tiny)
    start, stop = int(filled[0]), int(filled[-1]) + 1
    lost = (len(pmf.masses) - (stop - start)) * float(np.finfo(np.float64).tiny)
    return Pmf(
        first=pmf.first + start,
        masses=pmf.masses[start:stop],
        tail=pmf.tail + lost,
        relative_error=pmf.relative_error,
    )
