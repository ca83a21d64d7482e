"""A certificate: noise, the promise it was asked to keep, and what it really delivers.

Made by calibration, read by everyone who has to rely on the noise. `certified` means that the exact
δ of all queries together, plus what the sampler's bounded tables add, is within the promise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from dppp.errors import InputError
from dppp.privacy.accounting import Spending, require_queries, total_delta
from dppp.privacy.divergence import require_delta, require_epsilon
from dppp.privacy.noise import (
    Binomial,
    DiscreteGaussian,
    Noise,
    Polya,
    Skellam,
    family_named,
    noise_from_parameters,
)
from dppp.privacy.sampling import sampling_delta
from dppp.privacy.trust import Trust

CALIBRATIONS = ("exact", "paper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Total (ε, δ) for a number of queries over this many classes."""

    epsilon: float
    delta: float
    queries: int = 1
    classes: int = 10

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        require_delta(self.delta)
        require_queries(self.queries)
        if not isinstance(self.classes, int) or isinstance(self.classes, bool) or self.classes < 2:
            raise InputError(f"classes must be a whole number, 2 or more, got {self.classes!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What the noise of `trust.honest_shares` shares delivers against a promise."""

    promise: Promise
    trust: Trust
    noise: Noise
    calibration: str
    exact_delta: float
    sampling_delta: float
    formula: tuple[tuple[str, int | float], ...] = ()
    """What the calibration found before dividing it into shares, by name in `to_json`.

    For binomial noise that is total_tosses, the n of Theorem 1 or the smallest n; whole shares make
    sum_tosses of it.
    """
    chosen_from: tuple[tuple[str, float], ...] = ()
    """Families and their variances, where this one was chosen for having the least."""
    is_simulated: bool = False
    """Nothing was encrypted: the noise would keep the promise, but nobody is protected."""

    @property
    def certified(self) -> bool:
        """Whether the promise is kept, sampling included; never in a simulation."""
        return (
            not self.is_simulated and self.exact_delta + self.sampling_delta <= self.promise.delta
        )

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {
            "noise": self.noise.name,
            "calibration": self.calibration,
            "teachers": self.trust.teachers,
            "colluders": self.trust.colluders,
            "dropouts": self.trust.dropouts,
            "honest_shares": self.trust.honest_shares,
            "threshold": self.trust.threshold,
            "survives_withholding": self.trust.survives_withholding,
            "epsilon": self.promise.epsilon,
            "delta": self.promise.delta,
            "queries": self.promise.queries,
            "classes": self.promise.classes,
            "exact_delta": self.exact_delta,
            "sampling_delta": self.sampling_delta,
            "certified": self.certified,
            "variance": self.noise.variance,
            **family_parameters(self.noise),
            **dict(self.formula),
            **({"chosen_from": dict(self.chosen_from)} if self.chosen_from else {}),
            **({"simulated": True} if self.is_simulated else {}),
        }


def issue_certificate(
    noise: Noise,
    promise: Promise,
    trust: Trust,
    *,
    calibration: str,
    formula: tuple[tuple[str, int | float], ...] = (),
) -> Certificate:
    """Work out what this noise delivers against the promise."""
    return Certificate(
        promise=promise,
        trust=trust,
        noise=noise,
        calibration=calibration,
        exact_delta=total_delta([Spending(noise=noise, queries=promise.queries)], promise.epsilon),
        sampling_delta=sampling_delta(
            noise, epsilon=promise.epsilon, queries=promise.queries, classes=promise.classes
        ),
        formula=formula,
    )


def family_parameters(noise: Noise) -> dict[str, int | float]:
    """The family's own parameters: of one share, and of the sum where that has a name."""
    match noise:
        case Binomial():
            return {
                "total_tosses": noise.total_tosses,
                "tosses_per_teacher": noise.tosses_per_teacher,
            }
        case DiscreteGaussian():
            return {"share_sigma": noise.share_sigma}
        case Skellam():
            return {"share_variance": noise.share_variance}
        case Polya():
            return {"shape": noise.shape, "share_shape": noise.share_shape, "ratio": noise.ratio}


def noise_from_json(data: Mapping[str, object]) -> Noise:
    """The noise of a certificate that `to_json` wrote."""
    family = family_named(data.get("noise"))
    parameters = {"noise": family.name, "shares": data.get("honest_shares")}
    if family is Binomial:
        parameters["total_tosses"] = data.get("sum_tosses", data.get("total_tosses"))
    else:
        names = {field.name for field in fields(family)} - {"shares"}
        parameters.update({name: data.get(name) for name in names})
    return noise_from_parameters(parameters)
