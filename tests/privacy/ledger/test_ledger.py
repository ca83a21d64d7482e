"""Each rule of the ledger, on every kind of store."""

import unicodedata
from collections.abc import Callable

import pytest
from tests.privacy.ledger.ledgers import (
    DATA,
    FILLED,
    TEACHER,
    agree,
    answer,
    fill,
    make_id,
    make_ids,
)

from dppp.errors import (
    BallotUnknown,
    BatchChanged,
    BudgetExceeded,
    CapChanged,
    DataUnknown,
    InputError,
    LedgerRolledBack,
    ListNotEndorsed,
    QueriesExhausted,
    QueryReused,
    Refusal,
    SecondList,
    TaskChanged,
    TaskUnknown,
    WrongTeacher,
)
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import LedgerStore, MemoryStore

FIRST = make_id("task", "first")


def answered(ledger: Ledger) -> int:
    return ledger.summary().data[0].tasks[0].answered


def test_a_repeated_batch_gets_the_stored_ballot_and_costs_nothing(ledger: Ledger) -> None:
    fill(ledger)
    before = ledger.head
    assert answer(ledger, "a", ballot=b"fresh noise") == b"ballot of a"
    assert ledger.head == before
    assert answered(ledger) == 6


def test_the_same_queries_in_another_order_are_another_batch_and_refused(ledger: Ledger) -> None:
    fill(ledger)
    backwards = make_ids("a", 3)[::-1]
    with pytest.raises(BatchChanged, match="other queries"):
        ledger.record_ballot(FIRST, make_id("batch", "a"), backwards, b"x")
    with pytest.raises(QueryReused, match="send that batch again"):
        ledger.record_ballot(FIRST, make_id("batch", "backwards"), backwards, b"x")


def test_a_batch_id_answered_for_one_task_is_refused_for_another(ledger: Ledger) -> None:
    fill(ledger)
    ledger.accept(DATA, agree("second"))
    with pytest.raises(BatchChanged):
        ledger.record_ballot(
            make_id("task", "second"), make_id("batch", "a"), make_ids("a", 3), b"x"
        )


def test_one_query_of_another_batch_spoils_a_batch(ledger: Ledger) -> None:
    fill(ledger)
    mixed = [*make_ids("c", 2), make_ids("a", 1)[0]]
    with pytest.raises(QueryReused):
        ledger.record_ballot(FIRST, make_id("batch", "c"), mixed, b"x")
    assert answered(ledger) == 6


def test_a_query_twice_in_one_batch_is_refused(ledger: Ledger) -> None:
    fill(ledger)
    with pytest.raises(QueryReused, match="twice"):
        ledger.record_ballot(FIRST, make_id("batch", "c"), make_ids("c", 1) * 2, b"x")


def test_the_same_input_under_a_new_query_id_is_charged_anew(ledger: Ledger) -> None:
    fill(ledger)
    assert answer(ledger, "a, asked again", ballot=b"fresh noise") == b"fresh noise"
    assert answered(ledger) == 9


def test_more_queries_than_the_task_has_left_are_refused(ledger: Ledger) -> None:
    fill(ledger)
    with pytest.raises(QueriesExhausted, match="4 left of 10"):
        answer(ledger, "c", queries=5)
    answer(ledger, "c", queries=4)
    with pytest.raises(QueriesExhausted, match="0 left"):
        answer(ledger, "d", queries=1)


def test_a_task_that_was_never_accepted_is_refused(ledger: Ledger) -> None:
    fill(ledger)
    with pytest.raises(TaskUnknown, match="accept it first"):
        ledger.record_ballot(make_id("other"), make_id("batch", "c"), make_ids("c", 1), b"x")


def test_what_cannot_be_answered_is_refused_before_anything_is_computed(ledger: Ledger) -> None:
    fill(ledger)
    before = ledger.head
    ledger.check_can_answer(FIRST, make_id("batch", "a"), make_ids("a", 3))
    ledger.check_can_answer(FIRST, make_id("batch", "c"), make_ids("c", 4))
    with pytest.raises(QueriesExhausted):
        ledger.check_can_answer(FIRST, make_id("batch", "c"), make_ids("c", 5))
    with pytest.raises(QueryReused):
        ledger.check_can_answer(FIRST, make_id("batch", "c"), make_ids("a", 3))
    assert ledger.head == before


