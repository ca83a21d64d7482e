"""Pólya noise: a difference of two negative binomial variables, closed under sums, any split."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from dppp.errors import InputError
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

_LEAST_SMOOTH_SHAPE = 8
"""Sums of a smaller shape have a point in the middle, like the discrete Laplace distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Polya:
    """Difference of two negative binomial variables (shape, ratio), in equal shares.

    Shape 1 is the discrete Laplace distribution, with masses proportional to ratio^|x|.

    >>> from dppp import Polya, delta_at
    >>> delta_at(Polya(shape=1, ratio=0.7, shares=20), 1.0)  # pure: no δ from ε = -2 ln 0.7 on
    0.0
    """

    name: ClassVar[str] = "polya"
    has_equal_shares: ClassVar[bool] = True
    centre: ClassVar[int] = 0
    is_half_centred: ClassVar[bool] = False
    shape: float
    ratio: float
    shares: int = 1

    def __post_init__(self) -> None:
        keep_positive(self, "shape", "ratio")
        keep_whole(self, "shares")
        if self.ratio >= 1:
            raise InputError(
                f"ratio must lie between 0 and 1, got {self.ratio}", hint="for example 0.9"
            )

    def report(self) -> dict[str, int | float]:
        """Parameters of the sum and of one share."""
        return {"shape": self.shape, "share_shape": self.share_shape, "ratio": self.ratio}

    @property
    def share_in_brief(self) -> str:
        """One share, for a table."""
        return f"r {self.share_shape:.3g}, q {self.ratio:.3g}"

    @property
    def share_shape(self) -> float:
        """Shape of one share: the shapes of the shares add up."""
        return self.shape / self.shares

    @property
    def is_pointed(self) -> bool:
        """Whether the masses are not smooth in the middle."""
        return self.shape < _LEAST_SMOOTH_SHAPE

    @property
    def is_log_concave(self) -> bool:
        """Whether the ratio of neighbouring masses falls all the way, as from shape 1 on."""
        return self.shape >= 1

    @property
    def highest_loss(self) -> float:
        """Bound on the privacy loss of one count moving by one.

        From shape 1 on the masses of the sum are log-concave, and their ratios fall to `ratio`.
        """
        return -math.log(self.ratio) * (1 + 2.0**-50) if self.shape >= 1 else math.inf

    @property
    def variance(self) -> float:
        """Variance of the sum."""
        return 2 * self.shape * self.ratio / (1 - self.ratio) ** 2

    def reach(self, log_tail: float) -> int:
        """Chernoff with the negative binomial's moment generating function."""
        shape, q = self.shape, self.ratio

        def log_moment(t: Floats) -> Floats:
            odds = q / (1 - q)
            return -shape * (np.log1p(-odds * np.expm1(t)) + np.log1p(-odds * np.expm1(-t)))

        return chernoff_reach(log_moment, highest=-math.log(q), log_tail=log_tail)

    def limit_ratio(self, reach: int) -> float:
        """The ratios tend to `ratio`: from above for shape > 1, else from below."""
        return self.ratio * max(1.0, (reach + self.shape) / (reach + 1))

    def ratios(self, reach: int, arithmetic: Arithmetic = FLOATS) -> Sequence[Number] | Floats:
        """Backward recurrence from the generating function ((1-qz)(1-q/z))^(-shape).

        q (k+1-shape) p(k+1) = (1+q²) k p(k) - q (k-1+shape) p(k-1)
        """
        start = reach + steps_to_forget(self.ratio, arithmetic.bits)
        found = self._fast_ratios(start) if arithmetic is FLOATS else None
        return self._any_ratios(start, arithmetic)[:reach] if found is None else found[:reach]

    def _any_ratios(self, start: int, arithmetic: Arithmetic) -> list[Number]:
        shape = arithmetic.number(self.shape)
        q = arithmetic.number(self.ratio)
        ratio = q
        result: list[Number] = []
        for k in range(start, 0, -1):
            ratio = q * (k - 1 + shape) / ((1 + q * q) * k - q * (k + 1 - shape) * ratio)
            result.append(ratio)
        return result[::-1]

    def _fast_ratios(self, start: int) -> Floats | None:
        """The same by elimination: with q (k-1+shape) / ratio(k) as the pivots."""
        q, k = self.ratio, np.arange(start, 0, -1, dtype=np.float64)
        diagonal = (1 + q * q) * k
        diagonal[0] -= q * (start + 1 - self.shape) * q
        numerators = q * (k - 1 + self.shape)
        pivots = eliminate(diagonal, numerators[:-1], q * (k[1:] + 1 - self.shape))
        return None if pivots is None else (numerators / pivots)[::-1]

    def pmf(self) -> Pmf:
        """The masses of the sum."""
        return pmf_by_ratios(self)

    def one_share(self) -> Self:
        """What one teacher draws."""
        return replace(self, shape=self.share_shape, shares=1)

    def of_teachers(self, teachers: int) -> Self:
        """The sum of this many shares, whatever number they were sized for."""
        return replace(self, shape=self.share_shape * teachers, shares=teachers)

    def shared_among(self, shares: int) -> Self:
        """The same sum in another number of shares."""
        return replace(self, shares=shares)

    def sum_of_centres(self, teachers: int) -> int:  # noqa: ARG002 - the same for any number
        """What this many shares add up to on average."""
        return 0
