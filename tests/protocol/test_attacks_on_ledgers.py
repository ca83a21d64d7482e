"""Attacks on what a teacher remembers, and on the rule that it takes part whatever it thinks."""

import itertools
import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.protocol.attacker import Attacker, take_out
from tests.protocol.parties import (
    QUERIES,
    RecordedRandomness,
    RememberedHead,
    batch_of,
    entries_of,
    label_of,
    new_ledger,
    new_teacher,
    request_for,
    seeded,
    sent_to,
    set_up,
)
from tests.simulation.operations import CrashAtWrite
from tests.simulation.stores import Crashed, Fuse, FusedHead, FusedLedgerStore
from tests.small_federation import reply_of

from dppp.errors import LedgerRolledBack, QueriesExhausted, QueryReused, RequestExpired
from dppp.privacy.ledger.agreement import Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.teacher import Teacher
from dppp.protocol.votes import ask_model
from dppp.service.stores.ledgers import create_ledger, open_ledger

pytestmark = pytest.mark.attack

SETTING = (5, 1, 1)
RECORD = "return self._ledger.record_ballot(self.task.task_id, batch, query_ids, ballot)"


@pytest.fixture
def attacker() -> Attacker:
    return Attacker(set_up(*SETTING))


def _copy(store: MemoryStore) -> MemoryStore:
    """A backup."""
    copy = MemoryStore()
    with store.transaction() as held, copy.transaction() as new:
        for entry in held.read_entries(0):
            new.append(entry, held.read_content(entry.index))
    return copy


def _spend_again_from_a_backup(heads: RememberedHead | None) -> list[bytes]:
    """Two ballots for one batch: from the ledger, and from the ledger put back by a day."""
    setting, store = set_up(*SETTING), MemoryStore()
    ledger = new_ledger(setting, 1, store, heads)
    backup = _copy(store)
    request = sent_to(setting, request_for(setting, [7] * QUERIES), 1)
    ballots = [reply_of(new_teacher(setting, 1, ledger), request)]
    restored = Ledger.open(backup, heads=heads)
    source = seeded("after the rollback").randbytes
    ballots.append(reply_of(new_teacher(setting, 1, restored, randomness=source), request))
    return ballots


def test_a_budget_put_back_by_an_old_copy_is_noticed() -> None:
    with pytest.raises(LedgerRolledBack, match="older copy"):
        _spend_again_from_a_backup(RememberedHead())


def test_without_a_remembered_head_an_old_copy_would_spend_the_budget_twice() -> None:
    first, second = _spend_again_from_a_backup(None)
    assert first != second


def test_a_budget_put_back_under_a_running_teacher_is_noticed() -> None:
    """Even without a remembered head: the process remembers what it has read back."""
    setting, store = set_up(*SETTING), MemoryStore()
    teacher = new_teacher(setting, 1, new_ledger(setting, 1, store))
    backup = _copy(store)
    for _ in range(2):
        teacher.handle(sent_to(setting, request_for(setting, [7]), 1), now=0)
    store.__dict__.update(backup.__dict__)
    with pytest.raises(LedgerRolledBack, match="while in use"):
        teacher.handle(sent_to(setting, request_for(setting, [7]), 1), now=0)


@pytest.mark.parametrize("is_head_remembered", [True, False])
def test_restoring_an_old_file_is_noticed_by_the_remembered_head_alone(
    tmp_path: Path, is_head_remembered: bool
) -> None:
    setting, path, backup = set_up(*SETTING), tmp_path / "ledger", tmp_path / "backup"
    task = setting.task
    head_path = tmp_path / "head" if is_head_remembered else None
    name = task.teachers[0].name
    create_ledger(path, teacher=name, head_path=head_path)
    with open_ledger(path, teacher=name, head_path=head_path) as ledger:
        ledger.fix_cap(task.data_id, epsilon=task.epsilon, delta=task.delta)
        ledger.accept(task.data_id, Agreement.on_one(task.certificate, task_id=task.task_id))
    shutil.copy(path, backup)
    request = sent_to(setting, request_for(setting, [7] * QUERIES), 1)
    with open_ledger(path, teacher=name, head_path=head_path) as ledger:
        new_teacher(setting, 1, ledger).handle(request, now=0)
    for old in tmp_path.glob("ledger*"):
        old.unlink()
    shutil.copy(backup, path)

    def spend_again() -> None:
        with open_ledger(path, teacher=name, head_path=head_path) as ledger:
            new_teacher(setting, 1, ledger).handle(request, now=0)

    if is_head_remembered:
        with pytest.raises(LedgerRolledBack):
            spend_again()
    else:
        spend_again()


