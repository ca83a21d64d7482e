"""From what a teacher's models say to its votes; run by every teacher on its own machine.

Each model casts one vote, and the votes of a teacher are added count by count. Taking part must not
depend on private data, so nothing that a model does keeps its teacher from voting: where it raises,
answers with a class outside the task or with the wrong number of answers, its own vote of that
query is all zeros, or the middle of the range where the question is a number. The reason is noted
locally only.

What a model gives for a row depends on the question: a class number; the numbers of its labels, the
surest first, or a row of zeros and ones, one for each label; a number.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import message_of
from dppp.protocol.question import CHOICE, Question

Predict = Callable[[Any], Sequence[Any]]
"""A model: rows of inputs to answers, None where it has none.

The rows are `Inputs` of the task: an array of numbers, or mixed rows.
"""
Votes = NDArray[np.int64]
"""Queries by counts: how many of a teacher's models chose the class or the label, or their levels
added up."""
Note = Callable[[str], None]
"""Takes remarks that stay on the teacher's own machine."""


def sum_votes(
    models: Sequence[Predict],
    inputs: Any,
    classes: int,
    *,
    question: Question = CHOICE,
    note: Note = lambda _: None,
) -> Votes:
    """The votes of all models of one teacher; a model that fails leaves the others as they are."""
    votes = np.zeros((len(inputs), classes), dtype=np.int64)
    for predict in models:
        votes += cast_votes(predict, inputs, classes, question=question, note=note)
    return votes


def as_models(predict: Predict | Sequence[Predict]) -> tuple[Predict, ...]:
    """The models of one teacher, where one or several were given."""
    return (predict,) if callable(predict) else tuple(predict)


def cast_votes(
    predict: Predict,
    inputs: Any,
    classes: int,
    *,
    question: Question = CHOICE,
    note: Note = lambda _: None,
) -> Votes:
    """The votes of one model, also where it fails, for whatever reason."""
    answers = ask_model(predict, inputs, note)
    if question.kind == "number":
        levels = [_level_of(answer, question, note) for answer in answers]
        return np.array(levels, dtype=np.int64).reshape(-1, 1)
    if question.kind == "labels":
        votes = np.zeros((len(inputs), classes), dtype=np.int64)
        for row, answer in enumerate(answers):
            votes[row, _labels_of(answer, classes, question.most_labels, note)] = 1
        return votes
    return _one_hot(answers, len(inputs), classes, note)


def _one_hot(answers: Sequence[object], rows: int, classes: int, note: Note) -> Votes:
    """A row of zeros where there is no class of the task."""
    votes = np.zeros((rows, classes), dtype=np.int64)
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


def _level_of(answer: object, question: Question, note: Note) -> int:
    """The step of a number; the middle where there is none, which is public and tells nothing."""
    is_number = isinstance(answer, int | float | np.integer | np.floating)
    if is_number and not isinstance(answer, bool) and not math.isnan(value := _as_float(answer)):
        return question.level_of(value)
    if answer is not None:
        note(f"the model answered {answer!r}, which is not a number; it votes for the middle")
    return question.middle_level


def _as_float(answer: Any) -> float:
    try:
        return float(answer)
    except OverflowError:
        return math.inf if answer > 0 else -math.inf


def _labels_of(answer: object, classes: int, most: int, note: Note) -> list[int]:
    """The labels of one row: the first so many that it names, each once.

    What is beyond that is cut off in a way that depends on this answer alone.
    """
    if answer is None:
        return []
    try:
        named = _named_labels(answer, classes)
    except Exception as error:  # noqa: BLE001 - an answer may be anything; it never matters
        note(f"the model's labels cannot be read, no vote: {type(error).__name__}")
        return []
    labels = [_checked(each, classes, note) for each in named]
    if None in labels:
        return []
    return list(dict.fromkeys(each for each in labels if each is not None))[:most]


def _named_labels(answer: Any, classes: int) -> Sequence[object]:
    """The numbers of the labels, where they came as zeros and ones too."""
    if isinstance(answer, np.ndarray):
        if answer.shape != (classes,) or not np.isin(answer, (0, 1)).all():
            raise ValueError("an array of labels is one of zeros and ones, one for each label")
        return [int(place) for place in np.flatnonzero(answer)]
    if isinstance(answer, str | bytes):
        raise TypeError("labels are numbers")
    return list(answer)


def _checked(answer: object, classes: int, note: Note) -> int | None:
    is_number = isinstance(answer, int | np.integer) and not isinstance(answer, bool)
    if is_number and 0 <= int(answer) < classes:  # type: ignore[call-overload]
        return int(answer)  # type: ignore[call-overload,no-any-return]
    if answer is not None:
        note(f"the model answered {answer!r}, which is not a class of the task; no vote")
    return None