def test_a_ballot_is_found_only_after_it_was_recorded(ledger: Ledger) -> None:
    fill(ledger)
    assert ledger.find_ballot(make_id("batch", "a")) == b"ballot of a"
    assert ledger.find_ballot(make_id("batch", "c")) is None


def test_a_second_list_for_a_batch_is_refused(ledger: Ledger) -> None:
    fill(ledger)
    before, batch = ledger.head, make_id("batch", "a")
    for refuse in every_step_with(ledger, batch, make_id("second list")):
        with pytest.raises(SecondList, match="single votes"):
            refuse()
    assert ledger.head == before


def test_an_endorsement_and_an_answer_are_the_first_bytes_for_ever(ledger: Ledger) -> None:
    fill(ledger)
    before, batch, listed = ledger.head, make_id("batch", "a"), make_id("list")
    assert ledger.record_endorsement(batch, listed, b"another") == b"endorsement of a"
    assert ledger.find_endorsement(batch, listed) == b"endorsement of a"
    assert ledger.record_answer(batch, listed, b"another") == b"answer of a"
    assert ledger.find_answer(batch, listed) == b"answer of a"
    assert ledger.head == before


def test_an_answer_without_an_endorsement_is_refused(ledger: Ledger) -> None:
    fill(ledger)
    before, batch, listed = ledger.head, make_id("batch", "b"), make_id("list")
    assert ledger.find_endorsement(batch, listed) is None
    for _ in range(2):  # the first refusal must not count as the list of the batch
        with pytest.raises(ListNotEndorsed, match="send the list itself first"):
            ledger.record_answer(batch, listed, b"x")
        with pytest.raises(ListNotEndorsed):
            ledger.find_answer(batch, listed)
    assert ledger.head == before
    ledger.record_endorsement(batch, listed, b"endorsement of b")
    assert ledger.find_answer(batch, listed) is None
    assert ledger.record_answer(batch, listed, b"answer of b") == b"answer of b"


def test_an_answer_for_another_list_than_the_endorsed_one_is_refused(ledger: Ledger) -> None:
    fill(ledger)
    batch, listed = make_id("batch", "b"), make_id("list")
    ledger.record_endorsement(batch, listed, b"endorsement of b")
    for other in (make_id("second list"), batch):
        with pytest.raises(SecondList):
            ledger.record_answer(batch, other, b"x")
        with pytest.raises(SecondList):
            ledger.find_answer(batch, other)
    assert ledger.find_answer(batch, listed) is None


def test_a_batch_without_a_ballot_is_neither_endorsed_nor_answered(ledger: Ledger) -> None:
    fill(ledger)
    before = ledger.head
    for refuse in every_step_with(ledger, make_id("batch", "c"), make_id("list")):
        with pytest.raises(BallotUnknown):
            refuse()
    assert ledger.head == before


def every_step_with(ledger: Ledger, batch: bytes, listed: bytes) -> list[Callable[[], object]]:
    """All that can be asked of a ledger about a list."""
    return [
        lambda: ledger.record_endorsement(batch, listed, b"x"),
        lambda: ledger.find_endorsement(batch, listed),
        lambda: ledger.record_answer(batch, listed, b"x"),
        lambda: ledger.find_answer(batch, listed),
    ]


def test_an_endorsement_and_an_answer_cost_nothing(ledger: Ledger) -> None:
    fill(ledger)
    before = ledger.summary().data
    ledger.record_endorsement(make_id("batch", "b"), make_id("list"), b"endorsement of b")
    ledger.record_answer(make_id("batch", "b"), make_id("list"), b"answer of b")
    assert ledger.summary().data == before


def test_tasks_agreed_one_after_another_add_up_to_the_cap_and_no_further(ledger: Ledger) -> None:
    ledger.fix_cap(DATA, epsilon=0.3, delta=1e-5)
    for name in ("one", "two", "three"):
        ledger.accept(DATA, agree(name, epsilon=0.1))
    (data,) = ledger.summary().data
    assert data.reserved.epsilon == 0.3
    assert data.left.epsilon == 0
    with pytest.raises(BudgetExceeded, match="do not come back"):
        ledger.accept(DATA, agree("four", epsilon=0.1))


def test_delta_is_capped_as_epsilon_is(ledger: Ledger) -> None:
    ledger.fix_cap(DATA, epsilon=100, delta=2.5e-6)
    ledger.accept(DATA, agree("one"))
    ledger.accept(DATA, agree("two"))
    with pytest.raises(BudgetExceeded):
        ledger.accept(DATA, agree("three"))