def _ballots_that_leave(*, is_durable: bool, write: int) -> tuple[list[bytes], RecordedRandomness]:
    """Ask, die in this write, restart, ask again and again: all that ever leaves."""
    setting, fuse = set_up(*SETTING), Fuse()
    store, heads = FusedLedgerStore(fuse), FusedHead(fuse)
    ledger = new_ledger(setting, 1, store, heads)
    fuse.light([CrashAtWrite(role=1, write=write, is_durable=is_durable, down_seconds=0)])
    randomness = RecordedRandomness(seeded("crash", write, is_durable))
    request = sent_to(setting, request_for(setting, [7]), 1)
    left = []
    for _ in range(3):
        try:
            teacher = new_teacher(setting, 1, ledger, randomness=randomness)
            left.append(reply_of(teacher, request))
        except Crashed:
            pass
        ledger = Ledger.open(store, heads=heads)
    return left, randomness


@pytest.mark.parametrize(
    ("write", "is_durable", "draws"),
    [(1, False, 2), (1, True, 1), (2, False, 1), (2, True, 1)],
    ids=["before the ballot is kept", "after it", "before its head is kept", "after that"],
)
def test_a_crash_before_sending_lets_one_ballot_leave_and_draws_anew_only_if_none_was_kept(
    write: int, is_durable: bool, draws: int
) -> None:
    left, randomness = _ballots_that_leave(is_durable=is_durable, write=write)
    assert len(left) == 2
    assert len(set(left)) == 1
    assert len(randomness.noise(set_up(*SETTING).task, 3)) == draws


def test_if_a_ballot_left_before_it_is_kept_a_restart_would_send_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_out(monkeypatch, Teacher._record, RECORD, "return ballot")
    left, _ = _ballots_that_leave(is_durable=True, write=99)
    assert len(set(left)) == len(left) == 3


CALLERS, TOGETHER = 1000, 20


def _ask_a_thousand_times_at_once(attacker: Attacker) -> set[bytes]:
    """The first twenty are held in the model until all twenty have found no stored ballot."""
    setting = attacker.setting
    barrier, entered = threading.Barrier(TOGETHER, timeout=60), itertools.count()

    def predict(rows: Any) -> list[int]:
        if next(entered) < TOGETHER:
            barrier.wait()
        return [0] * len(rows)

    lock, source = threading.Lock(), seeded("threads")

    def randomness(count: int) -> bytes:
        with lock:
            return source.randbytes(count)

    teacher = new_teacher(setting, 1, attacker.ledgers[1], predict=predict, randomness=randomness)
    request = sent_to(setting, request_for(setting, [7, 8]), 1)
    with ThreadPoolExecutor(100) as pool:
        return set(pool.map(lambda _: reply_of(teacher, request), range(CALLERS)))


def test_a_thousand_concurrent_repeats_get_one_ballot_and_one_charge(attacker: Attacker) -> None:
    assert len(_ask_a_thousand_times_at_once(attacker)) == 1
    assert attacker.answered(1) == 2


def test_if_the_first_ballot_did_not_win_repeats_would_get_several(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "record_ballot", lambda *parts: parts[-1])
    assert len(_ask_a_thousand_times_at_once(attacker)) >= TOGETHER


