"""The four families of discrete noise: one teacher's share, and the sum of h shares.

A noise object is the sum of `shares` independent shares; `one_share()` is what one teacher draws.
Values are integers. The binomial is sent as it falls, around tosses/2 (the common offset is
subtracted from the counts later); the other families are centred on 0.

Binomial and discrete Gaussian are the paper's (Theorem 1; Definition 2 and Corollary 1, which
claims that the discrete Gaussian is closed under sums: it is not). Skellam, a difference of two
Poisson variables, and Pólya, a difference of two negative binomial ones, are closed under sums with
any split.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from dppp.errors import InputError
from dppp.privacy.pmf import (
    LOG_TAIL,
    Floats,
    Pmf,
    discrete_gaussian_sum_pmf,
    pmf_from_ratios,
)

_WIDE_SIGMA = 10_000
"""Past it, and long before, no float tells a discrete Gaussian's variance from a Gaussian's."""

Number = Any
"""A float, or a gmpy2.mpfr where the sampler needs more digits; the formulas serve both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """Which numbers a formula is worked out in, and how many bits of them are good."""

    number: Callable[[float], Number]
    exp: Callable[[Number], Number]
    bits: int


FLOATS = Arithmetic(number=float, exp=math.exp, bits=53)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binomial:
    """Heads among `total_tosses` fair tosses, in equal shares.

    Shares are whole tosses, so the noise asked for is one that the shares divide; where they do
    not, a teacher's share is rounded up and the sum has more noise than is counted here.
    """

    name: ClassVar[str] = "binomial"
    total_tosses: int
    shares: int = 1

    def __post_init__(self) -> None:
        require_whole("total_tosses", self.total_tosses)
        require_whole("shares", self.shares)

    @property
    def tosses_per_teacher(self) -> int:
        """Tosses of one share: m = ⌈n/h⌉ (the paper's n/N is no whole number)."""
        return -(-self.total_tosses // self.shares)

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

    def ratios(self, reach: int, arithmetic: Arithmetic = FLOATS) -> list[Number]:
        """p(centre + k) / p(centre + k - 1) for k = 1 … reach."""
        start, tosses = self.centre, self.total_tosses
        return [arithmetic.number(tosses - k) / (k + 1) for k in range(start, start + reach)]

    def one_share(self) -> Self:
        """What one teacher draws."""
        return replace(self, total_tosses=self.tosses_per_teacher, shares=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Masses proportional to exp(-x²/(2 share_sigma²)) for each share (Definition 2)."""

    name: ClassVar[str] = "discrete-gaussian"
    share_sigma: float
    shares: int = 1

    def __post_init__(self) -> None:
        _require_positive("share_sigma", self.share_sigma)
        require_whole("shares", self.shares)

    @property
    def variance(self) -> float:
        """Variance of the sum: below shares * share_sigma² when sigma is small."""
        if self.share_sigma > _WIDE_SIGMA:
            return self.shares * self.share_sigma**2
        values = np.arange(1, math.ceil(40 * self.share_sigma) + 2, dtype=np.float64)
        weights = np.exp(-(values**2) / (2 * self.share_sigma**2))
        return float(self.shares * 2 * np.dot(weights, values**2) / (1 + 2 * weights.sum()))

    centre: ClassVar[int] = 0
    is_half_centred: ClassVar[bool] = False

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

    def one_share(self) -> Self:
        """What one teacher draws."""
        return replace(self, shares=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skellam:
    """Difference of two Poisson variables of mean share_variance/2, for each share."""

    name: ClassVar[str] = "skellam"
    share_variance: float
    shares: int = 1

    def __post_init__(self) -> None:
        _require_positive("share_variance", self.share_variance)
        require_whole("shares", self.shares)

    @property
    def variance(self) -> float:
        """Variance of the sum."""
        return self.share_variance * self.shares

    centre: ClassVar[int] = 0
    is_half_centred: ClassVar[bool] = False

    def reach(self, log_tail: float) -> int:
        """Chernoff: log E exp(t X) = variance (cosh t - 1)."""
        variance = self.variance
        return _chernoff_reach(
            lambda t: variance * 2 * np.sinh(t / 2) ** 2, highest=50.0, log_tail=log_tail
        )

    def limit_ratio(self, reach: int) -> float:
        """I(k+1)/I(k) < V / (k + 1/2 + sqrt((k + 1/2)² + V²)) (Amos 1974), and falls."""
        k = reach + 0.5
        return self.variance / (k + math.hypot(k, self.variance))

    def ratios(self, reach: int, arithmetic: Arithmetic = FLOATS) -> list[Number]:
        """I(k)/I(k-1) at V by the backward recurrence I(k-1) - I(k+1) = (2k/V) I(k)."""
        variance = arithmetic.number(self.share_variance) * self.shares
        start = reach + _steps_to_forget(self.limit_ratio(reach), arithmetic.bits)
        ratio = arithmetic.number(self.limit_ratio(start))
        result: list[Number] = []
        for k in range(start, 0, -1):
            ratio = 1 / (2 * k / variance + ratio)
            if k <= reach:
                result.append(ratio)
        return result[::-1]

    def one_share(self) -> Self:
        """What one teacher draws."""
        return replace(self, shares=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Polya:
    """Difference of two negative binomial variables (shape, ratio), in equal shares.

    Shape 1 is the discrete Laplace distribution, with masses proportional to ratio^|x|.
    """

    name: ClassVar[str] = "polya"
    shape: float
    ratio: float
    shares: int = 1

    def __post_init__(self) -> None:
        _require_positive("shape", self.shape)
        require_whole("shares", self.shares)
        _require_positive("ratio", self.ratio)
        if self.ratio >= 1:
            raise InputError(f"ratio must lie between 0 and 1, got {self.ratio}")

    @property
    def share_shape(self) -> float:
        """Shape of one share: the shapes of the shares add up."""
        return self.shape / self.shares

    @property
    def variance(self) -> float:
        """Variance of the sum."""
        return 2 * self.shape * self.ratio / (1 - self.ratio) ** 2

    centre: ClassVar[int] = 0
    is_half_centred: ClassVar[bool] = False

    def reach(self, log_tail: float) -> int:
        """Chernoff with the negative binomial's moment generating function."""
        shape, q = self.shape, self.ratio

        def log_moment(t: Floats) -> Floats:
            odds = q / (1 - q)
            return -shape * (np.log1p(-odds * np.expm1(t)) + np.log1p(-odds * np.expm1(-t)))

        return _chernoff_reach(log_moment, highest=-math.log(q), log_tail=log_tail)

    def limit_ratio(self, reach: int) -> float:
        """The ratios tend to `ratio`: from above for shape > 1, else from below."""
        return self.ratio * max(1.0, (reach + self.shape) / (reach + 1))

    def ratios(self, reach: int, arithmetic: Arithmetic = FLOATS) -> list[Number]:
        """Backward recurrence from the generating function ((1-qz)(1-q/z))^(-shape).

        q (k+1-shape) p(k+1) = (1+q²) k p(k) - q (k-1+shape) p(k-1)
        """
        shape = arithmetic.number(self.shape)
        q = arithmetic.number(self.ratio)
        start = reach + _steps_to_forget(self.ratio, arithmetic.bits)
        ratio = q
        result: list[Number] = []
        for k in range(start, 0, -1):
            ratio = q * (k - 1 + shape) / ((1 + q * q) * k - q * (k + 1 - shape) * ratio)
            if k <= reach:
                result.append(ratio)
        return result[::-1]

    def one_share(self) -> Self:
        """What one teacher draws."""
        return replace(self, shape=self.share_shape, shares=1)


Noise = Binomial | DiscreteGaussian | Skellam | Polya

FAMILIES: Mapping[str, type[Noise]] = {
    family.name: family for family in (Binomial, DiscreteGaussian, Skellam, Polya)
}


LONGEST_REACH = 2**23
"""Values on either side of the centre that are worked out, in some hundred megabytes."""


def noise_of_all(noise: Noise, teachers: int) -> Noise:
    """The sum of this many shares of the noise, whatever number it was sized for."""
    match noise:
        case Binomial():
            return Binomial(total_tosses=noise.tosses_per_teacher * teachers, shares=teachers)
        case DiscreteGaussian() | Skellam():
            return replace(noise, shares=teachers)
        case Polya():
            return replace(noise, shape=noise.share_shape * teachers, shares=teachers)


def pmf_of(noise: Noise) -> Pmf:
    """The masses of the sum of the shares; refuses what would take all time and memory."""
    require_narrow(noise, LONGEST_REACH)
    if isinstance(noise, DiscreteGaussian) and noise.shares > 1:
        return discrete_gaussian_sum_pmf(noise.share_sigma, noise.shares)
    reach = noise.reach(LOG_TAIL)
    return pmf_from_ratios(
        noise.ratios(reach),
        centre=noise.centre,
        is_half_centred=noise.is_half_centred,
        limit=noise.limit_ratio(reach),
    )


def require_narrow(noise: Noise, longest_reach: int) -> None:
    """Refuse noise whose masses would be too many to be worked out."""
    try:
        with np.errstate(all="ignore"):
            is_narrow = noise.reach(LOG_TAIL) <= longest_reach
    except (ArithmeticError, ValueError):
        is_narrow = False
    if not is_narrow:
        raise InputError(
            f"{noise.name} noise of standard deviation {_deviation_words(noise)} is too wide to "
            "be worked out, and no count under it would mean anything",
            hint="use less noise, that is a larger epsilon or delta, or fewer queries",
        )


def _deviation_words(noise: Noise) -> str:
    try:
        return f"{math.sqrt(noise.variance):.2g}"
    except ArithmeticError:
        return "past all numbers"


def highest_loss(noise: Noise) -> float:
    """Bound on the privacy loss of one count moving by one; infinite unless the noise is pure.

    For a Pólya sum of shape ≥ 1 the masses are log-concave and their ratios fall to `ratio`.
    """
    if isinstance(noise, Polya) and noise.shape >= 1:
        return -math.log(noise.ratio) * (1 + 2.0**-50)
    return math.inf


def noise_to_parameters(noise: Noise) -> dict[str, object]:
    """A plain mapping that `noise_from_parameters` reads back."""
    parameters = {field.name: getattr(noise, field.name) for field in fields(noise)}
    return {"noise": noise.name, **parameters}


def noise_from_parameters(parameters: Mapping[str, object]) -> Noise:
    """The noise that `noise_to_parameters` wrote; refuses unknown names and wrong types."""
    given = dict(parameters)
    family = family_named(given.pop("noise", None))
    expected = {field.name: field.type for field in fields(family)}
    if set(given) != set(expected):
        raise InputError(
            f"{family.name} noise is described by {sorted(expected)}, got {sorted(given)}"
        )
    return family(**given)  # type: ignore[arg-type]


def family_named(name: object) -> type[Noise]:
    """The family of this name."""
    if not isinstance(name, str) or name not in FAMILIES:
        raise InputError(f"unknown noise {name!r}", hint=f"choose one of {', '.join(FAMILIES)}")
    return FAMILIES[name]


def _chernoff_reach(
    log_moment: Callable[[Floats], Floats], *, highest: float, log_tail: float
) -> int:
    """The least k with P(X ≥ k) ≤ exp(log_tail) that a Chernoff bound can show."""
    t = highest * np.geomspace(1e-7, 0.9999, 600)
    return math.ceil(float(np.min((log_moment(t) - log_tail) / t))) + 1


def _steps_to_forget(limit: float, bits: int) -> int:
    """Steps of a backward recurrence until its starting value no longer shows in `bits` bits."""
    return math.ceil(bits * math.log(2) / (-2 * math.log(limit))) + 10


def require_whole(name: str, value: object) -> None:
    """Refuse what is not a whole number of 1 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number, 1 or more, got {value!r}")


def _require_positive(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise InputError(f"{name} must be a positive number, got {value!r}")
