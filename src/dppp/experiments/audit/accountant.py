"""The audit of the accountant: a bracket around ε, worked out on another way.

Nothing of `privacy/` takes part but the parameters of the noise. The masses are sums of products of
SciPy's (all positive, so nothing cancels). The losses are put on a grid twice, rounded down and
rounded up, so the true δ(ε) lies between the two compositions. What is cut off counts as no loss
below, and as infinite loss above. What the Fourier transform may err is taken off below and added
above.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import fft, stats

from dppp.errors import InputError
from dppp.privacy.divergence import HIGHEST_EPSILON
from dppp.privacy.noise import Binomial, DiscreteGaussian, Noise, Polya, Skellam
from dppp.privacy.pmf import Floats

_CUT = 1e-16
"""Mass of a single count that the bracket may leave out, at the most a part of δ."""
_MOST_CELLS = 2**22
_ROOM = 1e-3
"""Relative to ε: how wide the two roundings together may make the bracket, where cells allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountantAudit:
    """The accountant's ε between two others."""

    epsilon: float
    lower: float
    upper: float

    @property
    def passed(self) -> bool:
        """Not below what is certainly spent, and not above what certainly suffices."""
        return self.lower <= self.epsilon <= self.upper


def audit_accountant(
    noise: Noise, *, queries: int, delta: float, epsilon: float, counts: int = 2, by: int = 1
) -> AccountantAudit:
    """Hold this ε, which an accountant gave for this δ, against two roundings."""
    masses = independent_masses(noise)
    compositions = counts * queries
    low_end, high_end = (
        _smallest_epsilon(
            _Composition.of(masses, by, compositions, epsilon, delta, is_upper=is_upper), delta
        )
        for is_upper in (False, True)
    )
    return AccountantAudit(epsilon=epsilon, lower=low_end, upper=high_end)


def independent_masses(noise: Noise) -> Floats:
    """The masses of the sum of the shares, far into the tails, by SciPy and plain convolution."""
    deviation = math.sqrt(noise.variance)
    reach = math.ceil(30 * deviation) + 60
    places = np.arange(reach)
    if isinstance(noise, Binomial):
        found = stats.binom.pmf(np.arange(noise.total_tosses + 1), noise.total_tosses, 0.5)
    elif isinstance(noise, Skellam):
        half = noise.share_variance * noise.shares / 2
        start = max(0, math.floor(half - 20 * math.sqrt(half)))
        one = stats.poisson.pmf(start + np.arange(reach + math.ceil(40 * math.sqrt(half))), half)
        found = np.convolve(one, one[::-1])
    elif isinstance(noise, Polya):
        length = math.ceil(-60 / math.log(noise.ratio)) + reach
        one = stats.nbinom.pmf(np.arange(length), noise.shape, 1 - noise.ratio)
        found = np.convolve(one, one[::-1])
    elif isinstance(noise, DiscreteGaussian):
        half_share = np.exp(-(places**2) / (2 * noise.share_sigma**2))
        share = np.concatenate((half_share[:0:-1], half_share))
        share /= share.sum()
        found = _power(share, noise.shares)
    else:
        raise InputError(f"no independent masses for {noise.name} noise")
    kept = np.flatnonzero(found > 1e-40)
    masses = np.asarray(found[kept[0] : kept[-1] + 1], dtype=np.float64)
    return np.asarray(masses / masses.sum())


def _power(share: Floats, times: int) -> Floats:
    """By repeated squaring; all terms are positive. What is below 1e-45 is dropped."""
    found, square = np.ones(1), share
    while times:
        if times & 1:
            found = _trimmed(np.convolve(found, square))
        times >>= 1
        if times:
            square = _trimmed(np.convolve(square, square))
    return found


def _trimmed(masses: Floats) -> Floats:
    kept = np.flatnonzero(masses > 1e-45)
    return masses[kept[0] : kept[-1] + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Composition:
    """Losses of everything on a grid, and what is added to δ: infinite loss, and rounding."""

    losses: Floats
    masses: Floats
    added: float

    @classmethod
    def of(
        cls,
        masses: Floats,
        by: int,
        compositions: int,
        epsilon: float,
        delta: float,
        *,
        is_upper: bool,
    ) -> "_Composition":
        before, after = masses[:-by], masses[by:]
        losses = np.log(before / after)
        order = np.argsort(losses)
        losses, before = losses[order], before[order]
        cut = min(_CUT, delta * 1e-6 / compositions)
        low, high = before.cumsum() > cut, before[::-1].cumsum()[::-1] > cut
        kept = low & high
        outside = float(before[~high].sum()) + float(masses[-by:].sum())
        span = float(np.ptp(losses[kept]))
        step = max(_ROOM * max(epsilon, 1e-3) / compositions, compositions * span / _MOST_CELLS)
        cells = (np.ceil if is_upper else np.floor)(losses[kept] / step).astype(np.int64)
        lowest = int(cells.min())
        grid = np.bincount(cells - lowest, before[kept])
        if is_upper:  # what is cut below still has mass: at the lowest loss that was kept
            grid[0] += float(before[~low].sum())
        size = fft.next_fast_len((len(grid) - 1) * compositions + 1, real=True)
        composed = fft.irfft(fft.rfft(grid, size) ** compositions, size)
        error = compositions * 2.0**-46
        return cls(
            losses=(lowest * compositions + np.arange(size, dtype=np.float64)) * step,
            masses=np.maximum(composed, 0.0),
            added=compositions * outside + error if is_upper else -error,
        )

    def delta_at(self, epsilon: float) -> float:
        """δ of the whole at this ε."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        gains = -np.expm1(epsilon - self.losses[first:])
        return max(0.0, float(np.dot(self.masses[first:], gains)) + self.added)


def _smallest_epsilon(composition: _Composition, delta: float) -> float:
    low, high = 0.0, 1.0
    while composition.delta_at(high) > delta and high < HIGHEST_EPSILON:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if composition.delta_at(middle) > delta else (low, middle)
    return high
