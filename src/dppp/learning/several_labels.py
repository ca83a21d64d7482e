"""Training a model of several labels where some label is the same in all records of a shard.

How a model's labels become a vote is in question_models.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from dppp.errors import InputError
from dppp.privacy.pmf import Floats


def _can(name: str) -> Callable[[Any], bool]:
    return lambda some: hasattr(some.model, name)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SomeLabels:
    """A model of the labels that differ among its records; the others are what they always were.

    Most models of several labels refuse one that is the same everywhere, which is common in a
    shard. Where one label alone differs it is there twice, since such models want two.
    """

    model: Any
    usual: NDArray[np.int64]
    """What each label is in the first record."""
    varying: tuple[int, ...]

    def predict(self, rows: Any) -> NDArray[np.int64]:
        """Zeros and ones, a column per label."""
        said = _indicator(self.model.predict(rows))
        found = np.tile(self.usual, (len(said), 1))
        found[:, list(self.varying)] = said[:, : len(self.varying)]
        return found

    def _sure(self, name: str, rows: Any) -> Floats:
        said = getattr(self.model, name)(rows)
        if isinstance(said, list):  # for each label a column for 0 and one for 1
            said = np.column_stack([np.asarray(each)[:, -1] for each in said])
        scores = np.where(self.usual, np.inf, -np.inf) * np.ones((len(said), 1))
        scores[:, list(self.varying)] = np.asarray(said)[:, : len(self.varying)]
        return np.asarray(scores)

    @available_if(_can("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, rows: Any) -> Floats:
        """How sure the model is of each label; of those that never change it is surest."""
        return self._sure("predict_proba", rows)

    @available_if(_can("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, rows: Any) -> Floats:
        """The same, where a model has no probabilities."""
        return self._sure("decision_function", rows)


def train_on_labels(model: Any, rows: Any, labels: NDArray[Any]) -> Any:
    """A model for records of which at least two have different labels."""
    varying = np.flatnonzero((labels != labels[0]).any(axis=0))
    if len(varying) == labels.shape[1]:
        return model.fit(rows, labels)
    columns = varying if len(varying) > 1 else np.repeat(varying, 2)
    return SomeLabels(
        model=model.fit(rows, labels[:, columns]),
        usual=np.asarray(labels[0], dtype=np.int64),
        varying=tuple(varying.tolist()),
    )


def _indicator(said: Any) -> NDArray[np.int64]:
    table = said.toarray() if hasattr(said, "toarray") else np.asarray(said)
    if table.ndim != 2 or not np.isin(table, (0, 1)).all():
        raise InputError(
            "a model of labels answers with zeros and ones, a column for each label",
            hint="give a classifier of several labels, such as OneVsRestClassifier",
        )
    return np.asarray(table, dtype=np.int64)
