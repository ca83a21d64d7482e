"""No sequence of calls overspends: random calls against a model that is counted by hand."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.privacy.ledger.ledgers import STORES, TEACHER, agree, empty_store, make_id

from dppp.errors import (
    AnswerGiven,
    AttemptOver,
    BallotReused,
    BallotUnknown,
    BatchRefunded,
    ListNotEndorsed,
    Refusal,
    SecondList,
    Withdrawn,
)
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.summary import TaskSummary

NAMES = st.sampled_from("abcd")
DATA_IDS = st.sampled_from(("north", "south"))
QUERIES = st.lists(st.integers(0, 40), min_size=1, max_size=5)
NUMBERS = st.sampled_from((0, 0, 0, 1, 2))
"""Which list is meant: mostly the same one."""

STEPS = st.sampled_from((0, 0, 0, -1, 1))
"""Which attempt is meant: mostly the current one."""

CAP_TENTHS = 5
EVIDENCE = make_id("withdrawals of t teachers")

Key = tuple[str, tuple[int, ...]]
Expected = type[Refusal] | None


class LedgerMachine(RuleBasedStateMachine):
    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        with ExitStack() as stack:  # closed at once if there is no such store here
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self.store = stack.enter_context(empty_store(self.kind, folder))
            self.resources = stack.pop_all()
        self.ledger = Ledger.create(self.store, teacher=TEACHER)
        self.reserved = {"north": 0, "south": 0}
        self.limits: dict[str, int] = {}
        self.ballots: dict[Key, list[bytes]] = {}  # one for each attempt
        self.lists: dict[tuple[Key, int], tuple[int, bytes]] = {}
        self.answers: dict[tuple[Key, int], bytes] = {}
        self.withdrawals: dict[tuple[Key, int], bytes] = {}
        self.refunded: set[Key] = set()
        self.calls = 0
        for data_id in self.reserved:
            self.ledger.fix_cap(data_id, epsilon=CAP_TENTHS / 10, delta=1e-3)

    def teardown(self) -> None:
        assert self.ledger.check() == self.ledger.head
        self.resources.close()

    @rule(data_id=DATA_IDS, name=NAMES, tenths=st.integers(1, 3), queries=st.integers(1, 8))
    def accept(self, data_id: str, name: str, tenths: int, queries: int) -> None:
        is_new = name not in self.limits
        fits = self.reserved[data_id] + tenths <= CAP_TENTHS
        try:
            self.ledger.accept(data_id, agree(name, queries=queries, epsilon=tenths / 10))
        except Refusal:
            assert not (is_new and fits)
            return
        if is_new:
            assert fits
            self.reserved[data_id] += tenths
            self.limits[name] = queries

    def fresh(self) -> bytes:
        """Bytes that were never given before."""
        self.calls += 1
        return str(self.calls).encode()

    def draw_attempt(self, data: st.DataObject, step: int) -> tuple[Key, int]:
        key = data.draw(st.sampled_from(sorted(self.ballots)))
        return key, max(1, len(self.ballots[key]) + step)

    def answered(self, name: str) -> int:
        return sum(
            len(key[1]) for key in self.ballots if key[0] == name and key not in self.refunded
        )

    def refuse_attempt(self, key: Key, attempt: int, *, newest: int) -> Expected:
        """Why nothing is given for this attempt, when `newest` is the last that may be."""
        if key in self.refunded:
            return BatchRefunded
        if attempt < len(self.ballots[key]):
            return AttemptOver
        return BallotUnknown if attempt > newest else None

    def refuse_list(self, key: Key, attempt: int, number: int) -> Expected:
        endorsed = self.lists.get((key, attempt))
        if endorsed is None:
            return Withdrawn if (key, attempt) in self.withdrawals else None
        return SecondList if endorsed[0] != number else None

    def try_to(self, record: Callable[[], bytes | None], expected: Expected) -> bytes | None:
        """What was returned; None after the refusal that was expected."""
        if expected is None:
            return record()
        with pytest.raises(Refusal) as caught:
            record()
        assert caught.type is expected
        return None

    @rule(name=NAMES, queries=QUERIES)
    def answer(self, name: str, queries: list[int]) -> None:
        key, fresh = (name, tuple(queries)), self.fresh()
        used = {query for _, others in self.ballots for query in others}
        may = len(set(queries)) == len(queries) and not used & set(queries)
        may = may and self.answered(name) + len(queries) <= self.limits.get(name, 0)
        if key in self.ballots:
            may = self.refuse_attempt(key, 1, newest=1) is None
        try:
            sent = self.ledger.record_ballot(
                make_id("task", name), make_id(key), [make_id(query) for query in queries], fresh
            )
        except Refusal:
            assert not may
            return
        assert may
        assert [sent] == self.ballots.setdefault(key, [fresh])

    @initialize(batches=st.integers(0, 2))
    def begin(self, batches: int) -> None:
        """Often with ballots, so that there is something to endorse, open and withdraw from."""
        if batches:
            self.accept("north", "a", 1, 8)
        for number in range(batches):
            self.answer("a", [100 + 2 * number, 101 + 2 * number])

    @precondition(lambda self: self.ballots)
    @rule(data=st.data(), step=STEPS, number=NUMBERS)
    def endorse(self, data: st.DataObject, step: int, number: int) -> None:
        (key, attempt), fresh = self.draw_attempt(data, step), self.fresh()
        expected = self.refuse_attempt(key, attempt, newest=len(self.ballots[key]))
        sent = self.try_to(
            lambda: self.ledger.record_endorsement(
                make_id(key), make_id("list", number), fresh, attempt=attempt
            ),
            expected or self.refuse_list(key, attempt, number),
        )
        if sent is not None:
            assert self.lists.setdefault((key, attempt), (number, fresh)) == (number, sent)

    @precondition(lambda self: self.ballots)
    @rule(data=st.data(), step=STEPS, number=NUMBERS)
    def open(self, data: st.DataObject, step: int, number: int) -> None:
        (key, attempt), fresh = self.draw_attempt(data, step), self.fresh()
        expected = self.refuse_attempt(key, attempt, newest=len(self.ballots[key]))
        if (key, attempt) in self.withdrawals:
            expected = expected or Withdrawn
        elif (key, attempt) not in self.lists:
            expected = expected or ListNotEndorsed
        sent = self.try_to(
            lambda: self.ledger.record_answer(
                make_id(key), make_id("list", number), fresh, attempt=attempt
            ),
            expected or self.refuse_list(key, attempt, number),
        )
        if sent is not None:
            assert self.answers.setdefault((key, attempt), fresh) == sent

    @precondition(lambda self: self.ballots)
    @rule(data=st.data(), number=NUMBERS)
    def endorse_and_open(self, data: st.DataObject, number: int) -> None:
        self.endorse(data, 0, number)
        self.open(data, 0, number)

    @precondition(lambda self: self.ballots)
    @rule(data=st.data(), step=STEPS)
    def withdraw(self, data: st.DataObject, step: int) -> None:
        (key, attempt), fresh = self.draw_attempt(data, step), self.fresh()
        expected: Expected = None
        if (key, attempt) not in self.withdrawals:
            current = len(self.ballots[key])
            expected = {-1: AttemptOver, 1: BallotUnknown}.get(attempt - current)
            if (key, current) in self.answers:
                expected = expected or AnswerGiven
        sent = self.try_to(
            lambda: self.ledger.record_withdrawal(make_id(key), attempt, fresh), expected
        )
        if sent is not None:
            assert self.withdrawals.setdefault((key, attempt), fresh) == sent

    @precondition(lambda self: self.ballots)
    @rule(data=st.data(), step=st.sampled_from((1, 1, 1, 0, 2)), is_reused=st.booleans())
    def retry(self, data: st.DataObject, step: int, is_reused: bool) -> None:
        key, attempt = self.draw_attempt(data, step)
        ballots = self.ballots[key]
        attempt = max(2, attempt)
        ballot = data.draw(st.sampled_from(ballots)) if is_reused else self.fresh()
        expected = self.refuse_attempt(key, attempt, newest=len(ballots) + 1)
        if attempt > len(ballots):
            if (key, len(ballots)) in self.answers:
                expected = expected or AnswerGiven
            expected = expected or (BallotReused if is_reused else None)
        sent = self.try_to(
            lambda: self.ledger.record_retry(make_id(key), attempt, ballot, evidence=EVIDENCE),
            expected,
        )
        if sent is not None:
            ballots += [ballot] * (attempt > len(ballots))
            assert sent == ballots[attempt - 1]

    @precondition(lambda self: self.ballots)
    @rule(data=st.data(), step=STEPS)
    def refund(self, data: st.DataObject, step: int) -> None:
        key, attempt = self.draw_attempt(data, step)
        expected = self.refuse_attempt(key, attempt, newest=len(self.ballots[key]))
        if (key, attempt) in self.answers:
            expected = expected or AnswerGiven
        self.try_to(
            lambda: self.ledger.record_refund(make_id(key), evidence=EVIDENCE, attempt=attempt),
            expected,
        )
        if expected is None:
            self.refunded.add(key)

    @rule(name=NAMES, queries=QUERIES, number=NUMBERS)
    def take_part_without_a_ballot(self, name: str, queries: list[int], number: int) -> None:
        key = (name, tuple(queries))
        if key not in self.ballots:
            ids, ledger = (make_id(key), make_id("list", number)), self.ledger
            for record in (
                lambda: ledger.record_endorsement(*ids, b"x"),
                lambda: ledger.record_answer(*ids, b"x"),
                lambda: ledger.record_withdrawal(ids[0], 1, b"x"),
                lambda: ledger.record_retry(ids[0], 2, b"x", evidence=EVIDENCE),
                lambda: ledger.record_refund(ids[0], evidence=EVIDENCE),
            ):
                self.try_to(record, BallotUnknown)

    @rule()
    def restart(self) -> None:
        self.ledger = Ledger.open(self.store, teacher=TEACHER)

    @invariant()
    def what_was_said_in_the_current_attempt_is_kept(self) -> None:
        for key, ballots in self.ballots.items():
            now = len(ballots)
            assert self.ledger.current_attempt(make_id(key)) == now
            if key in self.refunded:
                continue
            assert self.ledger.find_ballot(make_id(key), now) == ballots[-1]
            if (key, now) not in self.lists:
                continue
            number, endorsement = self.lists[key, now]
            ids = make_id(key), make_id("list", number)
            assert self.ledger.find_endorsement(*ids, attempt=now) == endorsement
            if (key, now) not in self.withdrawals:
                answer = self.ledger.find_answer(*ids, attempt=now)
                assert answer == self.answers.get((key, now))

    @invariant()
    def withdrawals_are_kept_and_none_of_them_has_an_answer(self) -> None:
        for (key, attempt), message in self.withdrawals.items():
            assert self.ledger.find_withdrawal(make_id(key), attempt) == message
        assert not self.withdrawals.keys() & self.answers.keys()

    @invariant()
    def no_ballot_is_in_two_lists_and_none_that_may_be_opened_is_free(self) -> None:
        for ballots in self.ballots.values():
            assert len(set(ballots)) == len(ballots)
        for key, attempt in self.answers:
            assert key not in self.refunded
            assert attempt == len(self.ballots[key])

    @invariant()
    def nothing_is_overspent(self) -> None:
        for data in self.ledger.summary().data:
            assert data.reserved.fits_within(data.cap)
            assert data.reserved.epsilon == self.reserved[data.data_id] / 10
            for task in data.tasks:
                self.check_counts(task)

    def check_counts(self, task: TaskSummary) -> None:
        (name,) = (name for name in self.limits if make_id("task", name) == task.task_id)
        batches = {key: ballots for key, ballots in self.ballots.items() if key[0] == name}
        assert task.answered == self.answered(name) <= task.queries == self.limits[name]
        assert task.batches == len(batches)
        assert task.refunded == len(self.refunded & batches.keys())
        assert task.redone == sum(len(ballots) > 1 for ballots in batches.values())


@pytest.mark.parametrize("kind", STORES)
def test_no_sequence_of_calls_overspends(kind: str) -> None:
    machine: Any = type("Machine", (LedgerMachine,), {"kind": kind})
    machine.TestCase.settings = settings(
        max_examples=150 if kind == "memory" else 12,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    machine.TestCase().runTest()
