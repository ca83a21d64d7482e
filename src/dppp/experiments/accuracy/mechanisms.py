"""How labels come out of votes under each kind of noise, for all records of a test set at once.

Noise here comes from a seeded numpy generator, so that a rerun agrees; a deployment never draws its
noise this way. Its distribution is that of the sum of the shares that all the teachers add, worked
out from the share's own masses: where shares are so small that noise is missing from the sum, it is
missing here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dppp.experiments.teachers.stored_votes import Counts, Labels, StoredVotes
from dppp.learning.win_probability import Race, accuracy_of
from dppp.privacy.noise import Noise, pmf_of

_CELLS = 1 << 16

Release = Callable[[Generator], NDArray[np.integer]]
"""Released labels: one for each record, or one for each teacher and record."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TallyNoise:
    """The noise that all teachers together add to a count, about its centre."""

    first: int
    cumulative: NDArray[np.float64]
    guide: NDArray[np.int64]
    """Where to look for a number in each of `_CELLS` equal parts of [0, 1)."""

    @classmethod
    def of(cls, noise: Noise, teachers: int) -> "TallyNoise":
        """All the teachers add a share of this noise, however many it was sized for."""
        masses = pmf_of(noise.of_teachers(teachers))
        cumulative = np.cumsum(masses.masses)
        cumulative = cumulative[:-1] / cumulative[-1]
        return cls(
            first=masses.first - noise.sum_of_centres(teachers),
            cumulative=cumulative,
            guide=np.searchsorted(cumulative, np.arange(_CELLS + 1) / _CELLS, side="right"),
        )

    def draw(self, shape: tuple[int, ...], random: Generator) -> Counts:
        """Independent draws, by inversion; most parts of [0, 1) hold one value only."""
        uniform = random.random(shape)
        cell = (uniform * _CELLS).astype(np.intp)
        place = self.guide[cell]
        is_open = place != self.guide[cell + 1]
        place[is_open] = np.searchsorted(self.cumulative, uniform[is_open], side="right")
        return place + self.first


def largest(counts: NDArray[np.generic], random: Generator) -> NDArray[np.int64]:
    """The class of the largest whole count, ties broken evenly as the protocol breaks them."""
    tickets = random.random(counts.shape, dtype=np.float32)
    labels: NDArray[np.int64] = (counts.astype(np.float64) + tickets / 2).argmax(axis=-1)
    return labels


def plurality(votes: StoredVotes) -> Release:
    """The class of the most votes."""
    counts = votes.counts
    return lambda random: largest(counts, random)


def noisy_plurality(votes: StoredVotes, noise: Noise) -> Release:
    """DPPP: every teacher adds its share; the largest noisy count wins."""
    counts, tally_noise = votes.counts, TallyNoise.of(noise, votes.teachers)
    return lambda random: largest(counts + tally_noise.draw(counts.shape, random), random)


def laplace_plurality(votes: StoredVotes, scale: float) -> Release:
    """PATE: a trusted aggregator adds Laplace noise to every count."""
    counts = votes.counts

    def release(random: Generator) -> NDArray[np.int64]:
        noisy = counts + random.laplace(scale=scale, size=counts.shape)
        return np.asarray(noisy.argmax(axis=-1), dtype=np.int64)

    return release


def randomised_response_plurality(votes: StoredVotes, epsilon: float) -> Release:
    """Local privacy done well: each teacher's vote by k-ary randomised response.

    A vote is kept with probability 1 - q and else drawn evenly, q = k/(e^ε + k - 1), which is
    ε-LDP (Kairouz, Bonawitz, Ramage 2016). Debiasing moves all counts alike, so the largest stays.
    """
    counts, classes = votes.counts, votes.classes
    lost = classes / (np.expm1(epsilon) + classes)
    even = np.full(classes, 1 / classes)

    def release(random: Generator) -> NDArray[np.int64]:
        kept = random.binomial(counts, 1 - lost)
        drawn = random.multinomial(votes.teachers - kept.sum(axis=1), even)
        return largest(kept + drawn, random)

    return release


def standalone(votes: StoredVotes, noise: Noise) -> Release:
    """One teacher answers alone: its one-hot vote with all the noise, the largest count wins.

    The other classes are alike, so the vote survives with a probability that is computed (equation
    W1) and else becomes any other class; all teachers, all records.
    """
    others = votes.classes - 1
    survives = accuracy_of((Race(leads=(1,) * others, weight=1.0),), noise.one_share())

    def release(random: Generator) -> Labels:
        is_kept = random.random(votes.votes.shape, dtype=np.float32) < survives
        step = random.integers(1, votes.classes, size=votes.votes.shape, dtype=np.uint8)
        return np.where(is_kept, votes.votes, (votes.votes + step) % np.uint8(votes.classes))

    return release
