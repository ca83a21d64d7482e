"""How many labels are right, where a row may have several: computed over all noise, not sampled.

A row is as right as its labels are (Jaccard): those that are both released and true, of those that
are released or true; 1 where there are none of either. Each label is released independently of the
others, with the chance that its count and noise reach the share, so a row's measure is a sum over
how many true and how many false labels are released.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.privacy.noise import Noise, pmf_of
from dppp.privacy.pmf import Floats
from dppp.protocol.question import Question


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelsHeldOut:
    """What teachers say of records that nobody trained on, and which labels are true."""

    question: Question
    votes: NDArray[np.int64]
    """Counts by teacher, record and label."""
    cast: NDArray[np.int64]
    """How many votes each teacher cast on each record."""
    truth: NDArray[np.int64]
    """Zeros and ones by record and label."""
    usual: NDArray[np.int64]
    """The labels that are released of every training record, if all vote as is true."""
    alone: Floats
    """By teacher and record; NaN where the own model was trained on the record."""

    def __post_init__(self) -> None:
        teachers, rows, labels = self.votes.shape
        shapes = (self.cast.shape, self.truth.shape, self.usual.shape, self.alone.shape)
        if rows < 1 or shapes != ((teachers, rows), (rows, labels), (labels,), (teachers, rows)):
            raise InputError(
                "a verdict takes votes, labels and own models' answers of equal size",
                hint="give one row of votes, one label and one own answer per record",
            )

    @property
    def measure(self) -> str:
        """In words."""
        return "of the labels right"

    def private(self, noise: Noise, times: float = 1.0) -> tuple[Floats, Floats]:
        """The measure of each row on average over all noise, and its variance."""
        counts = np.rint(self.votes.sum(axis=0) * times).astype(np.int64)
        cast = np.rint(self.cast.sum(axis=0) * times).astype(np.int64)
        return self._measured(counts, cast, noise)

    def local(self, noise: Noise) -> Floats:
        """One teacher's votes with all the noise: of those that cast the most."""
        most = self.cast.max(axis=1)
        chosen = np.flatnonzero(most == most.max())
        found = [self._measured(self.votes[at], self.cast[at], noise)[0] for at in chosen]
        return np.asarray(np.mean(found, axis=0))

    def in_clear(self) -> Floats:
        """The measure without noise."""
        counts, cast = self.votes.sum(axis=0), self.cast.sum(axis=0)
        released = (
            counts >= np.array([self.question.least_count(int(each)) for each in cast])[:, None]
        )
        return jaccard(released, self.truth)

    def without(self) -> tuple[str, Floats]:
        """What somebody says who knows the training labels only."""
        always = np.tile(self.usual, (len(self.truth), 1))
        return "always releasing the most usual labels", jaccard(always, self.truth)

    @staticmethod
    def quality(said: NDArray[np.int64], truth: NDArray[np.int64]) -> Floats:
        """Of models' own labels, by teacher and record."""
        return np.stack([jaccard(each, truth) for each in said])

    def _measured(
        self, counts: NDArray[np.int64], cast: NDArray[np.int64], noise: Noise
    ) -> tuple[Floats, Floats]:
        least = np.array([self.question.least_count(int(each)) for each in cast])[:, None]
        chances = chances_of_release(counts - least, noise)
        return expected_jaccard(chances, self.truth)


def chances_of_release(beyond: NDArray[np.int64], noise: Noise) -> Floats:
    """How likely counts that are this far beyond the least one are released."""
    pmf = pmf_of(noise)
    below = np.concatenate(([0.0], np.cumsum(pmf.masses)))
    places = np.clip(-beyond - pmf.first, 0, len(pmf.masses))
    return np.asarray(np.clip(1 - below[places] / below[-1], 0.0, 1.0))


def jaccard(said: NDArray[np.generic], truth: NDArray[np.generic]) -> Floats:
    """By row: labels in both, of labels in either; 1 where there are none."""
    both = np.sum((said != 0) & (truth != 0), axis=-1)
    either = np.sum((said != 0) | (truth != 0), axis=-1)
    return np.where(either == 0, 1.0, both / np.maximum(either, 1))


def expected_jaccard(chances: Floats, truth: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Mean and variance of the measure by row, where labels are released with these chances."""
    both = how_many(np.where(truth != 0, chances, 0.0))[:, :, None]
    strange = how_many(np.where(truth != 0, 0.0, chances))[:, None, :]
    hits, extra = (
        np.arange(both.shape[1])[None, :, None],
        np.arange(strange.shape[2])[None, None, :],
    )
    either = (truth != 0).sum(axis=1)[:, None, None] + extra
    measure = np.where(either == 0, 1.0, hits / np.maximum(either, 1))
    means = np.sum(both * strange * measure, axis=(1, 2))
    squares = np.sum(both * strange * measure**2, axis=(1, 2))
    return means, np.maximum(0.0, squares - means**2)


def how_many(chances: Floats) -> Floats:
    """By row, the chances of 0, 1, 2, … of independent events to happen."""
    found = np.zeros((len(chances), chances.shape[1] + 1))
    found[:, 0] = 1
    for chance in chances.T[:, :, None]:
        happened = np.concatenate((np.zeros((len(found), 1)), found[:, :-1]), axis=1)
        found = found * (1 - chance) + happened * chance
    return found
