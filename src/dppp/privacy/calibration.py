"""How much noise a promise needs.

`exact` searches a small parameter of a family (smallest_noise.py) and then certifies what was
found: its exact joint δ, for all queries together and with only the honest shares counted, is
worked out once more and compared with the promise. `paper` takes the paper's formulas as they stand
and says what they deliver.
"""

import functools
from dataclasses import replace

from dppp.errors import InputError, UncertifiedError
from dppp.privacy.accounting import least_delta
from dppp.privacy.certificate import CALIBRATIONS, Certificate, Promise, issue_certificate
from dppp.privacy.change import ONE_OF_CLASSES, change_of
from dppp.privacy.noise import FAMILIES, family_named
from dppp.privacy.paper_calibration import PAPER_FAMILIES, calibrate_as_the_paper
from dppp.privacy.smallest_noise import gaussian_deviation, smallest_noise
from dppp.privacy.trust import Trust

_RESERVE = 2.0**-24
"""Part of δ that the search leaves for sampling_delta and for the rounding of other machines.

Every party works a certificate out for itself; processors differ in the last digits of a transform.
"""

_WIDEST_DEVIATION = 100_000
"""Votes; the exact δ sums over 28 times as many values, some seconds for each family."""


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
    max_labels: int | None = None,
    levels: int | None = None,
    calibration: str = "exact",
) -> Certificate:
    """The noise of this family (or of the best one, "auto") for a total (ε, δ) over all queries.

    The question is one of `classes`; with `max_labels` at most so many of them; with `levels` a
    number in so many steps.

    >>> from dppp import calibrate
    >>> found = calibrate("auto", epsilon=1, delta=1e-5, teachers=20, queries=10)
    >>> found.noise.name, found.noise.shares, found.certified
    ('polya', 14, True)
    >>> round(found.noise.variance)
    272
    """
    counts, change = change_of(classes=classes, max_labels=max_labels, levels=levels)
    promise = Promise(epsilon=epsilon, delta=delta, queries=queries, classes=counts, change=change)
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
        return calibrate_as_the_paper(noise, promise, trust)
    require_narrow_promise(promise)
    if noise == "auto":
        certificates = _calibrate_every_family(promise, trust)
        variances = tuple((each.noise.name, each.noise.variance) for each in certificates)
        best = min(certificates, key=lambda certificate: certificate.noise.variance)
        return replace(best, chosen_from=variances)
    return _calibrate_exactly(family_named(noise).name, promise, trust)


def _require_computable(promise: Promise) -> None:
    least = least_delta(promise.queries, promise.change)
    if promise.delta < least:
        raise InputError(
            f"delta = {promise.delta:g} is too small to be certified over {promise.queries} "
            f"queries: rounding alone may be {least:.1g}",
            hint="use a larger delta",
        )


def require_narrow_promise(promise: Promise) -> None:
    """Refuse at once a promise whose noise would take minutes to be worked out exactly."""
    deviation = gaussian_deviation(promise)
    if deviation > _WIDEST_DEVIATION:
        raise InputError(
            f"epsilon = {promise.epsilon:g}, delta = {promise.delta:g} over {promise.queries} "
            f"queries need noise of standard deviation {deviation:.2g}, which is too wide to be "
            f"worked out exactly: the most is {_WIDEST_DEVIATION:,} votes",
            hint="use a larger epsilon or delta, or fewer queries",
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
    goal = replace(promise, delta=promise.delta * (1 - reserve))
    noise, formula = smallest_noise(name, goal, trust.honest_shares)
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
    require_narrow_promise(promise)
    certificates = _calibrate_every_family(promise, trust)
    if promise.change == ONE_OF_CLASSES:
        certificates += [calibrate_as_the_paper(name, promise, trust) for name in PAPER_FAMILIES]
    return sorted(certificates, key=lambda each: (not each.certified, each.noise.variance))
