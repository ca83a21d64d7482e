"""Questions: what a vote is, what is released, and both through the whole protocol."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dppp import Federation, calibrate, create_federation, in_process, verify_transcript
from dppp.errors import InputError, TaskError, TranscriptError
from dppp.federation import Parties
from dppp.paillier.dealer import deal
from dppp.protocol.messages import ListHash, QueryId
from dppp.protocol.question import CHOICE, Question, top_classes
from dppp.protocol.receipt import Receipt, verify_receipt
from dppp.protocol.release import (
    ballots_offset,
    largest_standard_error,
    make_releases,
    plausible_noise,
    standard_error,
)
from dppp.protocol.task import Task, entry_bound
from dppp.protocol.votes import cast_votes
from dppp.protocol.wire import decode, encode

LABELS = Question.of_labels(most_labels=2, share=0.4)
DOSE = Question.of_number(low=-10, high=30, levels=40)
NAMES = {"labels": list("abcd"), "number": ["dose"], "choice": list("abcd")}
NUMBERS: dict[str, dict[str, Any]] = {
    "choice": {"classes": 4},
    "labels": {"classes": 4, "max_labels": 2},
}
ROWS = np.zeros((3, 1))


def parties_for(question: Question, models: Any, *, cryptosystem: str = "masks") -> Parties:
    given: dict[str, Any] = NUMBERS.get(question.kind, {"levels": question.levels})
    certificate = calibrate(
        "skellam", epsilon=8, delta=1e-5, teachers=4, queries=10, dropouts=1, **given
    )
    key = None
    if cryptosystem == "paillier":
        key = deal(teachers=4, threshold=3, modulus_bits=512, insecure_testing=True)
    return create_federation(
        name="ward",
        class_names=NAMES[question.kind],
        features=["x"],
        certificate=certificate,
        models=[models] * 4,
        key=key,
        question=question,
    )


def votes_of(question: Question, answers: Any, counts: int = 4) -> tuple[list[Any], list[str]]:
    notes: list[str] = []
    votes = cast_votes(lambda _: answers, ROWS, counts, question=question, note=notes.append)
    return votes.tolist(), notes


def test_labels_are_clipped_to_the_first_that_a_model_names() -> None:
    votes, notes = votes_of(LABELS, [[3, 1, 0], [2, 2, 2, 0], []])
    assert votes == [[0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0]]
    assert not notes


def test_a_row_of_zeros_and_ones_names_labels_too() -> None:
    votes, _ = votes_of(LABELS, np.array([[1, 0, 0, 0], [1, 1, 0, 1], [0, 0, 0, 0]]))
    assert votes == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    "answer", [7, "ab", b"ab", [9], [-1], [0, "b"], [True], np.array([0, 2, 0, 0]), np.ones(3)]
)
def test_labels_that_cannot_be_read_are_no_vote_and_noted(answer: Any) -> None:
    votes, notes = votes_of(LABELS, [answer, [1], [1]])
    assert votes == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]]
    assert len(notes) == 1


@given(st.lists(st.lists(st.integers(-2, 6), max_size=8), min_size=3, max_size=3))
def test_whatever_a_model_says_it_gives_at_most_so_many_labels(answers: list[list[int]]) -> None:
    votes, _ = votes_of(LABELS, answers)
    assert all(sum(row) <= 2 and set(row) <= {0, 1} for row in votes)


def test_a_number_is_clipped_and_rounded_to_a_step() -> None:
    votes, notes = votes_of(DOSE, [-50, 2.4, 10**400], 1)
    assert votes == [[0], [12], [40]]
    assert votes_of(DOSE, [math.inf, -math.inf, np.float32(30)], 1)[0] == [[40], [0], [40]]
    assert not notes


@pytest.mark.parametrize("answer", [math.nan, "3", None, True, [3], 1j])
def test_a_failed_model_votes_for_the_public_middle(answer: Any) -> None:
    votes, notes = votes_of(DOSE, [answer, 30.0, -10.0], 1)
    assert votes == [[20], [40], [0]]
    assert len(notes) == (answer is not None)


def test_a_model_that_raises_votes_for_the_middle_of_a_number_and_for_no_label() -> None:
    def fail(_: Any) -> Any:
        raise RuntimeError("broken")

    assert cast_votes(fail, ROWS, 1, question=DOSE).tolist() == [[20], [20], [20]]
    assert not cast_votes(fail, ROWS, 4, question=LABELS).any()


@given(st.floats(-1e6, 1e6), st.integers(1, 200))
def test_a_level_is_next_to_its_number(value: float, levels: int) -> None:
    question = Question.of_number(low=-3, high=7, levels=levels)
    level = question.level_of(value)
    assert 0 <= level <= levels
    clipped = min(max(value, -3), 7)
    assert abs(question.mean_of(level, 1) - clipped) <= 10 / (2 * levels) + 1e-9


@pytest.mark.filterwarnings("ignore::dppp.errors.WeakModulusWarning")
@pytest.mark.parametrize("cryptosystem", ["masks", "paillier"])
def test_labels_go_through_the_whole_protocol(cryptosystem: str) -> None:
    models = [lambda rows: [[3, 1, 0]] * len(rows)] * 30
    parties = parties_for(LABELS, models, cryptosystem=cryptosystem)
    outcome = ask(parties, [[1.0], [2.0]])
    for answer in outcome.answers:
        assert answer.labels == (1, 3)
        assert answer.label is None
        assert answer.value is None
        assert not answer.is_flagged
    assert (
        verify_transcript(outcome.transcript.to_bytes(), insecure_testing=True).answers
        == outcome.answers
    )


@pytest.mark.filterwarnings("ignore::dppp.errors.WeakModulusWarning")
@pytest.mark.parametrize("cryptosystem", ["masks", "paillier"])
def test_a_number_goes_through_the_whole_protocol(cryptosystem: str) -> None:
    models = [lambda rows: [float(row[0]) for row in rows]] * 30
    parties = parties_for(DOSE, models, cryptosystem=cryptosystem)
    outcome = ask(parties, [[-4.0], [20.0], [90.0]])
    error = standard_error(parties.task, [1, 2, 3])
    assert 0 < error < 1.5
    for answer, expected in zip(outcome.answers, (-4.0, 20.0, 30.0), strict=True):
        assert answer.value == pytest.approx(expected, abs=8 * error)
        assert -10 <= answer.value <= 30
    assert verify_transcript(outcome.transcript.to_bytes(), insecure_testing=True).answers


def ask(parties: Parties, rows: Any) -> Any:
    present = {index: parties.teachers[index] for index in (1, 2, 3)}
    return Federation(aggregator=parties.aggregator, deliver=in_process(present)).ask(rows)


def test_the_mean_is_over_the_votes_of_the_listed_teachers_only() -> None:
    """Teacher 4 has other models and is not there."""
    models = [lambda rows: [10.0] * len(rows)] * 30
    task = parties_for(DOSE, models).task
    sums = [3 * 30 * 20 + ballots_offset(task, 3)]
    (release,) = make_releases(task, [QueryId(bytes(32))], sums, participants=(1, 2, 3), of_list=L)
    assert release.value == 10.0


def test_the_error_that_is_stated_is_never_less_than_that_of_any_teachers_who_took_part() -> None:
    made = parties_for(DOSE, [lambda rows: [10.0] * len(rows)])
    uneven = create_federation(
        name="ward",
        class_names=NAMES["number"],
        features=["x"],
        certificate=made.task.certificate,
        models=[[lambda rows: [10.0] * len(rows)] * votes for votes in (20, 30, 25, 35)],
        question=DOSE,
    ).task
    errors = [
        standard_error(uneven, present)
        for size in (3, 4)
        for present in itertools.combinations((1, 2, 3, 4), size)
    ]
    assert max(errors) == largest_standard_error(uneven) > min(errors)


L = ListHash(bytes(32))


@pytest.mark.parametrize("question", [LABELS, DOSE])
def test_a_sum_that_no_entries_can_give_voids_its_own_answer_only(question: Question) -> None:
    task = parties_for(question, [lambda rows: [None] * len(rows)]).task
    counts = len(task.class_names)
    usual = ballots_offset(task, 3)
    sums = [usual] * counts + [3 * task.entry_bound + 1] * counts
    ids = [QueryId(bytes(31) + bytes([place])) for place in range(2)]
    first, second = make_releases(task, ids, sums, participants=(1, 2, 3), of_list=L)
    assert (second.labels, second.value, second.is_flagged) == (None, None, True)
    assert (first.labels is None) != (first.value is None)
    assert not first.is_flagged


@pytest.mark.parametrize("question", [LABELS, DOSE])
def test_counts_past_what_votes_and_noise_give_are_flagged(question: Question) -> None:
    task = parties_for(question, [lambda rows: [None] * len(rows)] * 5).task
    counts, offset = len(task.class_names), ballots_offset(task, 3)
    of_one, of_all = plausible_noise(task.noise, 3, counts)
    most = 15 * question.largest_entry
    kept = [[most + of_one] + [0] * (counts - 1), [-of_one] + [0] * (counts - 1)]
    past = [[most + of_one + 1] + [0] * (counts - 1), [-of_one - 1] + [0] * (counts - 1)]
    if counts > 1:
        each = (15 * question.largest_total + of_all) // counts
        kept.append([each] * counts)
        past.append([each + 1] * counts)
    for flagged, tables in ((False, kept), (True, past)):
        ids = [QueryId(bytes(31) + bytes([place])) for place in range(len(tables))]
        sums = [count + offset for table in tables for count in table]
        found = make_releases(task, ids, sums, participants=(1, 2, 3), of_list=L)
        assert [each.is_flagged for each in found] == [flagged] * len(tables)


def test_a_receipt_with_another_value_or_other_labels_is_refused() -> None:
    for question, change in ((LABELS, {"labels": (0,)}), (DOSE, {"value": 11.0})):
        answer = [[3, 1]] if question is LABELS else [20.0]
        parties = parties_for(question, [lambda rows, a=answer: a * len(rows)] * 20)
        receipt = ask(parties, [[1.0]]).receipt
        forged = replace_answer(receipt, change)
        with pytest.raises(TranscriptError) as refusal:
            verify_receipt(forged)
        assert refusal.value.check == "labels"


def replace_answer(receipt: Receipt, change: dict[str, Any]) -> bytes:
    answers = (replace(receipt.answers[0], **change),)
    return replace(receipt, answers=answers).to_bytes()


@pytest.mark.parametrize("question", [CHOICE, LABELS, DOSE])
def test_a_task_with_its_question_survives_the_wire(question: Question) -> None:
    task = parties_for(question, [lambda rows: [None] * len(rows)]).task
    assert decode(encode(task), Task) == task
    bound = entry_bound(task.noise, votes=question.largest_entry)
    assert task.entry_bound == bound


def test_another_question_is_another_task() -> None:
    task = parties_for(LABELS, [lambda rows: [None] * len(rows)]).task
    other = replace(task, question=Question.of_labels(most_labels=2, share=0.5))
    assert other.task_id != task.task_id


def test_noise_for_one_question_is_refused_for_another() -> None:
    certificate = calibrate("skellam", epsilon=8, delta=1e-5, teachers=4, queries=10, classes=4)
    with pytest.raises(TaskError, match="another question"):
        create_federation(
            name="ward",
            class_names=list("abcd"),
            features=["x"],
            certificate=certificate,
            models=[lambda rows: [[0]] * len(rows)] * 4,
            question=LABELS,
        )


def test_a_task_whose_noise_is_too_little_for_its_question_is_refused() -> None:
    """The noise of a choice under a question of labels: every party works δ out anew."""
    task = parties_for(CHOICE, [lambda rows: [0] * len(rows)]).task
    with pytest.raises(TaskError, match="not certified"):
        replace(task, question=LABELS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Question(kind="sentence"),
        lambda: Question(most_labels=2),
        lambda: Question(kind="labels", most_labels=0, share=0.5),
        lambda: Question(kind="labels", most_labels=1, share=0.0),
        lambda: Question(kind="labels", most_labels=1, share=1.0),
        lambda: Question(kind="labels", most_labels=1, share=0.5, levels=3),
        lambda: Question.of_number(low=1, high=1),
        lambda: Question.of_number(low=0, high=math.inf),
        lambda: Question.of_number(low=math.nan, high=1),
        lambda: Question.of_number(low=-1e308, high=1e308),
        lambda: Question.of_number(low=0, high=1, levels=0),
        lambda: Question.of_number(low=0, high=1, levels=10**9),
        lambda: DOSE.change(2),
        lambda: LABELS.change(1),
        lambda: CHOICE.change(1),
    ],
)
def test_a_question_that_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_the_largest_counts_name_the_top_classes() -> None:
    assert top_classes([3, 9, -1, 9], 3) == (1, 3, 0)
    assert top_classes([3, 9], 5) == (1, 0)
