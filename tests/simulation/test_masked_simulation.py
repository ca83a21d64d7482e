"""Random faults within bounds, and crashes at every point, under masks; all roles are real.

DPPP_SOAK_QUERIES=10000 pytest -n auto tests/simulation/test_masked_simulation.py
DPPP_SIMULATION_SEED=17 pytest tests/simulation/test_masked_simulation.py -k any_faults
"""

import itertools
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.simulation.invariants import Broken
from tests.simulation.masked_adversaries import (
    HARMLESS,
    MASKED_FORGED,
    MASKED_LIES,
    MASKED_MISBEHAVIOURS,
    masked,
)
from tests.simulation.masked_invariants import simulate_masked
from tests.simulation.masked_world import MaskedWorld
from tests.simulation.operations import (
    AGGREGATOR,
    FORGERIES,
    CrashAtSend,
    CrashAtWrite,
    Equivocate,
    Forge,
    Misbehave,
    Operation,
    Plan,
    Silence,
)
from tests.simulation.plans import gentle_plan_from, plan_from
from tests.simulation.world import Ending

from dppp.errors import (
    DpppError,
    ListFault,
    ListNotCertified,
    NotFromAggregator,
    OwnBallotMissing,
    RowsNotGiven,
    SecondList,
    SumDoesNotFit,
    TooFewWithdrawals,
    Withdrawn,
)
from dppp.protocol.events import Abort
from dppp.protocol.receipt import Receipt
from dppp.protocol.wire import kind_of
from dppp.protocol.with_masks.messages import SeedRows, ShownRoot, ShownRows, Withdrawal

QUERIES = int(os.environ.get("DPPP_SOAK_QUERIES", "280"))
IS_SOAK = "DPPP_SOAK_QUERIES" in os.environ
SEED = os.environ.get("DPPP_SIMULATION_SEED")
SILENT = Silence(teacher=5, since=0, until=10**6)
COLLUDER = 2


def _seeds(plan: Callable[[int], Plan], queries: int) -> list[int]:
    """Enough seeds for this many queries, or the one that is asked for."""
    if SEED is not None:
        return [int(SEED)]
    sums = itertools.accumulate(plan(seed).queries for seed in itertools.count())
    return list(range(next(seed for seed, total in enumerate(sums, start=1) if total >= queries)))


def small_plan(
    *operations: Operation,
    trust: tuple[int, int, int] = (5, 1, 1),
    batches: tuple[int, ...] = (2, 1),
) -> Plan:
    teachers, colluders, dropouts = trust
    return Plan(
        seed=0,
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        deadline_seconds=300,
        batches=batches,
        operations=operations,
    )


def lie_to(*victims: int, how: str) -> Equivocate:
    """Beside the truth."""
    return Equivocate(batch=0, victims=victims, how=how, times=1, is_instead=False)


def _released(world: MaskedWorld) -> list[bool]:
    return [isinstance(asked.endings[0], Receipt) for asked in world.asked]


@pytest.mark.parametrize("seed", _seeds(plan_from, QUERIES))
def test_any_faults_keep_every_invariant_under_masks(seed: int) -> None:
    simulate_masked(masked(plan_from(seed)))


