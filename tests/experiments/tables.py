"""A made-up vote table, for experiments that need no training."""

import numpy as np

from dppp.experiments.teachers.stored_votes import StoredVotes


def made_up_votes(*, teachers, records, classes, right=0.8, seed=0, dataset="breast-cancer"):
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, records).astype(np.uint8)
    other = random.integers(0, classes, (teachers, records)).astype(np.uint8)
    is_right = random.random((teachers, records)) < right
    return StoredVotes(
        dataset=dataset,
        classes=classes,
        votes=np.where(is_right, truth, other).astype(np.uint8),
        truth=truth,
        centralised=truth,
    )
