"""The votes of many shards as counts, and how many labels are right on average over all noise.

The noise is that of the whole tally, as calibrated for N teachers: it does not grow with votes.
Nothing is sampled: the average over the noise is computed. Used by both experiments of this folder.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dppp.experiments.datasets.nsl_kdd import Labels
from dppp.experiments.several_votes.learners import Learner
from dppp.experiments.teachers.stored_votes import NO_VOTE, Counts, tally
from dppp.experiments.teachers.uneven_split import Rows
from dppp.learning.win_probability import Race
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate

DELTA = 1e-5
QUERIES = 100
"""Answers in total, for which (ε, δ) is promised together."""


def certify(teachers: int, epsilon: float, classes: int) -> Certificate:
    """The best noise for 100 answers in total, with the default colluders and dropouts."""
    return calibrate(
        "auto",
        epsilon=epsilon,
        delta=DELTA,
        teachers=teachers,
        queries=QUERIES,
        classes=classes,
    )


def count_votes(
    learner: Learner, shards: Sequence[Rows], threshold: float | None = None
) -> tuple[Labels, Counts]:
    """Votes of shape (shards, records), all zeros where a model is less sure than the threshold."""
    cast = [learner.cast(shard) for shard in shards]
    votes = np.stack([votes for votes, _ in cast])
    if threshold is not None:
        is_unsure = np.stack([confidence for _, confidence in cast]) < threshold
        votes = np.where(is_unsure, np.uint8(NO_VOTE), votes)
    return votes, tally(votes, learner.classes)


def races_of(counts: Counts, truth: NDArray[np.integer]) -> tuple[Race, ...]:
    """The lead of the right class over each other one, and how often it is met."""
    seen: Counter[tuple[int, ...]] = Counter()
    for row, right in zip(counts, truth, strict=True):
        seen[tuple(sorted((row[right] - np.delete(row, right)).tolist()))] += 1
    return tuple(Race(leads=leads, weight=times / len(truth)) for leads, times in seen.items())
