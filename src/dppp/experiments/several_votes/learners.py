"""What is learned from one shard: a model, and its votes on the test records.

A learner gets the rows of one shard and fits everything on them: the words it knows, the scaler,
the model. Nothing is fitted over shards. Used by both experiments of this folder.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dppp.experiments.datasets.files import Arrays, cache_folder, cached_arrays
from dppp.experiments.datasets.mnist import Bytes, load_mnist
from dppp.experiments.datasets.nsl_kdd import Labels, NslKdd, load_nsl_kdd
from dppp.experiments.teachers.svm import ConnectionReader
from dppp.experiments.teachers.uneven_split import Rows

Confidence = NDArray[np.float64]
_PENALTY = 0.1
"""Of the ridge model on digits, whose features are at most 1."""
_IMAGES_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learner:
    """A dataset ready to be dealt, and how one shard's model votes on its test records."""

    dataset: str
    classes: int
    labels: Labels
    """Of the records that are dealt."""
    truth: Labels
    cast: Callable[[Rows], tuple[Labels, Confidence]]
    """Train on these records alone; votes on the test records, and how sure each is."""


def learn_connections(seed: int, records: int | None = None) -> Learner:
    """Logistic regression on NSL-KDD-20; the seed splits off the fifth that tests."""
    return connections_learner(load_nsl_kdd(seed=seed), records)


def connections_learner(data: NslKdd, records: int | None = None) -> Learner:
    """The same on data that was read before; `records` of the test part."""
    test = data.test.rows(np.arange(len(data.test.labels))[:records])

    def cast(rows: Rows) -> tuple[Labels, Confidence]:
        own = data.train.rows(rows)
        if len(np.unique(own.labels)) < 2:
            return np.full(len(test.labels), own.labels[0]), np.zeros(len(test.labels))
        reader = ConnectionReader.of(own)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
        model.fit(reader.read(own), own.labels)
        chances = model.predict_proba(reader.read(test))
        return chances.argmax(axis=1).astype(np.uint8), chances.max(axis=1)

    return Learner(
        dataset="nsl-kdd-20", classes=2, labels=data.train.labels, truth=test.labels, cast=cast
    )


def learn_digits(records: int, *, folder: Path | None = None) -> Learner:
    """A ridge classifier on gradient histograms of MNIST; `records` test images, evenly spaced.

    The histograms are a fixed function of one image: nothing is fitted to make them.
    """
    data = load_mnist()
    step = len(data.test_images) // records
    rows = _features(data.train_images, "train", folder)
    test_rows = _features(data.test_images, "test", folder)[::step]
    return digits_learner(rows, data.train_labels, test_rows, data.test_labels[::step])


def digits_learner(
    rows: NDArray[np.float32], labels: Bytes, test_rows: NDArray[np.float32], truth: Bytes
) -> Learner:
    """The same on features that were computed before. It says nothing of how sure a model is."""

    def cast(own: Rows) -> tuple[Labels, Confidence]:
        if len(np.unique(labels[own])) < 2:
            return np.full(len(truth), labels[own][0]), np.zeros(len(truth))
        model = RidgeClassifier(alpha=_PENALTY).fit(rows[own], labels[own])
        return model.predict(test_rows).astype(np.uint8), np.ones(len(truth))

    return Learner(dataset="mnist", classes=10, labels=labels, truth=truth, cast=cast)


def _features(images: Bytes, name: str, folder: Path | None) -> NDArray[np.float32]:
    from dppp.experiments.datasets.mnist_features import (  # noqa: PLC0415  (needs scipy)
        deskew,
        gradient_histograms,
    )

    def make() -> Arrays:
        parts = np.array_split(images, -(-len(images) // _IMAGES_AT_ONCE))
        found = [gradient_histograms(deskew(part)).astype(np.float16) for part in parts]
        return {"features": np.concatenate(found)}

    path = (folder or cache_folder()) / f"mnist-histograms-{name}-{len(images)}-1.npz"
    return np.asarray(cached_arrays(path, make)["features"], np.float32)