def _ask_twice(attacker: Attacker, nonces: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The same inputs twice, without teacher 1 the second time: difference, and its entries."""
    setting, values = attacker.setting, [7] * 16
    sums, ballots = [], {}
    for nonce, of in zip(nonces, ((1, 2, 3, 4, 5), (2, 3, 4, 5)), strict=True):
        request = request_for(setting, values, nonce=nonce)
        ballots = attacker.collect(request, of=of)
        opened = attacker.open(batch_of(setting, request), list(ballots.values()), of=of)
        sums.append(attacker.entries(opened, len(values)))
        if 1 in ballots:
            victim = entries_of(setting, ballots[1], len(values))
    return tuple(one - other for one, other in zip(*sums, strict=True)), victim


def test_the_same_input_asked_twice_without_a_teacher_shows_nothing_of_it(
    attacker: Attacker,
) -> None:
    """Both sums hold noise of their own, so the difference is hidden by nine shares, not by one."""
    difference, victim = _ask_twice(attacker, ("first", "second"))
    assert difference != victim
    for index in (2, 3, 4, 5):
        first, second = attacker.randomness[index].noise(attacker.setting.task, 48)
        assert first != second
    assert [attacker.answered(index) for index in attacker.honest] == [16, 32, 32, 32, 32]


def test_if_noise_were_the_same_for_the_same_input_the_difference_would_be_one_ballot(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in attacker.honest:
        monkeypatch.setattr(
            attacker.teachers[index],
            "_randomness",
            lambda count, index=index: seeded(index).randbytes(count),
        )
    difference, victim = _ask_twice(attacker, ("first", "second"))
    assert difference == victim


def test_the_old_query_in_a_new_batch_is_refused(attacker: Attacker) -> None:
    """So that nobody gets the old noise in a second list."""
    request = request_for(attacker.setting, [7, 8])
    attacker.collect(request)
    part = request_for(attacker.setting, [7])
    assert part.query_ids[0] == request.query_ids[0]
    with pytest.raises(QueryReused):
        attacker.collect(part)


def test_a_deadline_that_has_passed_charges_nothing(attacker: Attacker) -> None:
    request = request_for(attacker.setting, [7], deadline=100)
    with pytest.raises(RequestExpired):
        attacker.teachers[1].handle(sent_to(attacker.setting, request, 1), now=101)
    assert attacker.answered(1) == 0


def test_if_the_deadline_were_not_looked_at_a_late_request_would_be_charged(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(monkeypatch, Teacher.vote, "now > request.deadline", "False")
    request = request_for(attacker.setting, [7], deadline=100)
    attacker.teachers[1].handle(sent_to(attacker.setting, request, 1), now=101)
    assert attacker.answered(1) == 1


def test_no_query_is_answered_past_the_number_agreed_on(attacker: Attacker) -> None:
    attacker.collect(request_for(attacker.setting, [7] * QUERIES, nonce="all"), of=[1])
    with pytest.raises(QueriesExhausted):
        attacker.collect(request_for(attacker.setting, [7], nonce="one more"), of=[1])
    assert attacker.answered(1) == QUERIES


def _fails(_: Any) -> list[int]:
    raise MemoryError("the model's own trouble")


MODELS: dict[str, Any] = {
    "raises": _fails,
    "answers a class that is none": lambda rows: [3] * len(rows),
    "answers a negative class": lambda rows: [-1] * len(rows),
    "answers a truth value": lambda rows: [True] * len(rows),
    "answers text": lambda rows: ["a"] * len(rows),
    "answers a fraction": lambda rows: np.full(len(rows), 1.0),
    "answers too little": lambda _: [],
    "answers too much": lambda rows: [0] * (len(rows) + 1),
    "answers nothing at all": lambda _: None,
}


@pytest.mark.parametrize("how", MODELS)
def test_a_model_that(how: str, attacker: Attacker) -> None:
    """… casts an all-zero vote with noise, and takes part all the same."""
    setting, values = attacker.setting, (7, 8)
    notes: list[str] = []
    teacher = new_teacher(
        setting,
        1,
        attacker.ledgers[1],
        predict=MODELS[how],
        randomness=attacker.randomness[1],
        notes=notes,
    )
    request = request_for(setting, values)
    ballot = reply_of(teacher, sent_to(setting, request, 1))
    (noise,) = attacker.randomness[1].noise(setting.task, 6)
    assert entries_of(setting, ballot, 2) == noise
    assert attacker.answered(1) == 2
    assert notes
    attacker.teachers[1] = teacher
    ballots = attacker.collect(request)
    attacker.open(batch_of(setting, request), list(ballots.values()))


def test_a_model_that_fails_on_one_query_votes_on_the_others(attacker: Attacker) -> None:
    def predict(rows: Any) -> list[int]:
        if any(int(row[0]) == 8 for row in rows):
            raise ValueError("eight")
        return [label_of(1, row[0]) for row in rows]

    setting = attacker.setting
    teacher = new_teacher(
        setting, 1, attacker.ledgers[1], predict=predict, randomness=attacker.randomness[1]
    )
    ballot = reply_of(teacher, sent_to(setting, request_for(setting, (7, 8)), 1))
    (noise,) = attacker.randomness[1].noise(setting.task, 6)
    votes = [
        entry - share for entry, share in zip(entries_of(setting, ballot, 2), noise, strict=True)
    ]
    assert votes == [int(label == label_of(1, 7)) for label in range(3)] + [0, 0, 0]


def test_if_a_models_failure_got_out_taking_part_would_show_it(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(monkeypatch, ask_model, "except Exception as error", "except OSError as error")
    teacher = new_teacher(attacker.setting, 1, attacker.ledgers[1], predict=_fails)
    with pytest.raises(MemoryError):
        teacher.handle(sent_to(attacker.setting, request_for(attacker.setting, [7]), 1), now=0)
