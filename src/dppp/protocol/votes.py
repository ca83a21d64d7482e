"""From what a teacher's models say to its votes; run by every teacher on its own machine.

Each model casts one vote, and the votes of a teacher are added class by class. Taking part must not
depend on private data, so nothing that a model does keeps its teacher from voting: where it raises,
answers with a class outside the task or with the wrong number of answers, its own vote of that
query is all zeros. The reason is noted locally only.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import message_of

Predict = Callable[[Any], Sequence[int | None]]
"""A model: rows of inputs to class numbers, None where it has no answer.

The rows are `Inputs` of the task: an array of numbers, or mixed rows.
"""
Votes = NDArray[np.int64]
"""Queries by classes: how many of a teacher's models chose the class; 0 or 1 for one model."""
Note = Callable[[str], None]
"""Takes remarks that stay on the teacher's own machine."""


def sum_votes(
    models: Sequence[Predict],
    inputs: Any,
    classes: int,
    *,
    note: Note = lambda _: None,
) -> Votes:
    """The votes of all models of one teacher; a model that fails leaves the others as they are."""
    votes = np.zeros((len(inputs), classes), dtype=np.int64)
    for predict in models:
        votes += cast_votes(predict, inputs, classes, note=note)
    return votes


def as_models(predict: Predict | Sequence[Predict]) -> tuple[Predict, ...]:
    """The models of one teacher, where one or several were given."""
    return (predict,) if callable(predict) else tuple(predict)


def cast_votes(
    predict: Predict, inputs: Any, classes: int, *, note: Note = lambda _: None
) -> Votes:
    """One-hot votes; a row of zeros where the model fails, for whatever reason."""
    votes = np.zeros((len(inputs), classes), dtype=np.int64)
    answers = ask_model(predict, inputs, note)
    numbers = _as_numbers(answers)
    if numbers is None or not ((numbers >= 0) & (numbers < classes)).all():
        for row, answer in enumerate(answers):
            label = _checked(answer, classes, note)
            if label is not None:
                votes[row, label] = 1
    else:
        votes[np.arange(len(votes)), numbers] = 1
    return votes


def ask_model(predict: Predict, inputs: Any, note: Note) -> Sequence[object]:
    """An answer to each input; where all at once fail, each is asked by itself."""
    try:
        found = predict(inputs)
        answers: Sequence[object] = found if _is_array_of_numbers(found) else list(found)
        if len(answers) != len(inputs):
            raise ValueError(f"{len(answers)} answers to {len(inputs)} queries")
    except Exception as error:  # noqa: BLE001 - a model may fail in any way; it never matters
        if len(inputs) == 1:
            note(f"the model failed and casts no vote: {type(error).__name__}: {message_of(error)}")
            return [None]
        return [ask_model(predict, inputs[row : row + 1], note)[0] for row in range(len(inputs))]
    return answers


def _is_array_of_numbers(answers: object) -> bool:
    # Not a subclass: the elements of a masked array may be none.
    return type(answers) is np.ndarray and answers.ndim == 1 and answers.dtype.kind in "iu"


def _as_numbers(answers: Sequence[object]) -> NDArray[np.integer[Any]] | None:
    """The answers as an array, where all of them are whole numbers; else None."""
    if isinstance(answers, np.ndarray):
        return answers
    if set(map(type, answers)) != {int}:
        return None
    try:
        return np.array(answers, dtype=np.int64)
    except OverflowError:
        return None


def _checked(answer: object, classes: int, note: Note) -> int | None:
    is_number = isinstance(answer, int | np.integer) and not isinstance(answer, bool)
    if is_number and 0 <= int(answer) < classes:  # type: ignore[call-overload]
        return int(answer)  # type: ignore[call-overload,no-any-return]
    if answer is not None:
        note(f"the model answered {answer!r}, which is not a class of the task; no vote")
    return None