@pytest.mark.parametrize("seed", _seeds(plan_from, QUERIES // 2))
def test_any_faults_keep_every_invariant_while_keys_are_replaced_every_minute(seed: int) -> None:
    simulate_masked(masked(plan_from(seed)), epoch_seconds=60)


@pytest.mark.parametrize("seed", _seeds(gentle_plan_from, QUERIES // 7))
def test_faults_within_the_promise_end_in_a_release_of_every_batch_under_masks(seed: int) -> None:
    plan = masked(gentle_plan_from(seed), is_gentle=True)
    world = simulate_masked(plan)
    if not all(_released(world)):
        raise Broken(f"not every batch was released: {[a.endings for a in world.asked]}", plan)


UNNAMED = HARMLESS
"""Any votes are allowed, and who withholds cannot be told from a lossy channel."""


@pytest.mark.parametrize("how", MASKED_MISBEHAVIOURS)
def test_one_colluder_costs_at_most_the_first_batches_and_is_left_out_then(how: str) -> None:
    colluder = Misbehave(teacher=COLLUDER, how=how)
    world = simulate_masked(small_plan(colluder, trust=(9, 1, 2), batches=(1,) * 9))
    endings = [asked.endings[0] for asked in world.asked]
    aborts = [each for each in endings if isinstance(each, Abort)]
    assert {each.culprits for each in aborts} <= {(COLLUDER,)}
    last = endings[-1]
    assert isinstance(last, Receipt)
    assert (COLLUDER in last.participants) == (how in UNNAMED)
    blamed = {each for asked in world.asked for each in world.faults(asked.batch)}
    assert blamed == (set() if how in (*UNNAMED, "silent in disputes") else {COLLUDER})


REFUSED: dict[str, set[type[DpppError]]] = {
    "without one": {SecondList},
    "below quorum": {ListFault},
    "alone": {ListFault},
    "without the victim": {OwnBallotMissing},
    "other seals": {ListFault},  # it objects, and then the seals in evidence do open
    "asks for roots": {TooFewWithdrawals},
    "gives back": {TooFewWithdrawals},
    "too few endorsers": {ListNotCertified},
    "endorser twice": {ListNotCertified},
    "other sum": {SumDoesNotFit},
    "another list certified": {SecondList},
    "asks to withdraw": {Withdrawn},
    "asks for seed rows": {RowsNotGiven},
    "next attempt": {TooFewWithdrawals},
}


@pytest.mark.parametrize("how", MASKED_LIES)
def test_a_teacher_that_is_lied_to_refuses_the_lie_or_then_the_truth(how: str) -> None:
    world = simulate_masked(small_plan(lie_to(1, 2, 3, 4, how=how)))
    if how == "other seals":  # nobody can tell; what was delivered is signed, and convicts
        (ending,) = world.asked[0].endings
        assert isinstance(ending, Abort)
        assert ending.reason.startswith("the aggregator delivered")
        return
    assert {type(refusal) for _, refusal in world.refusals} & REFUSED[how]


@pytest.mark.parametrize("how", FORGERIES)
@pytest.mark.parametrize("kind", MASKED_FORGED)
def test_what_somebody_forges_under_masks_is_refused_and_changes_nothing(
    kind: str, how: str
) -> None:
    forge = Forge(batch=0, victims=(1, 2, 3, 4, 5), kind=kind, how=how, times=1)
    forged, plain = simulate_masked(small_plan(forge)), simulate_masked(small_plan())
    arrived = {each.data for each in forged.network.delivered}
    assert arrived >= set(forged.broker.forged) > set()
    refused = Counter(type(refusal) for _, refusal in forged.refusals)
    by_chance = Counter(type(refusal) for _, refusal in plain.refusals)  # a list before its roster
    assert refused - by_chance == Counter({NotFromAggregator: len(forged.broker.forged)})
    assert [each.endings for each in forged.asked] == [each.endings for each in plain.asked]
    assert forged.ledger_of(1).head == plain.ledger_of(1).head


IN_PEACE = small_plan(SILENT)
IN_DISPUTE = small_plan(
    Misbehave(teacher=COLLUDER, how="other rows"), trust=(9, 1, 2), batches=(2,)
)
"""The sum does not fit: withdrawals, roots, rows, and a second attempt without the colluder."""
PLANS = pytest.mark.parametrize("plan", [IN_PEACE, IN_DISPUTE], ids=["in peace", "in a dispute"])
ROLES = pytest.mark.parametrize("role", [AGGREGATOR, 1], ids=["aggregator", "teacher"])


def test_a_dispute_has_all_that_a_dispute_can_have() -> None:
    """Else no crash would strike it."""
    world = simulate_masked(IN_DISPUTE)
    (receipt,) = world.asked[0].endings
    assert isinstance(receipt, Receipt)
    assert receipt.attempt == 2
    said = {kind_of(each.data) for each in world.network.left if each.sender == 1}
    assert said >= {Withdrawal.KIND, ShownRoot.KIND, SeedRows.KIND}
    of_all = {kind_of(each.data) for each in world.network.left if each.sender in world.honest}
    assert ShownRows.KIND in of_all


def _with(plan: Plan, operation: Operation) -> Plan:
    return replace(plan, operations=(*plan.operations, operation))


def _endings_with(plan: Plan, crashes: list[Operation]) -> list[Ending]:
    """Of all batches, in a run for each crash."""
    endings = []
    for crash in crashes:
        world = simulate_masked(_with(plan, crash))
        assert world.crashes == 1, crash
        endings += [asked.endings[0] for asked in world.asked]
    return endings


def _require_survived(plan: Plan, endings: list[Ending]) -> None:
    """In peace all is released. A dispute takes one dropout, and whoever is late takes the next:
    then the batch is given back, and the colluder is named."""
    given_back = [each for each in endings if not isinstance(each, Receipt)]
    for each in given_back:
        assert isinstance(each, Abort)
        assert (each.is_refunded, each.culprits) == (True, (COLLUDER,))
    assert len(given_back) <= (0 if plan is IN_PEACE else len(endings) // 4)


@PLANS
@ROLES
def test_a_crash_at_any_write_changes_nothing_but_the_time_under_masks(
    plan: Plan, role: int
) -> None:
    """As many as there are in a run without: request, roster, attempt, list, outcome, culprit; the
    secret of an epoch, ballot, endorsement, answer, withdrawal and retry, with the ledger's head.
    """
    crashes: list[Operation] = [
        CrashAtWrite(role=role, write=write, is_durable=is_durable, down_seconds=0)
        for write in range(1, simulate_masked(plan).writes(role) + 1)
        for is_durable in (False, True)
    ]
    _require_survived(plan, _endings_with(plan, crashes))


@PLANS
@ROLES
def test_a_crash_at_any_send_changes_nothing_but_the_time_under_masks(
    plan: Plan, role: int
) -> None:
    """Of an aggregator in a dispute every third one, and every one in a soak."""
    step = 3 if (role, plan) == (AGGREGATOR, IN_DISPUTE) and not IS_SOAK else 1
    crashes: list[Operation] = [
        CrashAtSend(role=role, send=send, down_seconds=3)
        for send in range(1, simulate_masked(plan).sends(role) + 1, step)
    ]
    _require_survived(plan, _endings_with(plan, crashes))


def test_too_many_silent_teachers_are_an_abort_that_names_them() -> None:
    silent = [Silence(teacher=each, since=0, until=10**6) for each in (3, 4)]
    world = simulate_masked(small_plan(*silent, batches=(1,)))
    (ending,) = world.asked[0].endings
    assert isinstance(ending, Abort)
    assert (ending.missing, ending.culprits) == ((3, 4), ())


def test_a_plan_gives_the_same_run_every_time_under_masks() -> None:
    plan = masked(plan_from(3))
    first, second = (simulate_masked(plan) for _ in range(2))
    assert plan.byzantine
    assert first.network.left == second.network.left
    assert [each.endings for each in first.asked] == [each.endings for each in second.asked]
