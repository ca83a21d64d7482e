"""Points of the figures run through the real encrypted protocol, which must agree with them.

Every teacher looks its vote up in the stored table; ballots, proofs, ledgers, decryption shares and
noise from the operating system are the real ones. Two things are compared: how many labels are
right, against the exact distribution of that number (equation W1), and the mean square of the noise
in the released counts, against a Chernoff bound. Each raises a false alarm with a probability of at
most `FALSE_ALARM` per point, half on either side. Used by `dppp reproduce accuracy-epsilon`.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from dppp.errors import UncertifiedError
from dppp.experiments.accuracy.frameworks import best_certificate, trust_of
from dppp.experiments.teachers.stored_votes import StoredVotes
from dppp.federation import Federation, create_federation, in_process
from dppp.learning.win_probability import Race, accuracy_of
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS, DealtKey, deal
from dppp.privacy.accounting import Spending, account
from dppp.privacy.calibration import calibrate_for
from dppp.privacy.certificate import Certificate, Promise, issue_certificate
from dppp.privacy.noise import Noise, pmf_of
from dppp.protocol.release import Release

FALSE_ALARM = 1e-6
HONEST_FRACTION = Fraction(2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptedPoint:
    """What the protocol released, and what the stored votes and the noise's masses foretell."""

    dataset: str
    noise: str
    calibration: str
    honest_fraction: float
    epsilon: float
    delta: float
    teachers: int
    modulus_bits: int
    queries: int
    accuracy: float
    expected_accuracy: float
    variance: float
    expected_variance: float
    agrees: bool
    cpu_seconds: float


def run_encrypted(
    votes: StoredVotes,
    *,
    epsilon: float,
    delta: float,
    family: str = "best",
    calibration: str = "exact",
    repetitions: int = 1,
    modulus_bits: int = DEFAULT_MODULUS_BITS,
    key: DealtKey | None = None,
) -> EncryptedPoint:
    """Ask about every record `repetitions` times, with fresh noise each time; γ is 2/3.

    The task promises the total ε of all queries; noise that misses (ε, δ) in one is refused.
    """
    started = time.process_time()
    certificate = _certificate(votes, epsilon, delta, family, calibration)
    answers = _ask(votes, certificate, repetitions, modulus_bits, key)
    labels = np.array([answer.label for answer in answers])
    right = int((labels == np.tile(votes.truth, repetitions)).sum())
    released = np.array([answer.counts for answer in answers])
    noise = released - np.tile(votes.counts, (repetitions, 1))
    drawn = certificate.noise.of_teachers(votes.teachers)
    wins = np.tile(win_probabilities(votes, drawn), repetitions)
    return EncryptedPoint(
        dataset=votes.dataset,
        noise=certificate.noise.name,
        calibration=calibration,
        honest_fraction=float(HONEST_FRACTION),
        epsilon=epsilon,
        delta=delta,
        teachers=votes.teachers,
        modulus_bits=modulus_bits,
        queries=len(labels),
        accuracy=right / len(labels),
        expected_accuracy=float(wins.mean()),
        variance=mean_square(noise, drawn),
        expected_variance=drawn.variance,
        agrees=is_likely_number(right, wins) and is_likely_noise(noise, drawn),
        cpu_seconds=time.process_time() - started,
    )


def _ask(
    votes: StoredVotes,
    certificate: Certificate,
    repetitions: int,
    modulus_bits: int,
    key: DealtKey | None,
) -> list[Release]:
    """A federation of the stored votes, asked about all records, again and again."""
    parties = create_federation(
        name=f"{votes.dataset}, encrypted",
        class_names=[f"class {number}" for number in range(votes.classes)],
        features=["record"],
        certificate=certificate_for_all(certificate, repetitions * len(votes.truth)),
        models=[_looking_up(own) for own in votes.votes],
        key=key or deal_for(votes, modulus_bits),
    )
    federation = Federation(aggregator=parties.aggregator, deliver=in_process(parties.teachers))
    records = np.arange(len(votes.truth), dtype=float)[:, None]
    outcomes = [federation.ask(records, fresh=True) for _ in range(repetitions)]
    return [answer for outcome in outcomes for answer in outcome.answers]


def deal_for(votes: StoredVotes, modulus_bits: int = DEFAULT_MODULUS_BITS) -> DealtKey:
    """A key for all points of a dataset."""
    trust = trust_of(votes.teachers, HONEST_FRACTION)
    return deal(
        teachers=trust.teachers,
        threshold=trust.threshold,
        modulus_bits=modulus_bits,
        s=4,
        insecure_testing=True,
    )


