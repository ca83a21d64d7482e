"""No sequence of calls overspends: random calls against a model that is counted by hand."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.privacy.ledger.ledgers import STORES, TEACHER, agree, empty_store, make_id

from dppp.errors import BallotUnknown, ListNotEndorsed, Refusal, SecondList
from dppp.privacy.ledger.ledger import Ledger

NAMES = st.sampled_from("abcd")
DATA_IDS = st.sampled_from(("north", "south"))
QUERIES = st.lists(st.integers(0, 40), min_size=1, max_size=5)
CAP_TENTHS = 5


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
        self.charged: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self.lists: dict[tuple[str, tuple[int, ...]], tuple[int, bytes]] = {}
        self.answers: dict[tuple[str, tuple[int, ...]], bytes] = {}
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

    @rule(name=NAMES, queries=QUERIES)
    def answer(self, name: str, queries: list[int]) -> None:
        self.calls += 1
        key, fresh = (name, tuple(queries)), str(self.calls).encode()
        used = {query for _, others in self.charged for query in others}
        answered = sum(len(others) for task, others in self.charged if task == name)
        may = len(set(queries)) == len(queries) and not used & set(queries)
        may = may and answered + len(queries) <= self.limits.get(name, 0)
        try:
            sent = self.ledger.record_ballot(
                make_id("task", name), make_id(key), [make_id(query) for query in queries], fresh
            )
        except Refusal:
            assert key not in self.charged
            assert not may
            return
        assert may or key in self.charged
        assert sent == self.charged.setdefault(key, fresh)

    @precondition(lambda self: self.charged)
    @rule(data=st.data(), number=st.integers(0, 2))
    def endorse(self, data: st.DataObject, number: int) -> None:
        self.calls += 1
        key, fresh = data.draw(st.sampled_from(sorted(self.charged))), str(self.calls).encode()
        endorsed = self.lists.get(key)
        try:
            sent = self.ledger.record_endorsement(make_id(key), make_id("list", number), fresh)
        except SecondList:
            assert endorsed is not None
            assert endorsed[0] != number
            return
        assert self.lists.setdefault(key, (number, fresh)) == (number, sent)

    @precondition(lambda self: self.charged)
    @rule(data=st.data(), number=st.integers(0, 2))
    def open(self, data: st.DataObject, number: int) -> None:
        self.calls += 1
        key, fresh = data.draw(st.sampled_from(sorted(self.charged))), str(self.calls).encode()
        endorsed = self.lists.get(key)
        try:
            sent = self.ledger.record_answer(make_id(key), make_id("list", number), fresh)
        except ListNotEndorsed:
            assert endorsed is None
            return
        except SecondList:
            assert endorsed is not None
            assert endorsed[0] != number
            return
        assert endorsed is not None
        assert endorsed[0] == number
        assert self.answers.setdefault(key, fresh) == sent

    @rule(name=NAMES, queries=QUERIES, number=st.integers(0, 2))
    def open_without_a_ballot(self, name: str, queries: list[int], number: int) -> None:
        key = (name, tuple(queries))
        if key not in self.charged:
            for record in (self.ledger.record_endorsement, self.ledger.record_answer):
                with pytest.raises(BallotUnknown):
                    record(make_id(key), make_id("list", number), b"x")

    @rule()
    def restart(self) -> None:
        self.ledger = Ledger.open(self.store, teacher=TEACHER)

    @invariant()
    def what_was_said_of_a_list_is_kept(self) -> None:
        for key, (number, endorsement) in self.lists.items():
            ids = make_id(key), make_id("list", number)
            assert self.ledger.find_endorsement(*ids) == endorsement
            assert self.ledger.find_answer(*ids) == self.answers.get(key)

    @invariant()
    def nothing_is_overspent(self) -> None:
        for data in self.ledger.summary().data:
            assert data.reserved.fits_within(data.cap)
            assert data.reserved.epsilon == self.reserved[data.data_id] / 10
            for task in data.tasks:
                assert task.answered <= task.queries


@pytest.mark.parametrize("kind", STORES)
def test_no_sequence_of_calls_overspends(kind: str) -> None:
    machine: Any = type("Machine", (LedgerMachine,), {"kind": kind})
    machine.TestCase.settings = settings(
        max_examples=40 if kind == "memory" else 12,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    machine.TestCase().runTest()
