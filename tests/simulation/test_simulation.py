"""Random faults within bounds, and crashes at every point; all roles are the real ones.

DPPP_SOAK_QUERIES=10000 pytest -n auto tests/simulation/test_simulation.py -k any_faults
DPPP_SIMULATION_SEED=17 pytest tests/simulation/test_simulation.py -k any_faults
"""

import itertools
import os
from collections.abc import Callable

import pytest
import tests.simulation.operations
from tests.simulation.invariants import Broken, simulate
from tests.simulation.operations import (
    AGGREGATOR,
    CrashAtSend,
    CrashAtWrite,
    Drop,
    Equivocate,
    Misbehave,
    Operation,
    Plan,
    Silence,
)
from tests.simulation.plans import gentle_plan_from, plan_from
from tests.simulation.world import World

from dppp.privacy.ledger import Ledger
from dppp.privacy.ledger_book import Book
from dppp.privacy.trust import Trust
from dppp.protocol.batch import Batch
from dppp.protocol.transcript import Transcript

QUERIES = int(os.environ.get("DPPP_SOAK_QUERIES", "350"))
SEED = os.environ.get("DPPP_SIMULATION_SEED")


def _seeds(plan: Callable[[int], Plan], queries: int) -> list[int]:
    """Enough seeds for this many queries, or the one that is asked for."""
    if SEED is not None:
        return [int(SEED)]
    sums = itertools.accumulate(plan(seed).queries for seed in itertools.count())
    return list(range(next(seed for seed, total in enumerate(sums, start=1) if total >= queries)))


def _small_plan(*operations: Operation, trust: tuple[int, int, int] = (5, 1, 1)) -> Plan:
    teachers, colluders, dropouts = trust
    return Plan(
        seed=0,
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        deadline_seconds=300,
        batches=(2, 1),
        operations=operations,
    )


def _released(world: World) -> list[bool]:
    return [isinstance(asked.endings[0], Transcript) for asked in world.asked]


@pytest.mark.parametrize("seed", _seeds(plan_from, QUERIES))
def test_any_faults_keep_every_invariant(seed: int) -> None:
    simulate(plan_from(seed))


@pytest.mark.parametrize("seed", _seeds(gentle_plan_from, QUERIES // 7))
def test_faults_within_the_promise_end_in_a_release_of_every_batch(seed: int) -> None:
    plan = gentle_plan_from(seed)
    world = simulate(plan)
    if not all(_released(world)):
        raise Broken(f"not every batch was released: {[a.endings for a in world.asked]}", plan)


@pytest.mark.parametrize("role", [AGGREGATOR, 1])
def test_a_crash_at_any_write_changes_nothing_but_the_time(role: int) -> None:
    writes = 2 * (3 if role == AGGREGATOR else 4)
    for write in range(1, writes + 1):
        for is_durable in (False, True):
            crash = CrashAtWrite(role=role, write=write, is_durable=is_durable, down_seconds=0)
            plan = _small_plan(crash, Silence(teacher=5, since=0, until=10**6))
            assert _released(simulate(plan)) == [True, True], plan


@pytest.mark.parametrize("role", [AGGREGATOR, 1])
def test_a_crash_at_any_send_changes_nothing_but_the_time(role: int) -> None:
    sends = 18 if role == AGGREGATOR else 4
    for send in range(1, sends + 1):
        crash = CrashAtSend(role=role, send=send, down_seconds=3)
        plan = _small_plan(crash, Silence(teacher=5, since=0, until=10**6))
        assert _released(simulate(plan)) == [True, True], plan


def test_a_printed_plan_is_the_plan() -> None:
    plan = plan_from(4)
    assert eval(str(plan), vars(tests.simulation.operations)) == plan  # noqa: S307


def test_a_plan_gives_the_same_run_every_time() -> None:
    first, second = (simulate(plan_from(1)) for _ in range(2))
    assert first.network.left == second.network.left
    assert [each.endings for each in first.asked] == [each.endings for each in second.asked]


def _forget_the_list_that_was_served(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_served(book: Book, batch_id: bytes, list_hash: bytes) -> bool:
        return book.batches[batch_id].list_hash == list_hash

    monkeypatch.setattr(Book, "is_served", is_served)


def _need_no_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trust, "ballots_needed", property(lambda trust: trust.threshold))


def _forget_the_ballot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "find_ballot", lambda *_: None)
    monkeypatch.setattr(Ledger, "record_ballot", lambda *parts: parts[-1])


def _charge_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "record_ballot", lambda *parts: parts[-1])


def _wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batch, "expire", lambda *_: None)


SMALL = (5, 1, 1)
# The threshold alone keeps lists with too little noise closed unless t - C < h.
NO_DROPOUTS = (8, 1, 0)


@pytest.mark.parametrize(
    ("disable", "trust", "operations", "noticed"),
    [
        pytest.param(
            _forget_the_list_that_was_served,
            SMALL,
            [
                Equivocate(
                    batch=0, victims=(1, 2, 3, 4), how="without one", times=1, is_instead=False
                )
            ],
            "two lists",
            id="a teacher that serves a second list",
        ),
        pytest.param(
            _need_no_quorum,
            NO_DROPOUTS,
            [Silence(teacher=each, since=0, until=10**6) for each in (7, 8)],
            "honest noise shares",
            id="a quorum that is not asked for",
        ),
        pytest.param(
            _forget_the_ballot,
            SMALL,
            [Drop(sender=1, receiver=AGGREGATOR, nth=1)],
            "two ballots",
            id="a teacher that forgets its ballot",
        ),
        pytest.param(
            _charge_nothing,
            SMALL,
            [],
            "ballots? of teacher . (for a batch )?left",
            id="a teacher that charges nothing",
        ),
        pytest.param(
            _wait_for_ever,
            SMALL,
            [Misbehave(teacher=1, how="withhold shares"), Silence(teacher=2, since=0, until=10**6)],
            "never ended",
            id="an aggregator that waits for ever",
        ),
    ],
)
def test_the_simulation_notices(
    monkeypatch: pytest.MonkeyPatch,
    disable: Callable[[pytest.MonkeyPatch], None],
    trust: tuple[int, int, int],
    operations: list[Operation],
    noticed: str,
) -> None:
    plan = _small_plan(*operations, trust=trust)
    simulate(plan)
    disable(monkeypatch)
    with pytest.raises(Broken, match=noticed):
        simulate(plan)