def test_caps_of_different_data_do_not_mix(ledger: Ledger) -> None:
    ledger.fix_cap(DATA, epsilon=1, delta=1e-5)
    ledger.fix_cap("other", epsilon=1, delta=1e-5)
    ledger.accept(DATA, agree("one"))
    ledger.accept("other", agree("two"))
    with pytest.raises(BudgetExceeded):
        ledger.accept("other", agree("three"))


@pytest.mark.parametrize(
    "look_alike",
    [
        unicodedata.normalize("NFD", "données 2026"),
        "donn\N{LATIN SMALL LETTER E WITH ACUTE}es  2026",
        "données 2026 ",
        "Données 2026",
        "données \N{FULLWIDTH DIGIT TWO}026",
    ],
)
def test_a_data_id_that_reads_like_one_with_a_cap_gets_no_second_cap(
    ledger: Ledger, look_alike: str
) -> None:
    ledger.fix_cap("données 2026", epsilon=1, delta=1e-5)
    with pytest.raises(CapChanged, match="reads like"):
        ledger.fix_cap(look_alike, epsilon=1, delta=1e-5)
    ledger.fix_cap("données 2026", epsilon=1, delta=1e-5)
    ledger.fix_cap("données 2027", epsilon=1, delta=1e-5)
    assert len(ledger.summary().data) == 2


def test_the_same_agreement_twice_is_reserved_once(ledger: Ledger) -> None:
    ledger.fix_cap(DATA, epsilon=1, delta=1e-5)
    ledger.accept(DATA, agree("one", "two"))
    before = ledger.head
    ledger.accept(DATA, agree("one", "two"))
    assert ledger.head == before


@pytest.mark.parametrize(
    "changed",
    [
        agree("one", queries=11),
        agree("one", epsilon=1.5),
        agree("one", delta=2e-6),
        agree("one", "two"),
    ],
)
def test_a_task_id_with_other_content_is_refused(ledger: Ledger, changed: object) -> None:
    ledger.fix_cap(DATA, epsilon=9, delta=1e-3)
    ledger.accept(DATA, agree("one"))
    with pytest.raises(TaskChanged, match="new id"):
        ledger.accept(DATA, changed)  # type: ignore[arg-type]


def test_a_task_cannot_move_to_other_data(ledger: Ledger) -> None:
    for data_id in (DATA, "other"):
        ledger.fix_cap(data_id, epsilon=9, delta=1e-3)
    ledger.accept(DATA, agree("one"))
    with pytest.raises(TaskChanged):
        ledger.accept("other", agree("one"))


@pytest.mark.parametrize(("epsilon", "delta"), [(3, 1e-5), (1, 1e-5), (2, 1e-6), (2, 1e-4)])
def test_a_cap_never_changes_up_or_down(ledger: Ledger, epsilon: float, delta: float) -> None:
    ledger.fix_cap(DATA, epsilon=2, delta=1e-5)
    ledger.fix_cap(DATA, epsilon=2.0, delta=0.00001)
    with pytest.raises(CapChanged, match="share no record"):
        ledger.fix_cap(DATA, epsilon=epsilon, delta=delta)


def test_data_without_a_cap_are_refused(ledger: Ledger) -> None:
    with pytest.raises(DataUnknown, match="configuration"):
        ledger.accept(DATA, agree("one"))


def test_a_ledger_serves_one_teacher(ledger: Ledger, store: LedgerStore) -> None:
    assert Ledger.open(store, teacher=TEACHER).head == ledger.head
    with pytest.raises(WrongTeacher):
        Ledger.open(store, teacher="hospital-8")
    with pytest.raises(InputError, match="open it instead"):
        Ledger.create(store, teacher=TEACHER)


def test_opening_again_finds_everything(ledger: Ledger, store: LedgerStore) -> None:
    fill(ledger)
    again = Ledger.open(store)
    assert again.summary() == ledger.summary()
    assert answer(again, "b", ballot=b"x") == b"ballot of b"
    batch, listed = make_id("batch", "a"), make_id("list")
    assert again.find_endorsement(batch, listed) == b"endorsement of a"
    assert again.find_answer(batch, listed) == b"answer of a"
    for refuse in every_step_with(again, batch, make_id("second list")):
        with pytest.raises(SecondList):
            refuse()


