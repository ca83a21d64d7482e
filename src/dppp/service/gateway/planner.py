"""One family of noise for a federation that might be: what the sliders of the page ask for.

The same calibration and the same accuracies as `dppp plan` and `dppp calibrate --compare`. One
question is one family, so that each answer takes about a second and is drawn when it comes; noise
too wide for that is refused, or for the paper's formulas told by its variance alone.
"""

import math

from dppp.errors import InputError
from dppp.learning.win_probability import (
    ExpectedMargin,
    accuracy_of,
    accuracy_without_noise,
    lead_needed,
)
from dppp.privacy.calibration import calibrate_for
from dppp.privacy.certificate import Certificate, Promise
from dppp.privacy.paper_bounds import analytic_gaussian_sigma
from dppp.privacy.paper_calibration import paper_noise_of_one
from dppp.privacy.trust import Trust
from dppp.service.gateway.schemas import PlannedNoise, PlanQuestion

_WIDEST_VARIANCE = 150_000
"""Of noise that is worked out exactly; a tally of a thousand votes would say nothing under it."""

_SURE_ENOUGH = 0.9
"""The chance of being right for which the lead is told."""


def plan_noise(question: PlanQuestion) -> PlannedNoise:
    """What this family means for privacy and accuracy."""
    trust = Trust(
        teachers=question.teachers, colluders=question.colluders, dropouts=question.dropouts
    )
    promise = Promise(
        epsilon=question.epsilon,
        delta=question.delta,
        queries=question.queries,
        classes=question.classes,
    )
    margin = ExpectedMargin(margin=question.margin, classes=question.classes)
    variance = _variance_to_expect(question)
    if variance <= _WIDEST_VARIANCE:
        calibration = question.calibration
        certificate = calibrate_for(question.noise, promise, trust, calibration=calibration)
        return _worked_out(certificate, margin, question.votes)
    if question.calibration == "exact":
        raise _too_wide_to_plan(math.sqrt(variance), trust.teachers * question.votes)
    return _too_wide(question, trust, variance, margin)


def _too_wide_to_plan(deviation: float, votes: int) -> InputError:
    said = f"the noise would deviate by about {deviation:,.0f} votes"
    if deviation > votes:
        return InputError(
            f"{said} and drown the {votes:,} votes of all teachers",
            hint="raise epsilon or delta, or ask less",
        )
    return InputError(
        f"{said} beside {votes:,}, which is too wide to be worked out here",
        hint="raise epsilon or delta, ask less, or use dppp plan",
    )


def _variance_to_expect(question: PlanQuestion) -> float:
    """Without composing anything: the paper's formulas, or continuous Gaussian noise."""
    if question.calibration == "exact":
        sensitivity = math.sqrt(2 * question.queries)
        return analytic_gaussian_sigma(question.epsilon, question.delta, sensitivity) ** 2
    epsilon, delta = question.epsilon / question.queries, question.delta / question.queries
    return paper_noise_of_one(question.noise, epsilon, delta).variance


def _worked_out(certificate: Certificate, margin: ExpectedMargin, votes: int) -> PlannedNoise:
    """The noise is that of all teachers' shares, however many votes each of them casts."""
    trust = certificate.trust
    votes_in_all = votes * trust.teachers
    races = margin.races(votes_in_all)
    tally = certificate.noise.of_teachers(trust.teachers)
    return PlannedNoise(
        noise=certificate.noise.name,
        calibration=certificate.calibration,
        honest_shares=trust.honest_shares,
        threshold=trust.threshold,
        variance=certificate.noise.variance,
        tally_variance=tally.variance,
        tally_deviation=math.sqrt(tally.variance),
        votes_in_all=votes_in_all,
        lead_needed=lead_needed(tally, margin.classes, chance=_SURE_ENOUGH),
        promised_delta=certificate.promise.delta,
        exact_delta=certificate.exact_delta,
        is_certified=certificate.certified,
        accuracy=accuracy_of(races, tally),
        accuracy_without_noise=accuracy_without_noise(races),
    )


def _too_wide(
    question: PlanQuestion, trust: Trust, variance: float, margin: ExpectedMargin
) -> PlannedNoise:
    """The paper's noise for many queries, which it divides its ε by: far too much of it."""
    votes_in_all = question.votes * trust.teachers
    tally_variance = variance * trust.teachers / trust.honest_shares
    return PlannedNoise(
        noise=question.noise,
        calibration=question.calibration,
        honest_shares=trust.honest_shares,
        threshold=trust.threshold,
        variance=variance,
        tally_variance=tally_variance,
        tally_deviation=math.sqrt(tally_variance),
        votes_in_all=votes_in_all,
        lead_needed=None,
        promised_delta=question.delta,
        exact_delta=None,
        is_certified=False,
        accuracy=None,
        accuracy_without_noise=accuracy_without_noise(margin.races(votes_in_all)),
    )
