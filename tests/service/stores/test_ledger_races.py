"""Many at once: one charge for each batch, and everybody gets the same bytes."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.privacy.ledger.ledgers import DATA, STORES, TEACHER, agree, answer, empty_store, make_id
from tests.service.stores.ledger_files import make_files
from tests.service.stores.ledger_process import WITHDRAWER, find

from dppp.errors import (
    AnswerGiven,
    AttemptOver,
    BatchRefunded,
    ListNotEndorsed,
    QueriesExhausted,
    Refusal,
    SecondList,
    Withdrawn,
)
from dppp.privacy.ledger.ledger import Ledger
from dppp.service.stores.ledgers import open_ledger

THREADS = 32
ROUNDS = {"memory": 300, "sqlite": 100, "postgres": 30}

EVIDENCE = make_id("withdrawals of t teachers")
ENDS: dict[type[Refusal], Callable[[Ledger, bytes], object]] = {
    Withdrawn: lambda ledger, batch: ledger.record_withdrawal(batch, 1, b"never"),
    AttemptOver: lambda ledger, batch: ledger.record_retry(batch, 2, b"new", evidence=EVIDENCE),
    BatchRefunded: lambda ledger, batch: ledger.record_refund(batch, evidence=EVIDENCE),
}
"""What rules an answer out, by the refusal of the answer."""


@pytest.mark.parametrize("kind", STORES)
def test_a_thousand_concurrent_repeats_are_one_charge(kind: str, tmp_path: Path) -> None:
    with empty_store(kind, tmp_path) as store:
        ledger = Ledger.create(store, teacher=TEACHER)
        ledger.fix_cap(DATA, epsilon=1, delta=1e-6)
        ledger.accept(DATA, agree("first"))
        start = threading.Barrier(THREADS)

        def repeat(caller: int) -> bytes:
            if caller < THREADS:
                start.wait()
            return answer(ledger, "a", ballot=f"noise of caller {caller}".encode())

        with ThreadPoolExecutor(THREADS) as pool:
            sent = set(pool.map(repeat, range(1_024)))
        assert len(sent) == 1
        assert ledger.summary().data[0].tasks[0].answered == 3
        assert ledger.head.index == 3
        assert ledger.check() == ledger.head


@pytest.mark.parametrize("kind", STORES)
def test_many_who_race_for_the_last_queries_never_overspend(kind: str, tmp_path: Path) -> None:
    with empty_store(kind, tmp_path) as store:
        ledgers = [Ledger.create(store, teacher=TEACHER)]
        ledgers[0].fix_cap(DATA, epsilon=1, delta=1e-6)
        ledgers[0].accept(DATA, agree("first", queries=100))
        ledgers += [Ledger.open(store) for _ in range(3)]

        def try_to_answer(caller: int) -> bool:
            try:
                answer(ledgers[caller % 4], f"batch {caller}")
            except QueriesExhausted:
                return False
            return True

        with ThreadPoolExecutor(THREADS) as pool:
            successes = sum(pool.map(try_to_answer, range(200)))
        assert successes == 33
        for ledger in ledgers:
            assert ledger.summary().data[0].tasks[0].answered == 99


@pytest.mark.parametrize("kind", STORES[1:])
def test_processes_that_race_for_the_same_batches_send_the_same_bytes(
    kind: str, tmp_path: Path
) -> None:
    files = make_files(tmp_path, kind=kind, queries=100)
    commands = [files.command(name=name, first=0, count=50, size=3_000) for name in "abcd"]
    processes = [files.start(command) for command in commands]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outputs
    said = Counter(line for out, _ in outputs for line in out.splitlines())
    assert set(said.values()) == {4}
    assert len(said) == 3 * 50
    with open_ledger(files.location, head_path=files.head_path) as ledger:
        assert ledger.summary().data[0].tasks[0].answered == 100
        assert ledger.check().index == 2 + 150


@pytest.mark.parametrize("kind", STORES[1:])
def test_a_batch_that_another_thread_answers_is_not_charged_by_its_list(
    kind: str, tmp_path: Path
) -> None:
    with empty_store(kind, tmp_path) as store:
        ledger = Ledger.create(store, teacher=TEACHER)
        ledger.fix_cap(DATA, epsilon=1, delta=1e-6)
        ledger.accept(DATA, agree("first"))
        answer(ledger, "a")

        def serve(caller: int) -> tuple[bytes, bytes]:
            ids, name = (make_id("batch", "a"), make_id("list")), f"caller {caller}".encode()
            return ledger.record_endorsement(*ids, name), ledger.record_answer(*ids, name)

        with ThreadPoolExecutor(THREADS) as pool:
            assert len(set(pool.map(serve, range(200)))) == 1
        assert ledger.summary().data[0].tasks[0].answered == 3


@pytest.mark.parametrize("kind", STORES)
def test_of_many_lists_that_race_for_a_batch_one_is_endorsed_and_answered(
    kind: str, tmp_path: Path
) -> None:
    with empty_store(kind, tmp_path) as store:
        ledgers = [Ledger.create(store, teacher=TEACHER)]
        ledgers[0].fix_cap(DATA, epsilon=1, delta=1e-6)
        ledgers[0].accept(DATA, agree("first"))
        answer(ledgers[0], "a")
        ledgers += [Ledger.open(store) for _ in range(3)]

        def serve(caller: int) -> int | None:
            ledger, ids = ledgers[caller % 4], (make_id("batch", "a"), make_id("list", caller % 8))
            steps = [ledger.record_endorsement, ledger.record_answer]
            for record in steps if caller % 3 else steps[::-1]:
                try:
                    record(*ids, b"said")
                except (SecondList, ListNotEndorsed):
                    return None
            return caller % 8

        with ThreadPoolExecutor(THREADS) as pool:
            served = set(pool.map(serve, range(200)))
        assert len(served - {None}) == 1
        assert ledgers[0].check().index == 5


@pytest.mark.parametrize("refusal", ENDS)
@pytest.mark.parametrize("kind", STORES)
def test_of_an_answer_and_what_rules_it_out_exactly_one_is_kept(
    kind: str, refusal: type[Refusal], tmp_path: Path
) -> None:
    with empty_store(kind, tmp_path) as store:
        ledgers = [Ledger.create(store, teacher=TEACHER), Ledger.open(store)]
        ledgers[0].fix_cap(DATA, epsilon=1, delta=1e-6)
        ledgers[0].accept(DATA, agree("first", queries=900))
        start = threading.Barrier(2)

        def race(ledger: Ledger, give: Callable[[Ledger, bytes], object], batch: bytes) -> str:
            start.wait()
            try:
                give(ledger, batch)
            except (AnswerGiven, refusal) as error:
                return type(error).__name__
            return "kept"

        outcomes = {("kept", "AnswerGiven"), (refusal.__name__, "kept")}
        with ThreadPoolExecutor(2) as pool:
            for number in range(ROUNDS[kind]):
                answer(ledgers[number % 2], str(number))
                batch = make_id("batch", str(number))
                ledgers[0].record_endorsement(batch, make_id("list"), b"endorsement")
                answering = pool.submit(race, ledgers[0], open_list, batch)
                ending = pool.submit(race, ledgers[1], ENDS[refusal], batch)
                assert (answering.result(), ending.result()) in outcomes
        assert ledgers[0].check().index == 2 + 3 * ROUNDS[kind]


def open_list(ledger: Ledger, batch: bytes) -> bytes:
    return ledger.record_answer(batch, make_id("list"), b"answer")


@pytest.mark.parametrize("kind", STORES[1:])
def test_of_processes_that_answer_and_withdraw_one_is_heard_for_each_batch(
    kind: str, tmp_path: Path
) -> None:
    files = make_files(tmp_path, kind=kind, queries=100)
    names = ("a", WITHDRAWER)
    commands = [files.command(name=name, first=0, count=50, size=3_000) for name in names]
    processes = [files.start(command) for command in commands]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 2, outputs
    said = [line.split() for out, _ in outputs for line in out.splitlines()]
    with open_ledger(files.location, head_path=files.head_path) as ledger:
        for number in range(50):
            ends = {what for what, of, _ in said if of == str(number)} - {"ballot", "endorsement"}
            assert ends in ({"answer", "refused-withdrawal"}, {"withdrawal", "refused-answer"})
            is_withdrawn = "withdrawal" in ends
            assert (find(ledger, "withdrawal", number) is not None) is is_withdrawn
        assert ledger.check().index == 2 + 3 * 50
