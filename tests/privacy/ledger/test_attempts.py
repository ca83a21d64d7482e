"""Withdrawals, retries and refunds: each rule, on every kind of store."""

from collections.abc import Callable

import pytest
from tests.privacy.ledger.ledgers import answer, fill, make_id, make_ids

from dppp.errors import (
    AnswerGiven,
    AttemptOver,
    BallotReused,
    BallotUnknown,
    BatchChanged,
    BatchRefunded,
    InputError,
    QueriesExhausted,
    QueryReused,
    Refusal,
    SecondList,
    Withdrawn,
)
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import LedgerStore
from dppp.privacy.ledger.summary import TaskSummary

FIRST = make_id("task", "first")
ANSWERED, UNANSWERED, UNKNOWN = (make_id("batch", name) for name in "abc")
LIST, SECOND = make_id("list"), make_id("second list")
SHOWN = make_id("withdrawals of t teachers")

Step = Callable[[Ledger], object]


@pytest.fixture
def ledger(store: LedgerStore) -> Ledger:
    """Batch "a" was answered; of batch "b" only the ballot was cast."""
    ledger = Ledger.create(store, teacher="hospital-7")
    fill(ledger)
    return ledger


def first_task(ledger: Ledger) -> TaskSummary:
    return ledger.summary().data[0].tasks[0]


def endorse(ledger: Ledger, attempt: int = 1, listed: bytes = LIST) -> bytes:
    said = f"endorsement in attempt {attempt}".encode()
    return ledger.record_endorsement(UNANSWERED, listed, said, attempt=attempt)


def open_list(ledger: Ledger, attempt: int = 1, listed: bytes = LIST) -> bytes:
    said = f"answer in attempt {attempt}".encode()
    return ledger.record_answer(UNANSWERED, listed, said, attempt=attempt)


def everything_of(attempt: int) -> list[Step]:
    """All that is given, or found to be given, in one attempt of the unanswered batch."""
    return [
        lambda ledger: endorse(ledger, attempt),
        lambda ledger: ledger.find_endorsement(UNANSWERED, LIST, attempt=attempt),
        lambda ledger: open_list(ledger, attempt),
        lambda ledger: ledger.find_answer(UNANSWERED, LIST, attempt=attempt),
    ]


def withdraw(batch: bytes = UNANSWERED, attempt: int = 1) -> Step:
    return lambda ledger: ledger.record_withdrawal(batch, attempt, b"never")


def redo(batch: bytes = UNANSWERED, attempt: int = 2, ballot: bytes | None = None) -> Step:
    new = f"ballot of attempt {attempt}".encode() if ballot is None else ballot
    return lambda ledger: ledger.record_retry(batch, attempt, new, evidence=SHOWN)


def refund(batch: bytes = UNANSWERED, attempt: int = 1) -> Step:
    return lambda ledger: ledger.record_refund(batch, evidence=SHOWN, attempt=attempt)


def vote_again(ledger: Ledger) -> bytes:
    return answer(ledger, "b")


def ask_to_vote_again(ledger: Ledger) -> None:
    ledger.check_can_answer(FIRST, UNANSWERED, make_ids("b", 3))


def find_ballot(attempt: int) -> Step:
    return lambda ledger: ledger.find_ballot(UNANSWERED, attempt)


def assert_refused(refusal: type[Refusal], ledger: Ledger, *steps: Step) -> None:
    before = ledger.head
    for step in steps:
        with pytest.raises(refusal) as caught:
            step(ledger)
        assert caught.type is refusal
    assert ledger.head == before


def test_a_withdrawal_is_the_first_bytes_for_ever(ledger: Ledger, store: LedgerStore) -> None:
    assert ledger.find_withdrawal(UNANSWERED, 1) is None
    assert ledger.record_withdrawal(UNANSWERED, 1, b"never") == b"never"
    before = ledger.head
    for each in (ledger, Ledger.open(store)):
        assert each.record_withdrawal(UNANSWERED, 1, b"another") == b"never"
        assert each.find_withdrawal(UNANSWERED, 1) == b"never"
    assert ledger.check() == ledger.head == before


