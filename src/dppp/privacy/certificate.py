"""A certificate: noise, the promise it was asked to keep, and what it really delivers.

Made by calibration, read by everyone who has to rely on the noise. `certified` means that the exact
δ of all queries together, plus what the sampler's bounded tables add, is within the promise.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dppp.privacy.accounting import Spending, total_delta
from dppp.privacy.change import ONE_OF_CLASSES, Change
from dppp.privacy.divergence import require_delta, require_epsilon
from dppp.privacy.noise import Noise, family_named, noise_from_parameters, parameter_names
from dppp.privacy.sampling import sampling_delta
from dppp.privacy.trust import Trust
from dppp.whole_numbers import keep_whole

CALIBRATIONS = ("exact", "paper")

Formula = tuple[tuple[str, int | float], ...]
"""Names and values that a calibration found on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Total (ε, δ) for a number of queries with this many counts each, one for every class.

    A number has one count. What one vote can do to the counts is in `change`.
    """

    epsilon: float
    delta: float
    queries: int = 1
    classes: int = 10
    change: Change = ONE_OF_CLASSES

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(self.epsilon))
        object.__setattr__(self, "delta", require_delta(self.delta))
        keep_whole(self, "queries")
        keep_whole(self, "classes", least=min(2, self.change.moved))

    def spending(self, noise: Noise, queries: int | None = None) -> Spending:
        """So many queries (all, if not said) answered with this noise."""
        queries = self.queries if queries is None else queries
        return Spending(noise=noise, queries=queries, change=self.change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What the noise of `trust.honest_shares` shares delivers against a promise.

    >>> from dppp import calibrate
    >>> certificate = calibrate(
    ...     "discrete-gaussian", epsilon=1, delta=1e-3, teachers=250, calibration="paper"
    ... )
    >>> certificate.promise.delta, certificate.certified
    (0.001, False)
    >>> certificate.exact_delta > 0.99  # the counts would be published in the clear
    True
    """

    promise: Promise
    trust: Trust
    noise: Noise
    calibration: str
    exact_delta: float
    sampling_delta: float
    formula: Formula = ()
    """What the calibration found before dividing it into shares, by name in `to_json`.

    For binomial noise that is total_tosses, the n of Theorem 1 or the smallest n; whole shares make
    sum_tosses of it.
    """
    chosen_from: tuple[tuple[str, float], ...] = ()
    """Families and their variances, where this one was chosen for having the least."""
    unit: str | None = None
    """Whose change the promise covers, where that was said: record, person or teacher."""
    votes: tuple[int, ...] = ()
    """How many votes each teacher casts, where that was said; the noise does not depend on it."""
    votes_reason: str | None = None
    """Why so many, from public numbers only."""
    is_simulated: bool = False
    """Nothing was encrypted: the noise would keep the promise, but nobody is protected."""

    def spending(self, queries: int | None = None) -> Spending:
        """So many of the queries (all, if not said), for `account`."""
        return self.promise.spending(self.noise, queries)

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
            "counts_moved": self.promise.change.moved,
            "moved_by": self.promise.change.shift,
            "exact_delta": self.exact_delta,
            "sampling_delta": self.sampling_delta,
            "certified": self.certified,
            "variance": self.noise.variance,
            **self.noise.report(),
            **dict(self.formula),
            **({"chosen_from": dict(self.chosen_from)} if self.chosen_from else {}),
            **({"unit": self.unit} if self.unit else {}),
            **({"votes": list(self.votes)} if self.votes else {}),
            **({"votes_reason": self.votes_reason} if self.votes_reason else {}),
            **({"simulated": True} if self.is_simulated else {}),
        }


def issue_certificate(
    noise: Noise,
    promise: Promise,
    trust: Trust,
    *,
    calibration: str,
    formula: Formula = (),
) -> Certificate:
    """Work out what this noise delivers against the promise."""
    return Certificate(
        promise=promise,
        trust=trust,
        noise=noise,
        calibration=calibration,
        exact_delta=total_delta([promise.spending(noise)], promise.epsilon),
        sampling_delta=sampling_delta(
            noise, epsilon=promise.epsilon, queries=promise.queries, classes=promise.classes
        ),
        formula=formula,
    )


def noise_from_json(data: Mapping[str, object]) -> Noise:
    """The noise of a certificate that `to_json` wrote."""
    family = family_named(data.get("noise"))
    tosses = data.get("sum_tosses", data.get("total_tosses"))  # total_tosses: before whole shares
    given = {**data, "total_tosses": tosses, "shares": data.get("honest_shares")}
    parameters = {name: given.get(name) for name in ("shares", *parameter_names(family))}
    return noise_from_parameters({"noise": family.name, **parameters})
