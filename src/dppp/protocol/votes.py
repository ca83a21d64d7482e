"""From what a model says to one-hot votes; run by every teacher on its own machine.

Taking part must not depend on private data, so nothing that a model does keeps its teacher from
voting: where it raises, answers with a class outside the task or with the wrong number of answers,
the vote of that query is all zeros. The reason is noted locally only.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dppp.errors import message_of

Predict = Callable[[NDArray[np.float64]], Sequence[int | None]]
"""A model: rows of inputs to class numbers, None where it has no answer."""
Votes = NDArray[np.int64]
"""Queries by classes: one 1 in a row, or none where the model had no answer."""
Note = Callable[[str], None]
"""Takes remarks that stay on the teacher's own machine."""


def cast_votes(
    predict: Predict, inputs: NDArray[np.float64], classes: int, *, note: Note = lambda _: None
) -> Votes:
    """One-hot votes; a row of zeros where the model fails, for whatever reason."""
    votes = np.zeros((len(inputs), classes), dtype=np.int64)
    for row, answer in enumerate(ask_model(predict, inputs, note)):
        label = _checked(answer, classes, note)
        if label is not None:
            votes[row, label] = 1
    return votes


def ask_model(predict: Predict, inputs: NDArray[np.float64], note: Note) -> list[object]:
    """An answer to each input; where all at once fail, each is asked by itself."""
    try:
        answers: list[object] = list(predict(inputs))
        if len(answers) != len(inputs):
            raise ValueError(f"{len(answers)} answers to {len(inputs)} queries")
    except Exception as error:  # noqa: BLE001 - a model may fail in any way; it never matters
        if len(inputs) == 1:
            note(f"the model failed and casts no vote: {type(error).__name__}: {message_of(error)}")
            return [None]
        return [ask_model(predict, inputs[row : row + 1], note)[0] for row in range(len(inputs))]
    return answers


def _checked(answer: object, classes: int, note: Note) -> int | None:
    is_number = isinstance(answer, int | np.integer) and not isinstance(answer, bool)
    if is_number and 0 <= int(answer) < classes:  # type: ignore[call-overload]
        return int(answer)  # type: ignore[call-overload,no-any-return]
    if answer is not None:
        note(f"the model answered {answer!r}, which is not a class of the task; no vote")
    return None
