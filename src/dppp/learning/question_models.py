"""What a model says of rows, whatever the question: a class, some labels or a number.

A teacher's models are asked through `as_answering`, in a simulation and in a deployment alike
(protocol/votes.py says what a vote may be). Of labels a vote keeps a few at most, so the surest
come first where the model says how sure it is; that depends on the row and this model alone.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.learning.frames import as_trained
from dppp.learning.models import answer_of, as_predict
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.votes import Predict


def as_answering(model: object, names: Sequence[object], question: Question = CHOICE) -> Predict:
    """What a teacher asks for votes.

    `names` are the model's own names of the task's classes or labels, in the task's order; a number
    has none that matters.
    """
    if question.kind == "choice":
        return as_predict(model, names)
    answer = answer_of(model)
    if question.kind == "number":
        return lambda rows: _numbers(answer(as_trained(rows)))
    sureness = _sureness_of(model)
    places = {name: place for place, name in enumerate(names)}

    def labels(rows: Any) -> list[list[int] | None]:
        asked = as_trained(rows)
        found = answer(asked)
        table = np.asarray(found) if hasattr(found, "__array__") else None
        if table is None or table.ndim != 2:
            return [_named(each, places) for each in found]
        if table.shape[1] != len(names):
            raise InputError(
                f"the model gives {table.shape[1]} labels, and the task has {len(names)}",
                hint="the model must be of the task's labels, in their order",
            )
        scores = table if sureness is None else sureness(asked, len(names))
        return [_surest(row, of_row) for row, of_row in zip(table, scores, strict=True)]

    return labels


def _numbers(found: Any) -> list[object]:
    """One number for each row; a column of them is taken too."""
    return list(np.asarray(found).ravel()) if hasattr(found, "__array__") else list(found)


def _named(answer: Any, places: dict[object, int]) -> list[int] | None:
    """Labels by their names, the surest first."""
    if answer is None:
        return None
    strange = [each for each in answer if each not in places]
    if strange:
        raise InputError(
            f"the model says {strange[0]!r}; the labels are {list(places)}",
            hint="the model must answer with the task's labels",
        )
    return [places[each] for each in answer]


def _surest(row: NDArray[Any], scores: NDArray[Any]) -> list[int]:
    """The labels of a row that are at least one half, those of the highest scores first."""
    chosen = np.flatnonzero(np.asarray(row, dtype=np.float64) >= 0.5)
    order = np.argsort(-np.asarray(scores, dtype=np.float64)[chosen], kind="stable")
    return [int(place) for place in chosen[order]]


_Sureness = Callable[[Any, int], NDArray[np.float64]]


def _sureness_of(model: object) -> _Sureness | None:
    """How sure the model is of each label, where it can say so."""
    probabilities = getattr(model, "predict_proba", None)
    scores = getattr(model, "decision_function", None)
    if probabilities is None and scores is None:
        return None

    def sureness(rows: Any, labels: int) -> NDArray[np.float64]:
        found = probabilities(rows) if probabilities is not None else scores(rows)  # type: ignore[misc]
        if isinstance(found, list):  # scikit-learn: for each label a column for 0 and one for 1
            found = np.column_stack([_of_one(np.asarray(each)) for each in found])
        table = np.asarray(found, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != labels:
            raise InputError(
                "the model does not say of each label how sure it is",
                hint="give a model with predict_proba or decision_function",
            )
        return table

    return sureness


def _of_one(columns: NDArray[Any]) -> NDArray[Any]:
    """The probability of 1; a model that saw one value only has one column."""
    return columns[:, -1] if columns.ndim == 2 and columns.shape[1] > 1 else np.zeros(len(columns))
