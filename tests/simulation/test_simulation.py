"""Random faults within bounds, and crashes at every point; all roles are the real ones.

DPPP_SOAK_QUERIES=10000 pytest -n auto tests/simulation/test_simulation.py -k any_faults
DPPP_SIMULATION_SEED=17 pytest tests/simulation/test_simulation.py -k any_faults
"""

import itertools
import os
from collections.abc import Callable

import pytest
import tests.simulation.operations
from tests.protocol.attacker import take_out
from tests.simulation.invariants import Broken, Check, simulate
from tests.simulation.operations import (
    AGGREGATOR,
    FORGERIES,
    CrashAtSend,
    CrashAtWrite,
    Drop,
    Equivocate,
    Forge,
    Misbehave,
    Operation,
    Plan,
    Silence,
)
from tests.simulation.plans import gentle_plan_from, plan_from
from tests.simulation.world import World

import dppp.protocol.teacher
import dppp.protocol.with_paillier.teacher
from dppp.paillier.keys import PublicKey
from dppp.privacy.ledger.batch import BatchAccount
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.trust import Trust
from dppp.protocol import with_paillier
from dppp.protocol.messages import BallotList
from dppp.protocol.receipt import Receipt
from dppp.protocol.task import Task
from dppp.protocol.with_paillier.ballots import Tallied, read_ballot, tally_ballots
from dppp.protocol.with_paillier.batch import PaillierBatch
from dppp.protocol.with_paillier.teacher import PaillierSide

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
    return [isinstance(asked.endings[0], Receipt) for asked in world.asked]


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
    """Of an aggregator: request, list, outcome; of a teacher, each with the head that covers it:
    ballot, endorsement, answer."""
    writes = 2 * (3 if role == AGGREGATOR else 6)
    for write in range(1, writes + 1):
        for is_durable in (False, True):
            crash = CrashAtWrite(role=role, write=write, is_durable=is_durable, down_seconds=0)
            plan = _small_plan(crash, Silence(teacher=5, since=0, until=10**6))
            world = simulate(plan)
            assert world.crashes == 1, plan
            assert _released(world) == [True, True], plan


@pytest.mark.parametrize("role", [AGGREGATOR, 1])
def test_a_crash_at_any_send_changes_nothing_but_the_time(role: int) -> None:
    """Of an aggregator: five requests, four lists, four certified lists; of a teacher: ballot,
    endorsement, shares; all of that for two batches."""
    sends = 26 if role == AGGREGATOR else 6
    for send in range(1, sends + 1):
        crash = CrashAtSend(role=role, send=send, down_seconds=3)
        plan = _small_plan(crash, Silence(teacher=5, since=0, until=10**6))
        world = simulate(plan)
        assert world.crashes == 1, plan
        assert _released(world) == [True, True], plan


def test_a_printed_plan_is_the_plan() -> None:
    plan = plan_from(4)
    assert eval(str(plan), vars(tests.simulation.operations)) == plan  # noqa: S307


def test_a_plan_gives_the_same_run_every_time() -> None:
    first, second = (simulate(plan_from(1)) for _ in range(2))
    assert first.network.left == second.network.left
    assert [each.endings for each in first.asked] == [each.endings for each in second.asked]


def _forget_the_list_that_was_endorsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_endorsed(batch: BatchAccount, list_hash: bytes, attempt: int) -> bool:
        return (batch.list_hash, batch.attempt) == (list_hash, attempt)

    monkeypatch.setattr(BatchAccount, "is_endorsed", is_endorsed)


def _keep_no_endorsement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "record_endorsement", lambda *parts, **_: parts[-1])


def _keep_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "record_answer", lambda *parts, **_: parts[-1])


def _need_no_endorsements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(with_paillier.teacher, "require_certified", lambda *_: None)


def _believe_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (dppp.protocol.teacher, with_paillier.teacher):
        monkeypatch.setattr(module, "require_from_aggregator", lambda *_: None)


