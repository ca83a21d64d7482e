"""A task whose place another takes: what is left of its reservation, and nothing more."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.ledger.ledgers import DATA, PLENTY, TEACHER, agree, answer, fill, make_id

from dppp.errors import (
    InputError,
    LedgerDamaged,
    QueriesExhausted,
    QueryReused,
    TaskChanged,
    TaskSucceeded,
    TaskUnknown,
    UncertifiedError,
)
from dppp.privacy.accounting import Spending, total_delta
from dppp.privacy.change import Change
from dppp.privacy.ledger.agreement import AgreedTask, Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import MemoryStore
from dppp.privacy.noise import (
    Binomial,
    DiscreteGaussian,
    Noise,
    Polya,
    Skellam,
    has_no_less,
    in_shares,
)
from dppp.service.stores.ledgers import create_ledger, open_ledger

OLD, NEW = make_id("task", "first"), make_id("task", "new")


def successor(queries: int = 4, noise: Noise = PLENTY, classes: int = 2) -> AgreedTask:
    return AgreedTask(task_id=NEW, noise=noise, queries=queries, classes=classes)


def ask(ledger: Ledger, task_id: bytes, batch: str, queries: int) -> bytes:
    ids = [make_id("query", batch, number) for number in range(queries)]
    return ledger.record_ballot(task_id, make_id("batch", batch), ids, b"ballot")


def test_what_was_spent_stays_spent_and_what_is_left_moves_at_no_price(ledger: Ledger) -> None:
    fill(ledger)  # 6 of 10 queries
    reserved = ledger.summary().data[0].reserved
    ledger.succeed(OLD, successor())
    data = ledger.summary().data[0]
    assert data.reserved == reserved
    assert [(each.answered, each.left) for each in data.tasks] == [(6, 0), (0, 4)]
    assert data.tasks[0].successor_id == NEW
    ask(ledger, NEW, "c", 4)
    with pytest.raises(QueriesExhausted):
        ask(ledger, NEW, "d", 1)


def test_a_succeeded_task_is_charged_no_more_but_what_was_charged_may_be_opened(
    ledger: Ledger,
) -> None:
    fill(ledger)
    ledger.succeed(OLD, successor())
    with pytest.raises(TaskSucceeded, match="in its place"):
        ask(ledger, OLD, "c", 1)
    with pytest.raises(TaskSucceeded):
        ledger.check_can_answer(OLD, make_id("batch", "c"), [make_id("query", "c")])
    assert answer(ledger, "b") == b"ballot of b"
    ledger.record_endorsement(make_id("batch", "b"), make_id("list b"), b"endorsement of b")
    ledger.record_answer(make_id("batch", "b"), make_id("list b"), b"answer of b")


def test_a_refund_after_the_change_gives_the_old_task_nothing_to_spend(ledger: Ledger) -> None:
    fill(ledger)
    ledger.succeed(OLD, successor())
    ledger.record_refund(make_id("batch", "b"), evidence=bytes(32))
    assert ledger.summary().data[0].tasks[0].left == 0
    with pytest.raises(TaskSucceeded):
        ask(ledger, OLD, "c", 1)


def test_the_same_change_again_changes_nothing_and_another_one_is_refused(ledger: Ledger) -> None:
    fill(ledger)
    ledger.succeed(OLD, successor())
    head = ledger.head
    ledger.succeed(OLD, successor())
    assert ledger.head == head
    with pytest.raises(TaskSucceeded, match="no second successor"):
        ledger.succeed(OLD, replace(successor(), task_id=make_id("task", "other")))
    with pytest.raises(TaskSucceeded, match="no second successor"):
        ledger.succeed(OLD, successor(queries=3))


def test_a_successor_has_a_successor_in_turn_and_all_three_share_one_reservation(
    ledger: Ledger,
) -> None:
    fill(ledger)
    ledger.succeed(OLD, successor())
    ask(ledger, NEW, "c", 3)
    third = replace(successor(queries=1), task_id=make_id("task", "third"))
    ledger.succeed(NEW, third)
    ask(ledger, third.task_id, "d", 1)
    assert ledger.summary().data[0].reserved == agree("first").reservation(DATA).budget
    with pytest.raises(TaskSucceeded):
        ask(ledger, NEW, "e", 1)


@pytest.mark.parametrize(
    ("wrong", "error", "reason"),
    [
        (successor(queries=5), QueriesExhausted, "has 4 left of 10"),
        (successor(classes=3), TaskChanged, "as many classes"),
        (replace(successor(), change=Change(moved=1, shift=3)), TaskChanged, "asks as the task"),
        (successor(noise=Polya(shape=0.99, ratio=0.999)), TaskChanged, "does not hold all"),
        (successor(noise=Skellam(share_variance=1e6)), TaskChanged, "does not hold all"),
    ],
)
def test_more_than_what_is_left_or_less_noise_than_was_paid_for_is_refused(
    ledger: Ledger, wrong: AgreedTask, error: type[Exception], reason: str
) -> None:
    fill(ledger)
    head = ledger.head
    with pytest.raises(error, match=reason):
        ledger.succeed(OLD, wrong)
    assert ledger.head == head


def test_a_task_with_a_price_of_its_own_takes_nobodys_place(ledger: Ledger) -> None:
    fill(ledger)
    ledger.accept(DATA, agree("new"))
    with pytest.raises(TaskChanged, match="price of its own"):
        ledger.succeed(OLD, successor())
    with pytest.raises(TaskUnknown):
        ledger.succeed(make_id("task", "never"), successor())


def test_a_query_of_the_old_task_is_not_asked_again_in_the_new_one(ledger: Ledger) -> None:
    fill(ledger)
    ledger.succeed(OLD, successor())
    with pytest.raises(QueryReused):
        ledger.record_ballot(NEW, make_id("batch", "z"), [make_id("query", "a", 0)], b"x")


def test_shares_of_many_more_teachers_must_be_covered_by_the_reserved_delta() -> None:
    """Each share is off by a little: a δ that leaves no room for more of them is not enough."""
    noise = Skellam(share_variance=200.0, shares=2)
    task = AgreedTask(task_id=OLD, noise=noise, queries=1, classes=2)
    ledger = Ledger.create(MemoryStore(), teacher=TEACHER)
    needed = total_delta([Spending(noise=noise, queries=1)], 0.5)
    ledger.fix_cap(DATA, epsilon=1, delta=0.5)
    agreement = Agreement(tasks=(task,), epsilon=0.5, delta=needed * (1 + 1e-9))
    ledger.accept(DATA, agreement)
    same = replace(task, task_id=NEW, noise=Skellam(share_variance=1.0, shares=10**40))
    assert has_no_less(same.noise, noise)
    with pytest.raises(UncertifiedError, match="more than the"):
        ledger.succeed(OLD, same)
    ledger.succeed(OLD, replace(same, noise=noise))


def test_a_succession_outlives_its_process_and_a_forged_one_is_damage(tmp_path: Path) -> None:
    place, head = tmp_path / "ledger.db", tmp_path / "head.json"
    create_ledger(place, teacher=TEACHER, head_path=head)
    with open_ledger(place, teacher=TEACHER, head_path=head) as ledger:
        fill(ledger)
        ledger.succeed(OLD, successor())
    with open_ledger(place, teacher=TEACHER, head_path=head) as ledger:
        assert ledger.check() == ledger.head
        with pytest.raises(TaskSucceeded):
            ask(ledger, OLD, "c", 1)


def test_a_stored_succession_that_gives_more_than_was_left_is_damage() -> None:
    from tests.privacy.ledger.test_records import ledger_of

    from dppp.privacy.ledger.records import Cap, LedgerStart, Record, ReservedTask, Succession
    from dppp.privacy.ledger.records import encode_record as written

    reservation = agree("first").reservation(DATA)
    more = ReservedTask(task_id=NEW, queries=11, classes=2, noise=reservation.tasks[0].noise)
    records: list[Record] = [
        LedgerStart(teacher=TEACHER),
        Cap(data_id=DATA, budget=reservation.budget),
        reservation,
        Succession(task_id=OLD, successor=more),
    ]
    with pytest.raises(LedgerDamaged, match="has 10 left of 10"):
        Ledger.open(ledger_of(*[written(each) for each in records]))


@given(
    variance=st.floats(min_value=1e-3, max_value=1e6),
    shares=st.integers(1, 300),
    others=st.integers(1, 300),
)
def test_noise_in_other_shares_holds_all_of_it(variance: float, shares: int, others: int) -> None:
    for noise in (
        Skellam(share_variance=variance, shares=shares),
        Polya(shape=variance, ratio=0.9, shares=shares),
        Binomial(total_tosses=max(1, int(variance)) * shares, shares=shares),
    ):
        again = in_shares(noise, others)
        assert again.shares == others
        assert again.has_equal_shares
        assert has_no_less(again, noise)
        assert again.variance <= noise.variance * (1 + 1e-12) + others


def test_a_discrete_gaussian_is_kept_as_it_is_or_not_at_all() -> None:
    noise = DiscreteGaussian(share_sigma=3.0, shares=4)
    assert in_shares(noise, 4) == noise
    with pytest.raises(InputError, match="another family"):
        in_shares(noise, 5)
    assert not has_no_less(DiscreteGaussian(share_sigma=30.0, shares=4), noise)
    assert not has_no_less(Polya(shape=9.0, ratio=0.8), Polya(shape=1.0, ratio=0.9))
