"""Probability masses on consecutive integers, with a bound on what is left out and on rounding.

Used by the noise families to describe the noise in a tally, and by divergence and accounting to
measure it. All noise here is symmetric about its centre, so a mass function is built from one half:
the ratios p(k)/p(k-1) outward from the centre, which every family gives in a form without
cancellation. Masses keep their relative accuracy far into the tails; the normalising constant is
the sum itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, optimize

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
    ratios: Sequence[float], *, centre: int, is_half_centred: bool, limit: float
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
    return _without_empty_ends(
        Pmf(
            first=centre - len(lower),
            masses=masses,
            tail=tail,
            relative_error=4 * len(upper) * _UNIT,
        )
    )


def _without_empty_ends(pmf: Pmf) -> Pmf:
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


def discrete_gaussian_sum_pmf(share_sigma: float, shares: int) -> Pmf:
    """The convolution power of the discrete Gaussian: the sum is not a discrete Gaussian.

    A plain Fourier transform has an absolute error that drowns the tails. So the share is tilted
    by exp(tilt * x), which moves the sum's mean to the values of interest, raised to the power by a
    transform there, and tilted back; a few windows, each as wide as a few standard deviations,
    cover the tail with full relative accuracy.
    """
    # The discrete Gaussian is sub-Gaussian with its own sigma, so this reaches exp(LOG_TAIL).
    reach = math.ceil(share_sigma * math.sqrt(-2 * shares * LOG_TAIL)) + 1
    upper = np.zeros(reach + 1)
    covered = 0
    ahead = 0.0
    while covered <= reach:
        window = _TiltedWindow.centred_at(covered + ahead, share_sigma, shares)
        if not window.sees(covered):  # small sigma: masses lump on multiples, so look at this one
            window = _TiltedWindow.centred_at(covered, share_sigma, shares)
        stop = min(reach, window.last_seen_from(covered)) + 1
        upper[covered:stop] = window.masses(np.arange(covered, stop))
        covered, ahead = stop, 2.5 * window.deviation
    tail = 2 * math.exp(-(reach**2) / (2 * shares * share_sigma**2))
    masses = np.concatenate((upper[:0:-1], upper))
    return _without_empty_ends(Pmf(first=-reach, masses=masses, tail=tail, relative_error=1e-11))


@dataclass(frozen=True, slots=True, kw_only=True)
class _TiltedWindow:
    """The sum of the shares, tilted so that its mean is where the window looks."""

    tilt: float
    log_factor: float
    origin: int
    tilted: Floats
    mean: float
    deviation: float

    @classmethod
    def centred_at(cls, target: float, share_sigma: float, shares: int) -> "_TiltedWindow":
        precision = 1 / (2 * share_sigma**2)
        tilt = _tilt_for_mean(target / shares, share_sigma)
        peak = round(tilt * share_sigma**2)
        span = math.ceil(40 * share_sigma) + 2
        values = np.arange(peak - span, peak + span + 1)
        log_weights = -precision * values.astype(np.float64) ** 2 + tilt * values
        top = float(log_weights.max())
        weights = np.exp(log_weights - top)
        total = float(np.sum(weights))
        weights /= total
        mean = float(np.dot(weights, values - peak)) + peak
        deviation = math.sqrt(shares * float(np.dot(weights, (values - mean) ** 2)))
        length = fft.next_fast_len(2 * math.ceil(14 * deviation) + 64, real=True)
        folded = np.bincount((values - peak) % length, weights=weights, minlength=length)
        tilted = fft.irfft(fft.rfft(folded) ** shares, length)
        plain = -precision * np.arange(-span, span + 1).astype(np.float64) ** 2
        log_plain_total = math.log(float(np.sum(np.exp(plain))))
        return cls(
            tilt=tilt,
            log_factor=shares * (top + math.log(total) - log_plain_total),
            origin=shares * peak,
            tilted=tilted,
            mean=shares * mean,
            deviation=deviation,
        )

    def sees(self, total: int) -> bool:
        """Whether this sum's tilted mass is near enough to the largest to be accurate."""
        return self.last_seen_from(total) >= total

    def last_seen_from(self, total: int) -> int:
        """The last sum of an unbroken run from this one that the window sees."""
        ahead = np.arange(total, math.ceil(self.mean + 5 * self.deviation) + 2)
        seen = self.tilted[(ahead - self.origin) % len(self.tilted)] > 1e-4 * self.tilted.max()
        return total + int(np.argmin(np.append(seen, False))) - 1

    def masses(self, sums: NDArray[np.int64]) -> Floats:
        """Masses of these sums under the untilted distribution."""
        tilted: Floats = self.tilted[(sums - self.origin) % len(self.tilted)]
        untilted: Floats = np.exp(self.log_factor - self.tilt * sums)
        return np.maximum(tilted, 0.0) * untilted


def _tilt_for_mean(mean: float, sigma: float) -> float:
    """The tilt under which one discrete Gaussian share has about this mean.

    It is mean/sigma² as for the continuous Gaussian, but for small sigma, where masses lump.
    """
    if mean == 0 or sigma > 2:
        return mean / sigma**2
    values = np.arange(math.floor(mean - 12 * sigma) - 2, math.ceil(mean + 12 * sigma) + 3)

    def excess(tilt: float) -> float:
        log_weights = -(values.astype(np.float64) ** 2) / (2 * sigma**2) + tilt * values
        weights = np.exp(log_weights - log_weights.max())
        return float(np.dot(weights, values - mean) / weights.sum())

    low, high = (mean - 0.6) / sigma**2, (mean + 0.6) / sigma**2
    return float(optimize.brentq(excess, low, high, xtol=1e-9 * high))
