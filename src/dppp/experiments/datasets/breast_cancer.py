"""Breast Cancer Wisconsin (Diagnostic): 569 records, 30 features, shipped with scikit-learn.

The paper counts 32 features, with the record's number and the label. Two thirds train, one third
tests, at random, as in Section VII.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from dppp.experiments.datasets.nsl_kdd import Floats, Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class BreastCancer:
    """Features and labels, 0 malignant and 1 benign, of both parts."""

    train_rows: Floats
    train_labels: Labels
    test_rows: Floats
    test_labels: Labels


def load_cancer(*, seed: int = 1) -> BreastCancer:
    """The split by this seed; nothing is downloaded."""
    rows, labels = load_breast_cancer(return_X_y=True)
    order: NDArray[np.int64] = np.random.default_rng(seed).permutation(len(labels))
    cut = len(order) * 2 // 3
    train, test = order[:cut], order[cut:]
    return BreastCancer(
        train_rows=rows[train],
        train_labels=labels[train].astype(np.uint8),
        test_rows=rows[test],
        test_labels=labels[test].astype(np.uint8),
    )
