"""The masses of a sum of discrete Gaussian shares, which has no formula, by tilted transforms."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from dppp.privacy.pmf import LOG_TAIL, Floats, Pmf, without_empty_ends


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
    return without_empty_ends(Pmf(first=-reach, masses=masses, tail=tail, relative_error=1e-11))


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
    from scipy import optimize  # noqa: PLC0415 - 15 MB, and for a calibration only

    return float(optimize.brentq(excess, low, high, xtol=1e-9 * high))