def test_a_withdrawal_is_not_an_end_of_the_charge(ledger: Ledger) -> None:
    before = first_task(ledger)
    ledger.record_withdrawal(UNANSWERED, 1, b"never")
    assert first_task(ledger) == before
    assert ledger.find_ballot(UNANSWERED) == b"ballot of b"


def test_nothing_is_given_for_an_attempt_after_its_withdrawal(
    ledger: Ledger, store: LedgerStore
) -> None:
    ledger.record_withdrawal(UNANSWERED, 1, b"never")
    for each in (ledger, Ledger.open(store)):
        assert_refused(Withdrawn, each, *everything_of(1))


def test_an_endorsed_list_is_not_answered_after_a_withdrawal(
    ledger: Ledger, store: LedgerStore
) -> None:
    said = endorse(ledger)
    ledger.record_withdrawal(UNANSWERED, 1, b"never")
    for each in (ledger, Ledger.open(store)):
        answering = everything_of(1)[2:]
        assert_refused(Withdrawn, each, *answering, lambda ledger: open_list(ledger, listed=SECOND))
        assert_refused(SecondList, each, lambda ledger: endorse(ledger, listed=SECOND))
        assert endorse(each) == said  # it left before the withdrawal; the same bytes tell no more
        assert each.find_endorsement(UNANSWERED, LIST) == said


def test_a_withdrawal_after_an_answer_is_refused(ledger: Ledger, store: LedgerStore) -> None:
    for each in (ledger, Ledger.open(store)):
        assert_refused(AnswerGiven, each, withdraw(ANSWERED))
        assert each.find_withdrawal(ANSWERED, 1) is None


def test_a_withdrawal_without_a_ballot_in_that_attempt_is_refused(ledger: Ledger) -> None:
    assert_refused(
        BallotUnknown,
        ledger,
        withdraw(UNKNOWN),
        withdraw(attempt=2),
    )
    assert ledger.find_withdrawal(UNKNOWN, 1) is None
    assert ledger.find_withdrawal(UNANSWERED, 2) is None


def test_a_withdrawal_from_an_attempt_that_is_over_is_found_but_not_made(ledger: Ledger) -> None:
    ledger.record_withdrawal(UNANSWERED, 1, b"never the first")
    redo(attempt=2)(ledger)
    redo(attempt=3)(ledger)
    assert ledger.record_withdrawal(UNANSWERED, 1, b"x") == b"never the first"
    assert ledger.find_withdrawal(UNANSWERED, 1) == b"never the first"
    assert ledger.find_withdrawal(UNANSWERED, 2) is None
    assert_refused(AttemptOver, ledger, withdraw(attempt=2))


@pytest.mark.parametrize("has_withdrawn", [False, True])
@pytest.mark.parametrize("has_endorsed", [False, True])
def test_a_batch_goes_on_with_a_new_ballot_at_no_new_charge(
    ledger: Ledger, store: LedgerStore, has_withdrawn: bool, has_endorsed: bool
) -> None:
    before = first_task(ledger).answered
    if has_endorsed:
        endorse(ledger)
    if has_withdrawn:
        ledger.record_withdrawal(UNANSWERED, 1, b"never")
    assert redo()(ledger) == b"ballot of attempt 2"
    for each in (ledger, Ledger.open(store)):
        assert each.find_ballot(UNANSWERED, 2) == b"ballot of attempt 2"
        assert each.find_endorsement(UNANSWERED, SECOND, attempt=2) is None
        assert each.current_attempt(UNANSWERED) == 2
        assert first_task(each).answered == before


def test_the_ballot_of_a_retry_is_the_first_one_for_ever(ledger: Ledger) -> None:
    redo()(ledger)
    before = ledger.head
    assert redo(ballot=b"fresh noise")(ledger) == b"ballot of attempt 2"
    endorse(ledger, 2)
    open_list(ledger, 2)
    assert redo(ballot=b"fresh noise")(ledger) == b"ballot of attempt 2"
    assert ledger.head.index == before.index + 2


