"""The frameworks that Section VII compares, and those that belong beside them, each by its name.

`certified` says that the exact joint δ of the noise is within the promise for what the framework
protects against: an untrusted aggregator (DPPP), a trusted one (PATE), anybody (LDP).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dppp.experiments.accuracy import mechanisms
from dppp.experiments.accuracy.mechanisms import Release
from dppp.experiments.teachers.stored_votes import StoredVotes
from dppp.privacy.calibration import calibrate_for
from dppp.privacy.certificate import Certificate, Promise
from dppp.privacy.divergence import delta_at
from dppp.privacy.noise import FAMILIES
from dppp.privacy.paper_calibration import PAPER_FAMILIES, paper_noise_of_one
from dppp.privacy.trust import Trust

HONEST_FRACTIONS = (Fraction(1), Fraction(2, 3))
"""The paper's γ."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Framework:
    """What is compared, what it promises, and how it releases labels."""

    framework: str
    noise: str = "none"
    calibration: str = "none"
    honest_fraction: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    certified: bool = False
    release: Release

    @property
    def name(self) -> str:
        """All that tells it from the others; seeds the noise."""
        return (
            f"{self.framework} {self.noise} {self.calibration} {self.honest_fraction} "
            f"{self.epsilon} {self.delta}"
        )


def trust_of(teachers: int, honest_fraction: Fraction) -> Trust:
    """γ = 1: nobody colludes or vanishes. γ = 2/3: ⌊N/3⌋ do, a tenth of the teachers by vanishing.

    The noise depends on both together only.
    """
    if honest_fraction == 1:
        return Trust(teachers=teachers, colluders=0, dropouts=0)
    dropouts = teachers // 10
    compromised = int(teachers * (1 - honest_fraction))
    return Trust(teachers=teachers, colluders=compromised - dropouts, dropouts=dropouts)


def non_private(votes: StoredVotes) -> list[Framework]:
    """One model of all records, if there is one, and the plurality of all teachers."""
    centralised = votes.centralised
    alone = (
        []
        if centralised is None
        else [Framework(framework="centralised", release=lambda _: centralised)]
    )
    return [*alone, Framework(framework="distributed", release=mechanisms.plurality(votes))]


def private(votes: StoredVotes, epsilon: float, delta: float) -> Iterator[Framework]:
    """Every private framework at one (ε, δ) per query."""
    promise = Promise(epsilon=epsilon, delta=delta, queries=1, classes=votes.classes)
    yield from _local(votes, promise)
    yield from _pate(votes, promise)
    for honest_fraction in HONEST_FRACTIONS:
        yield from _dppp(votes, promise, honest_fraction)


def best_certificate(promise: Promise, trust: Trust) -> Certificate:
    """The certified family of the least variance."""
    certificates = [calibrate_for(family, promise, trust) for family in FAMILIES]
    return min(certificates, key=lambda certificate: certificate.noise.variance)


def _local(votes: StoredVotes, promise: Promise) -> Iterator[Framework]:
    for family in PAPER_FAMILIES:
        noise = paper_noise_of_one(family, promise.epsilon, promise.delta)
        certified = delta_at(noise, promise.epsilon) <= promise.delta
        for framework, release in (
            ("ldp", mechanisms.noisy_plurality(votes, noise)),
            ("standalone", mechanisms.standalone(votes, noise)),
        ):
            yield Framework(
                framework=framework,
                noise=family,
                calibration="paper",
                epsilon=promise.epsilon,
                delta=promise.delta,
                certified=certified,
                release=release,
            )
    yield Framework(
        framework="ldp",
        noise="randomised-response",
        calibration="exact",
        epsilon=promise.epsilon,
        delta=promise.delta,
        certified=True,
        release=mechanisms.randomised_response_plurality(votes, promise.epsilon),
    )


def _pate(votes: StoredVotes, promise: Promise) -> Iterator[Framework]:
    """Two counts move by one, so Lap(2/ε) is ε-DP; Lap(1/ε) has a loss of 2ε a quarter of the time.

    That alone makes its δ(ε) at least (1 - e^-ε)/4, more than any δ here.
    """
    for calibration, scale in (("2/epsilon", 2), ("1/epsilon", 1)):
        yield Framework(
            framework="pate",
            noise="laplace",
            calibration=calibration,
            epsilon=promise.epsilon,
            delta=promise.delta,
            certified=scale == 2,
            release=mechanisms.laplace_plurality(votes, scale / promise.epsilon),
        )


def _dppp(votes: StoredVotes, promise: Promise, honest_fraction: Fraction) -> Iterator[Framework]:
    trust = trust_of(votes.teachers, honest_fraction)
    chosen = [
        ("dppp", calibrate_for(family, promise, trust, calibration=calibration))
        for calibration in ("paper", "exact")
        for family in PAPER_FAMILIES
    ]
    for framework, certificate in [*chosen, ("dppp-best", best_certificate(promise, trust))]:
        yield Framework(
            framework=framework,
            noise=certificate.noise.name,
            calibration=certificate.calibration,
            honest_fraction=float(honest_fraction),
            epsilon=promise.epsilon,
            delta=promise.delta,
            certified=certificate.certified,
            release=mechanisms.noisy_plurality(votes, certificate.noise),
        )
