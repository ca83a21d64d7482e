"""Teachers on uneven records, and SVMs on NSL-KDD-20 dealt so: their votes and how sure each is.

How sure an SVM is, is its distance from undecided in units of its margin.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.experiments.nsl_kdd import NslKdd
from dppp.experiments.skew_split import Rows, split_skewed, teacher_sizes
from dppp.experiments.stored_votes import Arrays
from dppp.experiments.svm_teachers import cast_on_connections


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewRecipe:
    """Everything that the votes depend on besides the data."""

    dataset: str
    alpha: float
    sizes: str
    teachers: int
    records: int
    """Test records to vote on, from the first."""
    steps: int = 96
    batch: int = 12
    channels: tuple[int, int] = (8, 16)
    learning_rate: float = 2e-3
    penalty: float = 10
    at_once: int = 25
    seed: int = 1

    def split(self, labels: NDArray[np.uint8]) -> list[Rows]:
        """The rows of each teacher."""
        random = np.random.default_rng([self.seed, int(1e6 * self.alpha)])
        sizes = teacher_sizes(len(labels), self.teachers, self.sizes)
        return split_skewed(labels, sizes, self.alpha, random)


def vote_on_skewed_connections(data: NslKdd, recipe: SkewRecipe) -> Arrays:
    """Votes, margins and truth on the test part of the 80/20 split."""
    tests = (data.test.rows(np.arange(min(recipe.records, len(data.test.labels)))),)
    cast = [
        cast_on_connections(data.train.rows(own), tests, recipe.penalty)[0]
        for own in recipe.split(data.train.labels)
    ]
    return {
        "votes": np.stack([votes for votes, _ in cast]),
        "confidence": np.stack([margins for _, margins in cast]).astype(np.float16),
        "truth": tests[0].labels,
    }