def test_a_new_attempt_has_one_list_of_its_own(ledger: Ledger, store: LedgerStore) -> None:
    endorse(ledger, 1, LIST)
    redo()(ledger)
    endorse(ledger, 2, SECOND)
    said = open_list(ledger, 2, SECOND)
    for each in (ledger, Ledger.open(store)):
        assert_refused(SecondList, each, *everything_of(2))
        assert each.find_answer(UNANSWERED, SECOND, attempt=2) == said
    assert ledger.check() == ledger.head


def test_nothing_is_given_for_an_attempt_that_is_over(ledger: Ledger, store: LedgerStore) -> None:
    endorse(ledger)
    redo()(ledger)
    for each in (ledger, Ledger.open(store)):
        assert_refused(
            AttemptOver,
            each,
            *everything_of(1),
            find_ballot(1),
            vote_again,
            ask_to_vote_again,
        )


def test_nothing_is_given_for_an_attempt_without_a_ballot(ledger: Ledger) -> None:
    assert_refused(BallotUnknown, ledger, *everything_of(2))
    assert ledger.find_ballot(UNANSWERED, 2) is None
    assert ledger.current_attempt(UNANSWERED) == 1
    assert ledger.current_attempt(UNKNOWN) == 0


def test_a_retry_after_an_answer_is_refused(ledger: Ledger) -> None:
    assert_refused(AnswerGiven, ledger, redo(ANSWERED))
    redo()(ledger)
    endorse(ledger, 2)
    open_list(ledger, 2)
    assert_refused(AnswerGiven, ledger, redo(attempt=3), withdraw(attempt=2))


def test_a_retry_is_of_the_next_attempt_only(ledger: Ledger) -> None:
    assert_refused(BallotUnknown, ledger, redo(UNKNOWN), redo(attempt=3))
    redo(attempt=2)(ledger)
    redo(attempt=3)(ledger)
    assert_refused(AttemptOver, ledger, redo(attempt=2))
    with pytest.raises(InputError, match="attempt 2 or a later one"):
        redo(attempt=1)(ledger)


def test_no_ballot_is_in_two_attempts(ledger: Ledger) -> None:
    assert_refused(BallotReused, ledger, redo(ballot=b"ballot of b"))
    redo(attempt=2)(ledger)
    for earlier in (b"ballot of b", b"ballot of attempt 2"):
        assert_refused(BallotReused, ledger, redo(attempt=3, ballot=earlier))


def test_a_refund_gives_the_queries_of_the_batch_back_once(
    ledger: Ledger, store: LedgerStore
) -> None:
    assert (first_task(ledger).answered, first_task(ledger).left) == (6, 4)
    ledger.record_refund(UNANSWERED, evidence=SHOWN)
    for each in (ledger, Ledger.open(store)):
        assert (first_task(each).answered, first_task(each).left) == (3, 7)
        assert_refused(BatchRefunded, each, refund())
    assert ledger.check() == ledger.head


def test_what_a_refund_gave_back_can_be_spent_and_no_more(ledger: Ledger) -> None:
    ledger.record_refund(UNANSWERED, evidence=SHOWN)
    with pytest.raises(QueriesExhausted, match="7 left of 10"):
        answer(ledger, "d", queries=8)
    answer(ledger, "d", queries=7)
    with pytest.raises(QueriesExhausted, match="0 left"):
        answer(ledger, "e", queries=1)


def test_a_refund_does_not_free_the_reserved_budget(ledger: Ledger) -> None:
    before = ledger.summary().data[0].reserved
    ledger.record_refund(UNANSWERED, evidence=SHOWN)
    assert ledger.summary().data[0].reserved == before