def _open_any_tallies(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(
        monkeypatch,
        PaillierSide._endorsed_tallies,
        "tally_hash(about.tallies) != statement.tally_hash",
        "False",
    )


def _endorse_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Says of any list what would be so if all its ballots were one."""

    def check_list(task: Task, public: PublicKey, found: BallotList, *, size: int) -> Tallied:
        ballots = [
            read_ballot(task, public, each, batch=found.batch_id, size=size)
            for each in found.ballots
        ]
        return tally_ballots(public, ballots[:1])

    monkeypatch.setattr(with_paillier.teacher, "check_list", check_list)


def _release_without_endorsements(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, PaillierBatch._release, "endorsers=self._certified,", "endorsers=(),")


def _need_no_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trust, "ballots_needed", property(lambda trust: trust.threshold))


def _forget_the_ballot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "find_ballot", lambda *_: None)
    monkeypatch.setattr(Ledger, "record_ballot", lambda *parts: parts[-1])


def _charge_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "record_ballot", lambda *parts: parts[-1])


def _wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PaillierBatch, "expire", lambda *_: None)


def _lie(how: str) -> Equivocate:
    return Equivocate(batch=0, victims=(1, 2, 3, 4), how=how, times=1, is_instead=False)


SMALL = (5, 1, 1)
# The threshold alone keeps lists with too little noise closed unless t - C < h.
NO_DROPOUTS = (8, 1, 0)


@pytest.mark.parametrize(
    ("disable", "trust", "operations", "noticed"),
    [
        pytest.param(
            _forget_the_list_that_was_endorsed,
            SMALL,
            [_lie("without one")],
            "two endorsements",
            id="a teacher that endorses a second list",
        ),
        pytest.param(
            _keep_no_endorsement,
            SMALL,
            [],
            "not in its ledger",
            id="a teacher that keeps no endorsement",
        ),
        pytest.param(
            _keep_no_answer, SMALL, [], "not in its ledger", id="a teacher that keeps no answer"
        ),
        *(
            pytest.param(
                _need_no_endorsements,
                SMALL,
                [_lie(how)],
                "without t endorsements",
                id=f"a teacher that needs no endorsements: {how}",
            )
            for how in (
                "too few endorsers",
                "endorser twice",
                "foreign endorser",
                "endorsed elsewhere",
            )
        ),
        pytest.param(
            _open_any_tallies,
            SMALL,
            [_lie("other tallies")],
            "something else than the endorsed tallies|without t endorsements",
            id="a teacher that opens other tallies",
        ),
        pytest.param(
            _endorse_unread,
            SMALL,
            [],
            "what is not so",
            id="a teacher that endorses what it has not read",
        ),
        *(
            pytest.param(
                _believe_anybody,
                SMALL,
                [Forge(batch=0, victims=(1, 2, 3, 4, 5), kind=kind, how=how, times=1)],
                noticed,
                id=f"a teacher that believes anybody: {kind}, {how}",
            )
            for kind, noticed in (
                ("ballot request", "that the aggregator asked it for"),
                ("ballot list", "endorsed what is not so|never sent"),
            )
            for how in FORGERIES
        ),
        pytest.param(
            _release_without_endorsements,
            SMALL,
            [],
            "endorsements",
            id="an aggregator that leaves the endorsements out",
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


def test_two_lists_that_can_be_opened_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By themselves: not only because somebody endorsed both."""
    kept: dict[tuple[object, ...], bytes] = {}

    def find(what: str) -> Callable[..., bytes | None]:
        return lambda ledger, batch, of_list, *, attempt=1: kept.get(
            (what, id(ledger), batch, of_list, attempt)
        )

    def record(what: str) -> Callable[..., bytes]:
        return lambda ledger, batch, of_list, data, *, attempt=1: kept.setdefault(
            (what, id(ledger), batch, of_list, attempt), data
        )

    for what in ("endorsement", "answer"):
        monkeypatch.setattr(Ledger, f"find_{what}", find(what))
        monkeypatch.setattr(Ledger, f"record_{what}", record(what))
    world = World(_small_plan(_lie("without one")))
    world.run()
    with pytest.raises(Broken, match="two lists of one batch can be opened"):
        Check(world).at_most_one_list_of_a_batch_can_be_opened()
