"""Models for a federation on one machine: records dealt to teachers, one model each."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dppp.errors import InputError
from dppp.learning.csv_records import Records

_HELD_OUT = 0.2


def breast_cancer() -> Records:
    """569 patients, shipped with scikit-learn."""
    found = load_breast_cancer()
    return Records(
        features=tuple(str(name) for name in found.feature_names),
        rows=np.asarray(found.data, dtype=np.float64),
        labels=np.asarray(found.target_names)[found.target],
    )


def split_and_train(
    records: Records, teachers: int, seed: int = 0
) -> tuple[list[Any], NDArray[np.int64]]:
    """A model a teacher on its own records, and the places of the records that nobody got."""
    order = np.random.default_rng(seed).permutation(len(records.rows))
    asked = order[: max(1, round(_HELD_OUT * len(order)))]
    kept = order[len(asked) :]
    if len(kept) < teachers:
        raise InputError(
            f"{len(records.rows)} records are too few for {teachers} teachers; have fewer teachers"
        )
    return [_train(records, kept[place::teachers]) for place in range(teachers)], asked


def write_rows(path: Path, records: Records, places: NDArray[np.int64]) -> None:
    """Records without their labels, to ask about."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(records.features)
            writer.writerows(records.rows[places].tolist())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _train(records: Records, places: NDArray[np.int64]) -> Any:
    rows, labels = records.rows[places], records.labels[places]
    if len(np.unique(labels)) < 2:
        return DummyClassifier(strategy="most_frequent").fit(rows, labels)
    return make_pipeline(StandardScaler(), SVC()).fit(rows, labels)