@pytest.mark.parametrize("attempt", [1, 2])
def test_nothing_is_given_in_a_refunded_batch(
    ledger: Ledger, store: LedgerStore, attempt: int
) -> None:
    if attempt == 2:
        redo()(ledger)
    endorse(ledger, attempt)
    ledger.record_refund(UNANSWERED, evidence=SHOWN, attempt=attempt)
    for each in (ledger, Ledger.open(store)):
        assert_refused(
            BatchRefunded,
            each,
            *everything_of(1),
            *everything_of(attempt),
            *everything_of(attempt + 1),
            *(find_ballot(number) for number in (1, 2, 3)),
            *(redo(attempt=number) for number in (2, 3)),
            vote_again,
            ask_to_vote_again,
        )
        assert each.current_attempt(UNANSWERED) == attempt


def test_the_query_ids_of_a_refunded_batch_stay_used(ledger: Ledger) -> None:
    ledger.record_refund(UNANSWERED, evidence=SHOWN)
    ids = make_ids("b", 3)
    with pytest.raises(QueryReused, match="ask under a new query id") as caught:
        ledger.record_ballot(FIRST, make_id("batch", "d"), ids, b"x")
    assert "stored answer" not in str(caught.value)
    with pytest.raises(BatchChanged):
        ledger.record_ballot(FIRST, UNANSWERED, make_ids("d", 3), b"x")


def test_a_refund_after_an_answer_is_refused(ledger: Ledger) -> None:
    assert_refused(AnswerGiven, ledger, refund(ANSWERED))
    redo()(ledger)
    endorse(ledger, 2)
    open_list(ledger, 2)
    assert_refused(AnswerGiven, ledger, refund(attempt=2))
    assert first_task(ledger).answered == 6


def test_a_refund_for_an_attempt_that_is_over_is_refused(ledger: Ledger) -> None:
    """Its withdrawals are of the first ballot, and the second one may still be opened."""
    redo()(ledger)
    assert_refused(AttemptOver, ledger, refund())
    ledger.record_refund(UNANSWERED, evidence=SHOWN, attempt=2)
    assert first_task(ledger).answered == 3


def test_a_refund_without_a_ballot_in_that_attempt_is_refused(ledger: Ledger) -> None:
    assert_refused(
        BallotUnknown,
        ledger,
        refund(UNKNOWN),
        refund(attempt=2),
    )


def test_a_teacher_may_withdraw_from_what_was_refunded(ledger: Ledger) -> None:
    """It is true, and others may need it for their own refunds."""
    ledger.record_refund(UNANSWERED, evidence=SHOWN)
    assert ledger.record_withdrawal(UNANSWERED, 1, b"never") == b"never"
    assert ledger.find_withdrawal(UNANSWERED, 1) == b"never"
    assert_refused(BatchRefunded, ledger, *everything_of(1))
    assert ledger.check() == ledger.head


def test_the_summary_counts_refunded_and_redone_batches_once_each(
    ledger: Ledger, store: LedgerStore
) -> None:
    answer(ledger, "c", queries=2)
    redo(attempt=2)(ledger)
    redo(attempt=3)(ledger)
    ledger.record_refund(UNANSWERED, evidence=SHOWN, attempt=3)
    ledger.record_refund(UNKNOWN, evidence=SHOWN)
    for each in (ledger, Ledger.open(store)):
        found = first_task(each).to_json()
        assert (found["answered"], found["left"], found["batches"]) == (3, 7, 3)
        assert (found["refunded"], found["redone"]) == (2, 1)


@pytest.mark.parametrize("wrong", [b"", b"x" * 31, b"x" * 33, "x" * 32, None])
def test_evidence_must_be_a_hash(ledger: Ledger, wrong: bytes) -> None:
    with pytest.raises(InputError, match="evidence must be 32 bytes"):
        ledger.record_retry(UNANSWERED, 2, b"x", evidence=wrong)
    with pytest.raises(InputError, match="evidence must be 32 bytes"):
        ledger.record_refund(UNANSWERED, evidence=wrong)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, "1", None])
def test_an_attempt_must_be_a_whole_number(ledger: Ledger, wrong: int) -> None:
    givers = everything_of(wrong)[::2]
    for step in (withdraw(attempt=wrong), redo(attempt=wrong), refund(attempt=wrong), *givers):
        with pytest.raises(InputError, match="attempt must be a whole number"):
            step(ledger)
