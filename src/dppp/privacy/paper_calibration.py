"""Noise by the paper's formulas as they stand, for comparison and reproduction.

The certificate says beside the promise what they really deliver.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from dppp.errors import InputError
from dppp.privacy.certificate import Certificate, Formula, Promise, issue_certificate
from dppp.privacy.change import ONE_OF_CLASSES
from dppp.privacy.noise import Binomial, DiscreteGaussian, Noise
from dppp.privacy.paper_bounds import (
    analytic_gaussian_sigma,
    dwork_2006_tosses,
    theorem_1_tosses,
)
from dppp.privacy.trust import Trust


def calibrate_as_the_paper(name: str, promise: Promise, trust: Trust) -> Certificate:
    """Theorem 1 or 2, once per query; for more queries the paper leaves only ε/T and δ/T."""
    if promise.change != ONE_OF_CLASSES:
        raise InputError(
            "the paper's formulas are for one of several classes, not for labels or numbers",
            hint="use --calibration exact",
        )
    epsilon, delta = promise.epsilon / promise.queries, promise.delta / promise.queries
    honest = _honest_teachers_in_the_paper(trust)
    noise, formula = _theorem(name)(epsilon, delta, honest, trust.honest_shares)
    return issue_certificate(noise, promise, trust, calibration="paper", formula=formula)


def paper_noise_of_one(name: str, epsilon: float, delta: float) -> Noise:
    """All the noise of Theorem 1 or 2 in a single share."""
    return _theorem(name)(epsilon, delta, Fraction(1), 1)[0]


def _theorem(name: str) -> "_Theorem":
    if name not in _THEOREMS:
        raise InputError(
            f"the paper has no calibration for {name} noise",
            hint="use --calibration exact, or binomial or discrete-gaussian noise",
        )
    return _THEOREMS[name]


def _theorem_1(
    epsilon: float, delta: float, honest: Fraction, shares: int
) -> tuple[Noise, Formula]:
    tosses = theorem_1_tosses(epsilon, delta)
    # The paper's n/N and 3n/2N need not be whole; it does not say how to round them.
    per_teacher = max(1, math.floor(tosses / honest))
    noise = Binomial(total_tosses=per_teacher * shares, shares=shares)
    return noise, (
        ("total_tosses", tosses),
        ("sum_tosses", noise.total_tosses),
        ("dwork_2006_total_tosses", dwork_2006_tosses(epsilon, delta)),
    )


def _theorem_2(
    epsilon: float, delta: float, honest: Fraction, shares: int
) -> tuple[Noise, Formula]:
    sigma = analytic_gaussian_sigma(epsilon, delta, 1.0)
    noise = DiscreteGaussian(share_sigma=sigma / math.sqrt(honest), shares=shares)
    return noise, (("sigma", sigma),)


_Theorem = Callable[[float, float, Fraction, int], tuple[Noise, Formula]]
_THEOREMS: Mapping[str, _Theorem] = {
    Binomial.name: _theorem_1,
    DiscreteGaussian.name: _theorem_2,
}

PAPER_FAMILIES = tuple(_THEOREMS)


def _honest_teachers_in_the_paper(trust: Trust) -> Fraction:
    """N for γ = 1, 2N/3 for γ = 2/3 (not a whole number), else the honest shares."""
    if trust.colluders + trust.dropouts == trust.teachers // 3 > 0:
        return Fraction(2 * trust.teachers, 3)
    return Fraction(trust.honest_shares)
