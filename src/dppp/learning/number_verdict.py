"""How far off the private means are, beside what one has without them: computed, not sampled.

The measure of a row is its part of what is explained: 1 less the squared error over the mean
squared error of always saying the mean of the training numbers. Its average over the rows is R²
beside that mean. Errors in the number's own unit are root mean squares (`root_mean_square`).

A released mean is clipped to the range. The squared error is averaged over all noise with that:
with z the noise, and a to b where the mean is not clipped,

    (low - y)² P[z < a] + Σ_{a ≤ z ≤ b} p(z) (m + z s - y)² + (high - y)² P[z > b]         (N1)

by sums of p, p z, p z² and so on up to a point, which are made once.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.privacy.noise import Noise, pmf_of
from dppp.privacy.pmf import Floats
from dppp.protocol.question import Question


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumbersHeldOut:
    """What teachers say of records that nobody trained on, and what is true."""

    question: Question
    votes: NDArray[np.int64]
    """Levels added up, by teacher, record and one count."""
    cast: NDArray[np.int64]
    """How many votes each teacher cast on each record."""
    truth: Floats
    usual: float
    """The mean of the training numbers."""
    alone: Floats
    """By teacher and record, the measure; NaN where the own model was trained on the record."""

    def __post_init__(self) -> None:
        teachers, rows, counts = self.votes.shape
        shapes = (counts, self.cast.shape, self.truth.shape, self.alone.shape)
        if rows < 1 or shapes != (1, (teachers, rows), (rows,), (teachers, rows)):
            raise InputError(
                "a verdict takes votes, labels and own models' answers of equal size",
                hint="give one row of votes, one label and one own answer per record",
            )

    @property
    def measure(self) -> str:
        """In words."""
        return "of the squared error explained"

    @property
    def scale(self) -> float:
        """The mean squared error of always saying the mean."""
        return usual_error(self.truth, self.usual)

    def private(self, noise: Noise, times: float = 1.0) -> tuple[Floats, Floats]:
        """The measure of each row on average over all noise, and its variance."""
        counts = self.votes[:, :, 0].sum(axis=0) * times
        cast = self.cast.sum(axis=0) * times
        return self._measured(counts, cast, noise)

    def local(self, noise: Noise) -> Floats:
        """One teacher's votes with all the noise: of those that cast the most."""
        most = self.cast.max(axis=1)
        votes, cast = self.votes.astype(np.float64), self.cast.astype(np.float64)
        found = [
            self._measured(votes[at, :, 0], cast[at], noise)[0]
            for at in np.flatnonzero(most == most.max())
        ]
        return np.asarray(np.mean(found, axis=0))

    def in_clear(self) -> Floats:
        """The measure of the mean of all votes."""
        low, high = self.question.low, self.question.high
        votes = np.maximum(self.cast.sum(axis=0), 1)
        said = low + (high - low) * self.votes[:, :, 0].sum(axis=0) / (self.question.levels * votes)
        return self.quality(said, self.truth, self.usual)

    def without(self) -> tuple[str, Floats]:
        """What somebody says who knows the training numbers only."""
        always = np.full(len(self.truth), self.usual)
        return "always saying the mean", self.quality(always, self.truth, self.usual)

    @staticmethod
    def quality(said: Floats, truth: Floats, usual: float) -> Floats:
        """The measure of answers, by row; for several teachers at once where they are rows."""
        return np.asarray(1 - (said - truth) ** 2 / usual_error(truth, usual))

    def _measured(self, counts: Floats, cast: Floats, noise: Noise) -> tuple[Floats, Floats]:
        second, fourth = moments_of_error(self.question, counts, cast, self.truth, noise)
        scale = self.scale
        return 1 - second / scale, np.maximum(0.0, fourth - second**2) / scale**2


def usual_error(truth: Floats, usual: float) -> float:
    """The mean squared error of always saying this; 1 where it is never wrong."""
    return float(np.mean((truth - usual) ** 2)) or 1.0


def root_mean_square(measure: float, scale: float) -> float:
    """The error in the number's own unit of answers with this measure."""
    return math.sqrt(max(0.0, 1 - measure) * scale)


def moments_of_error(
    question: Question, counts: Floats, cast: Floats, truth: Floats, noise: Noise
) -> tuple[Floats, Floats]:
    """Equation N1 by row, and the same of the fourth power.

    Where no vote was cast the noise alone decides, as if there were one vote for the middle.
    """
    votes = np.maximum(cast, 1)
    counts = np.where(cast == 0, question.middle_level, counts)
    wide = question.high - question.low
    step = wide / (question.levels * votes)
    off = question.low + step * counts - truth
    pmf = pmf_of(noise)
    values = pmf.first + np.arange(len(pmf.masses), dtype=np.float64)
    masses = pmf.masses / pmf.masses.sum()
    unit = max(1.0, math.sqrt(noise.variance))
    sums = [
        np.concatenate(([0.0], np.cumsum(masses * (values / unit) ** power))) for power in range(5)
    ]
    first = np.clip(np.ceil(-counts) - pmf.first, 0, len(masses)).astype(np.int64)
    last = np.floor(question.levels * votes - counts) - pmf.first + 1
    end = np.maximum(first, np.clip(last, 0, len(masses)).astype(np.int64))
    inside = [each[end] - each[first] for each in sums]
    below, above = sums[0][first], 1 - sums[0][end]
    low, high = question.low - truth, question.high - truth
    scaled = step * unit

    def moment(power: int) -> Floats:
        found = low**power * below + high**power * above
        for each in range(power + 1):
            found = found + math.comb(power, each) * off ** (power - each) * (
                scaled**each * inside[each]
            )
        return np.asarray(found)

    return moment(2), moment(4)
