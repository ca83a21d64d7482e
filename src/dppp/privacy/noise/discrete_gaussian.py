"""Discrete Gaussian noise (the paper's Definition 2).

Corollary 1, that sums of it are of the same family, is false: what is promised here is worked out
for the true sum.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from dppp.privacy.noise.discrete_gaussian_sum import discrete_gaussian_sum_pmf
from dppp.privacy.noise.formulas import (
    FLOATS,
    Arithmetic,
    Number,
    keep_positive,
    pmf_by_ratios,
)
from dppp.privacy.pmf import Pmf
from dppp.whole_numbers import keep_whole

_WIDE_SIGMA = 10_000
"""Past it, and long before, no float tells a discrete Gaussian's variance from a Gaussian's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Masses proportional to exp(-x²/(2 share_sigma²)) for each share (Definition 2).

    >>> from dppp import DiscreteGaussian
    >>> round(DiscreteGaussian(share_sigma=2.0, shares=20).variance, 6)
    80.0
    >>> round(DiscreteGaussian(share_sigma=0.2, shares=2000).variance, 6)  # not 80
    0.014907
    """

    name: ClassVar[str] = "discrete-gaussian"
    highest_loss: ClassVar[float] = math.inf
    is_pointed: ClassVar[bool] = False
    is_log_concave: ClassVar[bool] = True
    has_equal_shares: ClassVar[bool] = True
    centre: ClassVar[int] = 0
    is_half_centred: ClassVar[bool] = False
    share_sigma: float
    shares: int = 1

    def __post_init__(self) -> None:
        keep_positive(self, "share_sigma")
        keep_whole(self, "shares")

    def report(self) -> dict[str, int | float]:
        """Parameters of one share; the sum has none of its own."""
        return {"share_sigma": self.share_sigma}

    @property
    def share_in_brief(self) -> str:
        """One share, for a table."""
        return f"σ {self.share_sigma:.4g}"

    @property
    def variance(self) -> float:
        """Variance of the sum: below shares * share_sigma² when sigma is small."""
        if self.share_sigma > _WIDE_SIGMA:
            return self.shares * self.share_sigma**2
        values = np.arange(1, math.ceil(40 * self.share_sigma) + 2, dtype=np.float64)
        weights = np.exp(-(values**2) / (2 * self.share_sigma**2))
        return float(self.shares * 2 * np.dot(weights, values**2) / (1 + 2 * weights.sum()))

    def reach(self, log_tail: float) -> int:
        """Sub-Gaussian with its own sigma (Canonne, Kamath, Steinke 2020)."""
        return math.ceil(self.share_sigma * math.sqrt(-2 * self.shares * log_tail)) + 1

    def limit_ratio(self, reach: int) -> float:
        """The ratios of one share fall."""
        return math.exp(-(2 * reach + 1) / (2 * self.share_sigma**2))

    def ratios(self, reach: int, arithmetic: Arithmetic = FLOATS) -> list[Number]:
        """Ratios for a single share; a sum of several has no closed form."""
        assert self.shares == 1, "the sum of discrete Gaussians has no ratio formula"
        sigma = arithmetic.number(self.share_sigma)
        precision = 1 / (2 * sigma * sigma)
        return [arithmetic.exp(-(2 * k - 1) * precision) for k in range(1, reach + 1)]

    def pmf(self) -> Pmf:
        """The masses of the sum: of several shares a convolution."""
        if self.shares > 1:
            return discrete_gaussian_sum_pmf(self.share_sigma, self.shares)
        return pmf_by_ratios(self)

    def one_share(self) -> Self:
        """What one teacher draws."""
        return replace(self, shares=1)

    def of_teachers(self, teachers: int) -> Self:
        """The sum of this many shares, whatever number they were sized for."""
        return replace(self, shares=teachers)

    def sum_of_centres(self, teachers: int) -> int:  # noqa: ARG002 - the same for any number
        """What this many shares add up to on average."""
        return 0
