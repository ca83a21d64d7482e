"""Binomial noise: heads among fair tosses (Theorem 1 of the paper), closed under sums."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from dppp.privacy.noise.formulas import FLOATS, Arithmetic, Number, pmf_by_ratios
from dppp.privacy.pmf import Floats, Pmf
from dppp.whole_numbers import keep_whole

_EXACT_IN_FLOATS = 2**53
"""Whole numbers up to here are floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binomial:
    """Heads among `total_tosses` fair tosses, in equal shares.

    Shares are whole tosses, so the noise asked for is one that the shares divide; where they do
    not, a teacher's share is rounded up and the sum has more noise than is counted here.

    >>> from dppp import Binomial
    >>> noise = Binomial(total_tosses=100, shares=20)
    >>> noise.tosses_per_teacher, noise.variance
    (5, 25.0)
    """

    name: ClassVar[str] = "binomial"
    highest_loss: ClassVar[float] = math.inf
    is_pointed: ClassVar[bool] = False
    is_log_concave: ClassVar[bool] = True
    total_tosses: int
    shares: int = 1

    def __post_init__(self) -> None:
        keep_whole(self, "total_tosses", "shares")

    def report(self) -> dict[str, int | float]:
        """Parameters of the sum and of one share."""
        return {"total_tosses": self.total_tosses, "tosses_per_teacher": self.tosses_per_teacher}

    @property
    def share_in_brief(self) -> str:
        """One share, for a table."""
        return f"m {self.tosses_per_teacher}"

    @property
    def tosses_per_teacher(self) -> int:
        """Tosses of one share: m = ⌈n/h⌉ (the paper's n/N need not be a whole number)."""
        return -(-self.total_tosses // self.shares)

    @property
    def has_equal_shares(self) -> bool:
        """Whether the tosses divide into whole ones."""
        return self.total_tosses % self.shares == 0

    @property
    def variance(self) -> float:
        """Variance of the sum."""
        return self.total_tosses / 4

    @property
    def centre(self) -> int:
        """The upper of the one or two most likely values."""
        return (self.total_tosses + 1) // 2

    @property
    def is_half_centred(self) -> bool:
        """An odd number of tosses is symmetric about a half."""
        return self.total_tosses % 2 == 1

    def reach(self, log_tail: float) -> int:
        """How far from the centre the masses matter (Hoeffding); never past the last toss."""
        hoeffding = math.ceil(math.sqrt(-log_tail * self.total_tosses / 2)) + 1
        return min(hoeffding, self.total_tosses - self.centre)

    def limit_ratio(self, reach: int) -> float:
        """Bound on the ratios past `reach`: they fall, and end at 0."""
        value = self.centre + reach
        return (self.total_tosses - value) / (value + 1)

    def ratios(self, reach: int, arithmetic: Arithmetic = FLOATS) -> Sequence[Number] | Floats:
        """p(centre + k) / p(centre + k - 1) for k = 1 … reach."""
        start, tosses = self.centre, self.total_tosses
        if arithmetic is FLOATS and tosses < _EXACT_IN_FLOATS:
            values = np.arange(start, start + reach, dtype=np.float64)
            return (tosses - values) / (values + 1)
        return [arithmetic.number(tosses - k) / (k + 1) for k in range(start, start + reach)]

    def pmf(self) -> Pmf:
        """The masses of the sum."""
        return pmf_by_ratios(self)

    def one_share(self) -> Self:
        """What one teacher draws."""
        return replace(self, total_tosses=self.tosses_per_teacher, shares=1)

    def of_teachers(self, teachers: int) -> Self:
        """The sum of this many shares, whatever number they were sized for."""
        return replace(self, total_tosses=self.tosses_per_teacher * teachers, shares=teachers)

    def sum_of_centres(self, teachers: int) -> int:
        """What this many shares, each around m/2, add up to on average.

        With an odd number of tosses in all, counts stay half a vote too high, all alike.
        """
        return self.tosses_per_teacher * teachers // 2
