"""Votes from whatever a model answers: many at once give what one by one gives."""

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from dppp.protocol.votes import cast_votes

ANSWERS = st.lists(
    st.integers(-3, 6)
    | st.none()
    | st.booleans()
    | st.floats()
    | st.integers(0, 4).map(np.int64)
    | st.integers(0, 4).map(np.uint8)
    | st.just(2**70),
    min_size=1,
    max_size=12,
)
CLASSES = 4


def one_by_one(answers: Any) -> list[list[int]]:
    """What a vote is, written out again."""
    rows = []
    for answer in answers:
        is_number = isinstance(answer, int | np.integer) and not isinstance(answer, bool)
        rows.append([int(is_number and answer == label) for label in range(CLASSES)])
    return rows


@given(ANSWERS)
@example([0, 1, 2, 3])
@example([0, -1, 4, 3])
@example([2**70, 1])
def test_all_answers_at_once_give_the_votes_of_each_by_itself(answers: list[Any]) -> None:
    notes: list[str] = []
    inputs = np.zeros((len(answers), 1))
    votes = cast_votes(lambda _: answers, inputs, CLASSES, note=notes.append)
    expected = one_by_one(answers)
    assert votes.tolist() == expected
    without = [row for row, answer in zip(expected, answers, strict=True) if answer is not None]
    assert len(notes) == sum(not any(row) for row in without)


@given(
    st.lists(st.integers(-3, 6), min_size=1, max_size=12),
    st.sampled_from(["i1", "<i8", ">i4", "f8"]),
)
def test_an_array_is_a_list_of_answers(answers: list[int], kind: str) -> None:
    array = np.array(answers, dtype=kind)
    votes = cast_votes(lambda _: array, np.zeros((len(answers), 1)), CLASSES)  # type: ignore[arg-type,return-value]
    expected = [[0] * CLASSES] * len(answers) if kind == "f8" else one_by_one(answers)
    assert votes.tolist() == expected


def test_a_masked_answer_is_no_vote() -> None:
    masked = np.ma.masked_array([1, 2], mask=[False, True])
    votes = cast_votes(lambda _: masked, np.zeros((2, 1)), CLASSES)  # type: ignore[arg-type,return-value]
    assert votes.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