def certificate_for_all(certificate: Certificate, queries: int) -> Certificate:
    """The same noise in this number of queries, with the total ε that this costs at the same δ."""
    promise, noise = certificate.promise, certificate.noise
    spent = account([Spending(noise=noise, queries=queries)], promise.delta)
    total = (math.floor(64 * spent) + 2) / 64  # a ledger's unit divides it
    return issue_certificate(
        noise,
        Promise(epsilon=total, delta=promise.delta, queries=queries, classes=promise.classes),
        certificate.trust,
        calibration=certificate.calibration,
    )


def win_probabilities(votes: StoredVotes, drawn: Noise) -> NDArray[np.float64]:
    """How likely the right class wins, for each record, ties broken evenly."""
    counts, truth = votes.counts, votes.truth.astype(np.int64)
    alike: dict[tuple[object, ...], float] = {}
    wins = []
    for row, label in zip(counts, truth, strict=True):
        key = (tuple(row.tolist()), int(label))
        if key not in alike:
            leads = (row[label] - np.delete(row, label)).tolist()
            alike[key] = accuracy_of((Race(leads=tuple(leads), weight=1.0),), drawn)
        wins.append(alike[key])
    return np.array(wins)


def is_likely_number(right: int, wins: NDArray[np.float64]) -> bool:
    """Whether this many right answers are no rarer than the false alarm rate, on either side."""
    masses = np.ones(1)
    for chance in wins:
        masses = np.convolve(masses, (1 - chance, chance))
    low, high = masses[: right + 1].sum(), masses[right:].sum()
    return bool(min(low, high) >= FALSE_ALARM / 2)


def is_likely_noise(noise: NDArray[np.int64], drawn: Noise) -> bool:
    """Whether the noise's mean square is no rarer, by a bound that holds for any number of draws.

    P(Σ x² ≥ s) ≤ exp(n log E exp(t x²) - t s) for every t > 0, and likewise below for t < 0.
    """
    squares, log_masses = _squares_of(drawn)
    total, draws = _centred_squares(noise, drawn).sum(), noise.size

    def log_bound(t: float) -> float:
        moment = float(special.logsumexp(log_masses + t * squares))
        return draws * moment - t * float(total)

    limit = 50 / drawn.variance
    found = optimize.minimize_scalar(log_bound, bounds=(-limit, limit), method="bounded")
    return bool(min(float(found.fun), 0.0) >= np.log(FALSE_ALARM / 2))


def mean_square(noise: NDArray[np.int64], drawn: Noise) -> float:
    """About the true centre."""
    return float(_centred_squares(noise, drawn).mean())


def _centred_squares(noise: NDArray[np.int64], drawn: Noise) -> NDArray[np.float64]:
    """Released counts of an odd number of tosses are half a vote too high, all alike."""
    return np.asarray((noise - (0.5 if drawn.is_half_centred else 0.0)) ** 2)


def _squares_of(drawn: Noise) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    masses = pmf_of(drawn)
    values = masses.first + np.arange(len(masses.masses))
    is_there = masses.masses > 0
    centre = float(np.dot(values, masses.masses) / masses.masses.sum())
    squares = np.asarray((values - round(2 * centre) / 2) ** 2, dtype=np.float64)
    return squares[is_there], np.log(masses.masses[is_there])


def _certificate(
    votes: StoredVotes, epsilon: float, delta: float, family: str, calibration: str
) -> Certificate:
    promise = Promise(epsilon=epsilon, delta=delta, queries=1, classes=votes.classes)
    trust = trust_of(votes.teachers, HONEST_FRACTION)
    if family == "best":
        return best_certificate(promise, trust)
    certificate = calibrate_for(family, promise, trust, calibration=calibration)
    if not certificate.certified:
        raise UncertifiedError(
            f"{family} noise by the calibration {calibration} misses ε = {epsilon:g}, δ = {delta:g}"
            f": its δ is {certificate.exact_delta:.2g}; only certified points are run for real"
        )
    return certificate


def _looking_up(own: NDArray[np.uint8]) -> Callable[[NDArray[np.float64]], list[int | None]]:
    """The model of one teacher: its stored vote on the record of this number."""
    return lambda rows: [int(own[int(row[0])]) for row in rows]
