"""How much noise a promise needs.

`exact` searches the smallest parameter of a family whose exact joint δ, for all queries together
and with only the honest shares counted, is within the promise; the last step always rounds toward
more noise. `paper` takes the paper's formulas as they stand and says what they deliver.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from scipy import optimize

from dppp.errors import InputError, UncertifiedError
from dppp.privacy.accounting import Spending, least_delta, total_delta
from dppp.privacy.certificate import CALIBRATIONS, Certificate, Promise, issue_certificate
from dppp.privacy.noise import (
    FAMILIES,
    Binomial,
    DiscreteGaussian,
    Noise,
    Polya,
    Skellam,
    family_named,
)
from dppp.privacy.paper_bounds import (
    analytic_gaussian_sigma,
    dwork_2006_tosses,
    theorem_1_tosses,
)
from dppp.privacy.trust import Trust

POLYA_SHAPES = (1, 2, 4, 8, 16, 32, 64)
"""Shapes of the sum that are tried; more makes the noise closer to Skellam."""

_RESERVE = 2.0**-24
"""Part of δ that the search leaves for sampling_delta and for the rounding of other machines.

Every party works a certificate out for itself; processors differ in the last digits of a transform.
"""


def calibrate(
    noise: str,
    *,
    epsilon: float,
    delta: float,
    teachers: int,
    colluders: int | None = None,
    dropouts: int | None = None,
    queries: int = 1,
    classes: int = 10,
    calibration: str = "exact",
) -> Certificate:
    """The noise of this family (or of the best one, "auto") for a total (ε, δ) over all queries."""
    promise = Promise(epsilon=epsilon, delta=delta, queries=queries, classes=classes)
    trust = Trust.with_defaults(teachers, colluders, dropouts)
    return calibrate_for(noise, promise, trust, calibration=calibration)


@functools.lru_cache(maxsize=128)
def calibrate_for(
    noise: str, promise: Promise, trust: Trust, *, calibration: str = "exact"
) -> Certificate:
    """The same for a promise and a trust that were made before."""
    if calibration not in CALIBRATIONS:
        raise InputError(f"unknown calibration {calibration!r}", hint="choose exact or paper")
    _require_computable(promise)
    if calibration == "paper":
        return _calibrate_as_the_paper(noise, promise, trust)
    if noise == "auto":
        certificates = _calibrate_every_family(promise, trust)
        variances = tuple((each.noise.name, each.noise.variance) for each in certificates)
        best = min(certificates, key=lambda certificate: certificate.noise.variance)
        return replace(best, chosen_from=variances)
    return _calibrate_exactly(family_named(noise).name, promise, trust)


def _require_computable(promise: Promise) -> None:
    least = least_delta(promise.queries)
    if promise.delta < least:
        raise InputError(
            f"delta = {promise.delta:g} is too small to be certified over {promise.queries} "
            f"queries: rounding alone may be {least:.1g}",
            hint="use a larger delta",
        )


def _calibrate_exactly(name: str, promise: Promise, trust: Trust) -> Certificate:
    certificate = _certify_smallest(name, promise, trust, reserve=_RESERVE)
    if not certificate.certified and certificate.sampling_delta < promise.delta / 8:
        # A large ε makes sampling dear: leave it more room.
        reserve = 4 * certificate.sampling_delta / promise.delta
        certificate = _certify_smallest(name, promise, trust, reserve=reserve)
    if not certificate.certified:
        raise UncertifiedError(
            f"{name} noise cannot be certified for epsilon = {promise.epsilon:g}, delta = "
            f"{promise.delta:g} over {promise.queries} queries: sampling alone adds "
            f"{certificate.sampling_delta:.2g} to delta",
            hint="lower epsilon or raise delta",
        )
    return certificate


def _certify_smallest(name: str, promise: Promise, trust: Trust, *, reserve: float) -> Certificate:
    """The smallest noise for a δ less the reserve, and what it delivers against the whole δ."""
    shares = trust.honest_shares
    goal = replace(promise, delta=promise.delta * (1 - reserve))
    formula: tuple[tuple[str, int | float], ...] = ()
    noise: Noise
    match name:
        case Binomial.name:
            tosses = _smallest_tosses(goal)
            noise = Binomial(total_tosses=-(-tosses // shares) * shares, shares=shares)
            formula = (("total_tosses", tosses), ("sum_tosses", noise.total_tosses))
        case DiscreteGaussian.name:
            noise = _smallest(goal, lambda variance: _discrete_gaussian(variance, shares))
        case Skellam.name:
            noise = _smallest(goal, lambda variance: _skellam(variance, shares))
        case _:
            noise = _best_polya(goal, shares)
    return issue_certificate(noise, promise, trust, calibration="exact", formula=formula)


def _calibrate_every_family(promise: Promise, trust: Trust) -> list[Certificate]:
    """All families that can be certified; at least one, or the reason of the last."""
    certificates, failures = [], []
    for name in FAMILIES:
        try:
            certificates.append(_calibrate_exactly(name, promise, trust))
        except UncertifiedError as error:
            failures.append(error)
    if not certificates:
        raise failures[-1]
    return certificates


def compare(promise: Promise, trust: Trust) -> list[Certificate]:
    """Every family by every calibration it has, least variance among the certified first."""
    _require_computable(promise)
    certificates = _calibrate_every_family(promise, trust)
    certificates += [
        _calibrate_as_the_paper(name, promise, trust)
        for name in (Binomial.name, DiscreteGaussian.name)
    ]
    return sorted(certificates, key=lambda each: (not each.certified, each.noise.variance))


def _smallest(promise: Promise, make: Callable[[float], Noise]) -> Noise:
    """The noise of least variance within the promise, where `make` gives the noise of a variance.

    Certified means that the noise returned was itself evaluated; the search only finds it.
    """

    def excess(log_variance: float) -> float:
        return _log_excess(make(math.exp(log_variance)), promise)

    low, high = _bracket(excess, math.log(_gaussian_variance(promise)))
    log_variance = float(optimize.brentq(excess, low, high, xtol=1e-9))
    step = 1e-10
    while excess(log_variance) > 0:
        log_variance += step
        step *= 2
    return make(math.exp(log_variance))


def _smallest_tosses(promise: Promise) -> int:
    """The smallest n for which Binomial(n, 1/2) is within the promise."""

    def is_enough(tosses: int) -> bool:
        return _log_excess(Binomial(total_tosses=tosses), promise) <= 0

    high = max(2, math.ceil(4 * _gaussian_variance(promise)))
    width = max(1, high // 64)
    while not is_enough(high):
        high, width = high + width, 2 * width
    low = max(0, high - width)
    while low > 0 and is_enough(low):
        low, high, width = max(0, low - 2 * width), low, 2 * width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _best_polya(promise: Promise, shares: int) -> Noise:
    """The smallest variance over the shapes; past the best one it only grows.

    One query is best served by small shapes and many by large ones, so start there.
    """
    best: Noise | None = None
    for shape in POLYA_SHAPES if promise.queries == 1 else reversed(POLYA_SHAPES):
        noise = _smallest(promise, functools.partial(_polya, shape=shape, shares=shares))
        if best is not None and noise.variance > best.variance:
            break
        best = noise
    assert best is not None
    return best


def _log_excess(noise: Noise, promise: Promise) -> float:
    spending = Spending(noise=noise, queries=promise.queries)
    delta = total_delta([spending], promise.epsilon)
    return math.log(max(delta, 1e-300)) - math.log(promise.delta)


def _bracket(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """An interval in which a falling function changes its sign."""
    low, high, step = start, start, 0.02
    while excess(low) <= 0:
        low, high, step = low - step, low, 2 * step
    while excess(high) > 0:
        low, high, step = high, high + step, 2 * step
    return low, high


def _gaussian_variance(promise: Promise) -> float:
    """Where to start: continuous Gaussian noise, each query moving two counts by one."""
    sensitivity = math.sqrt(2 * promise.queries)
    return analytic_gaussian_sigma(promise.epsilon, promise.delta, sensitivity) ** 2


def _skellam(variance: float, shares: int) -> Skellam:
    return Skellam(share_variance=_round_up(variance / shares), shares=shares)


def _discrete_gaussian(variance: float, shares: int) -> DiscreteGaussian:
    return DiscreteGaussian(share_sigma=_round_up(math.sqrt(variance / shares)), shares=shares)


def _polya(variance: float, shape: int, shares: int) -> Polya:
    """The ratio q solves variance = 2 shape q/(1-q)²; rounded up where that leaves it below 1."""
    a = shape / variance
    ratio = 1 / (1 + a + math.sqrt(a * (a + 2)))
    return Polya(shape=shape, ratio=min(_round_up(ratio), math.nextafter(1, 0)), shares=shares)


def _round_up(value: float) -> float:
    """Up to twelve significant digits, so that a parameter can be read and typed."""
    digits = 11 - math.floor(math.log10(value))
    scaled = Fraction(value) * Fraction(10) ** digits
    return float(Fraction(math.ceil(scaled)) / Fraction(10) ** digits)


def _calibrate_as_the_paper(name: str, promise: Promise, trust: Trust) -> Certificate:
    """Theorem 1 or Theorem 2, once a query; for more queries the paper leaves only ε/T and δ/T."""
    epsilon, delta = promise.epsilon / promise.queries, promise.delta / promise.queries
    honest = _honest_teachers_in_the_paper(trust)
    formula: tuple[tuple[str, int | float], ...]
    noise: Noise
    if name == Binomial.name:
        tosses = theorem_1_tosses(epsilon, delta)
        dwork = dwork_2006_tosses(epsilon, delta)
        # The paper's n/N and 3n/2N are no whole numbers; it does not say how to round them.
        per_teacher = max(1, math.floor(tosses / honest))
        noise = Binomial(total_tosses=per_teacher * trust.honest_shares, shares=trust.honest_shares)
        formula = (
            ("total_tosses", tosses),
            ("sum_tosses", noise.total_tosses),
            ("dwork_2006_total_tosses", dwork),
        )
    elif name == DiscreteGaussian.name:
        sigma = analytic_gaussian_sigma(epsilon, delta, 1.0)
        formula = (("sigma", sigma),)
        share_sigma = sigma / math.sqrt(honest)
        noise = DiscreteGaussian(share_sigma=share_sigma, shares=trust.honest_shares)
    else:
        raise InputError(
            f"the paper has no calibration for {name} noise",
            hint="use --calibration exact, or binomial or discrete-gaussian noise",
        )
    return issue_certificate(noise, promise, trust, calibration="paper", formula=formula)


def _honest_teachers_in_the_paper(trust: Trust) -> Fraction:
    """N for γ = 1, 2N/3 for γ = 2/3 (not a whole number), else the honest shares."""
    if trust.colluders + trust.dropouts == trust.teachers // 3 > 0:
        return Fraction(2 * trust.teachers, 3)
    return Fraction(trust.honest_shares)
