"""Models for a federation on one machine: records dealt to teachers, one model each."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.svm import SVC

from dppp.errors import InputError
from dppp.learning.csv_records import Records
from dppp.learning.default_model import default_model, default_model_for
from dppp.learning.frames import rows_as_lists, take
from dppp.learning.shards import train_model

_HELD_OUT = 0.2


def breast_cancer() -> Records:
    """569 patients, shipped with scikit-learn."""
    found = load_breast_cancer()
    return Records(
        features=tuple(str(name) for name in found.feature_names),
        rows=np.asarray(found.data, dtype=np.float64),
        labels=np.asarray(found.target_names)[found.target],
    )


def digits() -> Records:
    """1,797 handwritten digits of 8 × 8 pixels from 0 to 16, shipped with scikit-learn."""
    found = load_digits()
    return Records(
        features=tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8)),
        rows=np.asarray(found.data, dtype=np.float64),
        labels=found.target.astype(str),
    )


def image_model() -> Any:
    """A fresh model for digits, whose pixels are on one scale already."""
    return SVC(gamma=0.001, C=10)


def table_model(rows: Any = None) -> Any:
    """A fresh model for columns of any scale, or for rows like these."""
    return default_model(rows)


def split_and_train(
    records: Records,
    teachers: int,
    seed: int = 0,
    make_model: Callable[[], Any] | None = None,
    *,
    kind: str = "choice",
) -> tuple[list[Any], NDArray[np.int64]]:
    """A model for each teacher on its own records, and the places of the records that nobody got.

    `kind` is that of the question.
    """
    order = np.random.default_rng(seed).permutation(len(records.labels))
    asked, shares = hold_out_and_deal(order, max(1, round(_HELD_OUT * len(order))), teachers)
    make = make_model or (lambda: default_model_for(kind, records.rows))
    models = [
        train_model(make(), take(records.rows, share), records.labels[share], seed)
        for share in shares
    ]
    return models, asked


def hold_out_and_deal(
    order: NDArray[np.int64], held_out: int, teachers: int
) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """The first places are nobody's, to ask about; the others go round among the teachers."""
    asked, kept = order[:held_out], order[held_out:]
    if len(kept) < teachers:
        raise InputError(
            f"{len(order)} records are too few for {teachers} teachers", hint="have fewer teachers"
        )
    return asked, [kept[place::teachers] for place in range(teachers)]


def write_rows(path: Path, records: Records, places: NDArray[np.int64]) -> None:
    """Records without their labels, to ask about."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(records.features)
            writer.writerows(rows_as_lists(records.rows, places.tolist()))
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}", hint="choose another place"
        ) from error
