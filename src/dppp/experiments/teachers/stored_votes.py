"""The votes of an ensemble on test records, stored so that every figure redraws from them.

A file is named by the hash of its recipe, everything that the votes depend on; plain arrays only.
Used by every experiment on accuracy.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.experiments.datasets.files import Arrays, cached_arrays, recipe_path

Labels = NDArray[np.uint8]
Counts = NDArray[np.int64]
NO_VOTE = 255
"""In place of a class: the teacher casts an all-zero vote."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredVotes:
    """Votes of shape (teachers, records), and the truth."""

    dataset: str
    classes: int
    votes: Labels
    truth: Labels
    centralised: Labels | None = None
    """What one model of all records says, where one was trained."""

    def __post_init__(self) -> None:
        records = self.truth.shape
        centralised = records if self.centralised is None else self.centralised.shape
        if self.votes.shape[1:] != records or centralised != records:
            raise InputError(
                f"votes of shape {self.votes.shape}, {centralised} centralised "
                f"predictions and {records} labels do not belong together"
            )

    @property
    def teachers(self) -> int:
        """How many teachers voted."""
        return len(self.votes)

    @property
    def counts(self) -> Counts:
        """The noiseless tally, of shape (records, classes)."""
        return tally(self.votes, self.classes)

    @property
    def teacher_accuracy(self) -> float:
        """Of the teachers by themselves, on average."""
        return float((self.votes == self.truth).mean())

    @property
    def silent(self) -> float:
        """The part of the votes that are all zeros."""
        return float((self.votes == NO_VOTE).mean())

    def slice(self, records: int) -> "StoredVotes":
        """The first `records` records."""
        return StoredVotes(
            dataset=self.dataset,
            classes=self.classes,
            votes=self.votes[:, :records],
            truth=self.truth[:records],
            centralised=None if self.centralised is None else self.centralised[:records],
        )


def tally(votes: Labels, classes: int) -> Counts:
    """How many teachers vote for each class, of shape (records, classes)."""
    return np.stack([(votes == label).sum(axis=0) for label in range(classes)], axis=1)


def cached_votes(
    dataset: str,
    classes: int,
    recipe: object,
    make: Callable[[], Arrays],
    folder: Path | None = None,
) -> StoredVotes:
    """Votes, truth and centralised predictions of a recipe."""
    found = cached_arrays(recipe_path(dataset, recipe, folder), make)
    as_labels = functools.partial(np.asarray, dtype=np.uint8)
    return StoredVotes(
        dataset=dataset,
        classes=classes,
        votes=as_labels(found["votes"]),
        truth=as_labels(found["truth"]),
        centralised=as_labels(found["centralised"]),
    )