def test_a_list_that_was_endorsed_before_a_restart_can_be_answered_after_it(
    ledger: Ledger, store: LedgerStore
) -> None:
    fill(ledger)
    batch, listed = make_id("batch", "b"), make_id("list")
    ledger.record_endorsement(batch, listed, b"endorsement of b")
    again = Ledger.open(store)
    with pytest.raises(SecondList):
        again.record_endorsement(batch, make_id("second list"), b"x")
    assert again.record_answer(batch, listed, b"answer of b") == b"answer of b"
    assert Ledger.open(store).find_answer(batch, listed) == b"answer of b"


def test_two_ledgers_on_one_store_see_each_other(ledger: Ledger, store: LedgerStore) -> None:
    other = Ledger.open(store)
    fill(ledger)
    assert answer(other, "a", ballot=b"x") == b"ballot of a"
    answer(other, "c", queries=4)
    ledger.record_endorsement(make_id("batch", "c"), make_id("list"), b"endorsement of c")
    with pytest.raises(SecondList):
        other.record_endorsement(make_id("batch", "c"), make_id("second list"), b"x")
    with pytest.raises(QueriesExhausted):
        answer(ledger, "d", queries=1)
    assert ledger.check() == other.head


def test_a_refusal_leaves_nothing_behind(ledger: Ledger) -> None:
    fill(ledger)
    before = ledger.head
    with pytest.raises(Refusal):
        answer(ledger, "c", queries=5)
    assert ledger.check() == ledger.head == before


@pytest.mark.parametrize("wrong", [b"", "text", None, b"x" * 65])
def test_an_id_must_be_bytes(ledger: Ledger, wrong: object) -> None:
    fill(ledger)
    with pytest.raises(InputError, match="batch id"):
        ledger.record_ballot(FIRST, wrong, make_ids("c", 1), b"x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="batch id"):
        ledger.record_endorsement(wrong, make_id("list"), b"x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="list hash"):
        ledger.record_answer(make_id("batch", "a"), wrong, b"x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="query id"):
        ledger.record_ballot(FIRST, make_id("batch", "c"), [wrong], b"x")  # type: ignore[list-item]


def test_an_empty_batch_is_refused(ledger: Ledger) -> None:
    fill(ledger)
    with pytest.raises(InputError, match="at least one query"):
        answer(ledger, "c", queries=0)


def test_the_summary_names_every_number(ledger: Ledger) -> None:
    fill(ledger)
    head = ledger.head
    assert ledger.summary().to_json() == {
        "teacher": TEACHER,
        "head": {"index": FILLED, "hash": head.hash.hex()},
        "data": [
            {
                "data_id": DATA,
                "cap": {"epsilon": 2.0, "delta": 1e-5},
                "reserved": {"epsilon": 1.0, "delta": 1e-6},
                "left": {"epsilon": 1.0, "delta": 9e-6},
                "tasks": [
                    {
                        "task_id": FIRST.hex(),
                        "queries": 10,
                        "answered": 6,
                        "left": 4,
                        "batches": 2,
                        "refunded": 0,
                        "redone": 0,
                        "epsilon": 1.0,
                        "delta": 1e-6,
                        "fixed_together": 1,
                        "succeeded_by": None,
                    }
                ],
            }
        ],
    }


@pytest.mark.parametrize("lost", [1, 2], ids=["the answer", "the endorsement"])
def test_an_endorsement_or_answer_that_vanishes_under_a_running_ledger_is_noticed(
    lost: int,
) -> None:
    """Else a second list would be endorsed after the store was put back."""
    store = MemoryStore()
    ledger = Ledger.create(store, teacher=TEACHER)
    fill(ledger)
    for refuse in every_step_with(ledger, make_id("batch", "a"), make_id("list")):
        refuse()
    del store._entries[-lost:]
    for refuse in every_step_with(ledger, make_id("batch", "a"), make_id("second list")):
        with pytest.raises(LedgerRolledBack):
            refuse()


def test_an_entry_that_vanishes_under_a_running_ledger_is_noticed_at_once() -> None:
    store = MemoryStore()
    ledger = Ledger.create(store, teacher=TEACHER)
    fill(ledger)
    assert ledger.find_ballot(make_id("batch", "a")) == ledger.find_ballot(make_id("batch", "a"))
    answer(ledger, "c")
    store._entries.pop()
    with pytest.raises(LedgerRolledBack):
        answer(ledger, "c")
