"""Skellam noise: a difference of two Poisson variables, closed under sums with any split."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from dppp.privacy.noise.formulas import (
    FLOATS,
    Arithmetic,
    Number,
    chernoff_reach,
    eliminate,
    keep_positive,
    pmf_by_ratios,
    steps_to_forget,
)
from dppp.privacy.pmf import Floats, Pmf
from dppp.whole_numbers import keep_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Skellam:
    """Difference of two Poisson variables of mean share_variance/2, for each share.

    >>> from dppp import Skellam
    >>> Skellam(share_variance=1.5, shares=20).variance
    30.0
    """

    name: ClassVar[str] = "skellam"
    highest_loss: ClassVar[float] = math.inf
    is_pointed: ClassVar[bool] = False
    is_log_concave: ClassVar[bool] = True
    has_equal_shares: ClassVar[bool] = True
    centre: ClassVar[int] = 0
    is_half_centred: ClassVar[bool] = False
    share_variance: float
    shares: int = 1

    def __post_init__(self) -> None:
        keep_positive(self, "share_variance")
        keep_whole(self, "shares")

    def report(self) -> dict[str, int | float]:
        """Parameters of one share; a certificate has the variance of the sum beside it."""
        return {"share_variance": self.share_variance}

    @property
    def share_in_brief(self) -> str:
        """One share, for a table."""
        return f"V {self.share_variance:.4g}"

    @property
    def variance(self) -> float:
        """Variance of the sum."""
        return self.share_variance * self.shares

    def reach(self, log_tail: float) -> int:
        """Chernoff: log E exp(t X) = variance (cosh t - 1)."""
        variance = self.variance
        return chernoff_reach(
            lambda t: variance * 2 * np.sinh(t / 2) ** 2, highest=50.0, log_tail=log_tail
        )

    def limit_ratio(self, reach: int) -> float:
        """I(k+1)/I(k) < V / (k + 1/2 + sqrt((k + 1/2)² + V²)) (Amos 1974), and falls."""
        k = reach + 0.5
        return self.variance / (k + math.hypot(k, self.variance))

    def ratios(self, reach: int, arithmetic: Arithmetic = FLOATS) -> Sequence[Number] | Floats:
        """I(k)/I(k-1) at V by the backward recurrence I(k-1) - I(k+1) = (2k/V) I(k)."""
        start = reach + steps_to_forget(self.limit_ratio(reach), arithmetic.bits)
        found = self._fast_ratios(start) if arithmetic is FLOATS else None
        return self._any_ratios(start, arithmetic)[:reach] if found is None else found[:reach]

    def _any_ratios(self, start: int, arithmetic: Arithmetic) -> list[Number]:
        variance = arithmetic.number(self.share_variance) * self.shares
        ratio = arithmetic.number(self.limit_ratio(start))
        result: list[Number] = []
        for k in range(start, 0, -1):
            ratio = 1 / (2 * k / variance + ratio)
            result.append(ratio)
        return result[::-1]

    def _fast_ratios(self, start: int) -> Floats | None:
        """The same by elimination: the pivots are 1 / ratio(k)."""
        diagonal = 2 * np.arange(start, 0, -1, dtype=np.float64) / self.variance
        diagonal[0] += self.limit_ratio(start)
        ones = np.ones(start - 1)
        pivots = eliminate(diagonal, -ones, ones)
        return None if pivots is None else (1 / pivots)[::-1]

    def pmf(self) -> Pmf:
        """The masses of the sum."""
        return pmf_by_ratios(self)

    def one_share(self) -> Self:
        """What one teacher draws."""
        return replace(self, shares=1)

    def of_teachers(self, teachers: int) -> Self:
        """The sum of this many shares, whatever number they were sized for."""
        return replace(self, shares=teachers)

    def shared_among(self, shares: int) -> Self:
        """The same sum in another number of shares."""
        return replace(self, share_variance=self.variance / shares, shares=shares)

    def sum_of_centres(self, teachers: int) -> int:  # noqa: ARG002 - the same for any number
        """What this many shares add up to on average."""
        return 0
