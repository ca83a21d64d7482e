"""Dealing records unevenly: label skew by Dirichlet(α), sizes by a power law.

The paper's discussion and future work: teachers whose records are not representative, and many
teachers with few records beside few with many. No record is dealt twice. Used by both kinds of
teachers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dppp.errors import InputError

Rows = NDArray[np.int64]
SIZES = ("equal", "power-law")


def teacher_sizes(count: int, teachers: int, sizes: str) -> NDArray[np.int64]:
    """How many records each teacher gets: the same, or in proportion to 1, 1/2, 1/3 and so on."""
    if count < teachers:
        raise InputError(f"{count} records are too few for {teachers} teachers")
    if sizes not in SIZES:
        raise InputError(f"unknown sizes {sizes!r}", hint=f"choose one of {', '.join(SIZES)}")
    weights = np.ones(teachers) if sizes == "equal" else 1 / np.arange(1, teachers + 1)
    return np.asarray(np.maximum(1, weights / weights.sum() * count), dtype=np.int64)


def split_skewed(
    labels: NDArray[np.uint8], sizes: NDArray[np.int64], alpha: float, random: Generator
) -> list[Rows]:
    """The rows of each teacher; its classes come in shares drawn from Dirichlet(α, …, α).

    A class that has run out is replaced by what is left, so the last teachers dealt to are less
    skewed; the order of dealing is random.
    """
    if not alpha > 0:
        raise InputError(f"alpha must be above 0, got {alpha}")
    classes = int(labels.max()) + 1
    pools = [list(random.permutation(np.flatnonzero(labels == each))) for each in range(classes)]
    dealt: list[Rows] = [np.empty(0, np.int64)] * len(sizes)
    for teacher in random.permutation(len(sizes)):
        wanted = random.multinomial(sizes[teacher], random.dirichlet(np.full(classes, alpha)))
        dealt[teacher] = np.array(_take(pools, wanted, random), dtype=np.int64)
    return dealt


def _take(pools: list[list[int]], wanted: NDArray[np.int64], random: Generator) -> list[int]:
    taken: list[int] = []
    for pool, number in zip(pools, wanted, strict=True):
        got = min(int(number), len(pool))
        taken += [pool.pop() for _ in range(got)]
    left = np.array([len(pool) for pool in pools])
    missing = min(int(wanted.sum()) - len(taken), int(left.sum()))
    instead = random.multivariate_hypergeometric(left, missing)
    for pool, number in zip(pools, instead, strict=True):
        taken += [pool.pop() for _ in range(int(number))]
    return taken


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
