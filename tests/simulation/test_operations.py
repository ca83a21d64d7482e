"""That every operation does what it says: a fault that never happens shows nothing."""

import functools
from collections.abc import Callable

import pytest
from tests.simulation.invariants import simulate
from tests.simulation.operations import (
    AGGREGATOR,
    EQUIVOCATIONS,
    FORGED,
    FORGERIES,
    MISBEHAVIOURS,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Equivocate,
    Forge,
    LinkFault,
    Misbehave,
    Operation,
    Plan,
    Reorder,
    Replace,
    Silence,
    TurnClock,
)
from tests.simulation.wiretap import Wiretap
from tests.simulation.world import World

from dppp.errors import (
    DpppError,
    ListFault,
    ListNotCertified,
    ListNotServed,
    NotFromAggregator,
    SecondList,
)
from dppp.protocol.batch_store import Kind
from dppp.protocol.events import Abort
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BallotRequest,
    CertifiedList,
    Endorsement,
    ProofRequest,
    SignedShareProof,
    SignedShares,
    list_hash,
)
from dppp.protocol.receipt import Receipt
from dppp.protocol.wire import decode, kind_of

BYZANTINE = 7


def _simulate(*operations: Operation, seed: int = 3, batches: tuple[int, ...] = (2, 1, 1)) -> World:
    """N = 7, C = 1, D = 1: one bad ballot and one withheld share are survived."""
    return simulate(
        Plan(
            seed=seed,
            teachers=7,
            colluders=1,
            dropouts=1,
            deadline_seconds=45,
            batches=batches,
            operations=operations,
        )
    )


NAMED_BY_ITS_BALLOT = {"copy", "bad proof"}
NAMED_WHERE_IT_IS_ASKED = (
    "wrong statement",
    "two endorsements",
    "wrong shares",
    "unproven shares",
    "other list",
)
NEVER_NAMED = {"replay", "impersonate", "bad signature", "replayed endorsement"}
"""Nobody signed what these send, for this batch and in its own name: anyone may have sent it."""


@pytest.mark.parametrize("how", MISBEHAVIOURS)
def test_a_misbehaving_teacher_is_survived_and_named_if_it_can_be(how: str) -> None:
    world = _simulate(Misbehave(teacher=BYZANTINE, how=how))
    for asked in world.asked:
        (ending,) = asked.endings
        if how == "oversize":
            assert isinstance(ending, Receipt | Abort)  # a neighbour's bias, or noticed
        else:
            assert isinstance(ending, Receipt)
        faults = world.faults(asked.batch)
        assert set(faults) <= {BYZANTINE}
        if how in NAMED_BY_ITS_BALLOT:
            assert set(faults) == {BYZANTINE}
        if how in NEVER_NAMED:
            assert faults == {}


@pytest.mark.parametrize("how", NAMED_WHERE_IT_IS_ASKED)
def test_a_bad_endorsement_or_share_is_named_in_a_batch_where_it_is_asked_for(how: str) -> None:
    world = _simulate(Misbehave(teacher=BYZANTINE, how=how))
    assert any(BYZANTINE in world.faults(asked.batch) for asked in world.asked)


@pytest.mark.parametrize("how", ["withhold endorsement", "withhold shares"])
def test_who_withholds_is_not_at_fault_and_not_in_the_receipt_of_what_it_withheld(how: str) -> None:
    """The others are asked in its place; who only withholds cannot be told from a lossy channel."""
    world = _simulate(Misbehave(teacher=BYZANTINE, how=how))
    for asked in world.asked:
        (ending,) = asked.endings
        assert isinstance(ending, Receipt)
        assert world.faults(asked.batch) == {}
        if how == "withhold endorsement":
            assert BYZANTINE not in {each.teacher for each in ending.endorsers}


def test_too_few_endorsements_are_an_abort_that_names_who_is_missing() -> None:
    """N = 7, C = 1, D = 1: five endorse, and three do not."""
    silent = [Silence(teacher=each, since=5, until=10**6) for each in (5, 6)]
    keep_back = [
        Drop(sender=each, receiver=AGGREGATOR, nth=nth) for each in (5, 6) for nth in range(2, 9)
    ]
    world = _simulate(Misbehave(teacher=BYZANTINE, how="withhold endorsement"), *silent, *keep_back)
    (ending,) = world.asked[0].endings
    assert isinstance(ending, Abort)
    assert "4 endorsements of the list, and 5 are needed" in ending.reason
    assert (ending.missing, ending.culprits) == ((5, 6, 7), ())


REFUSED: dict[str, type[DpppError]] = {
    "without one": SecondList,
    "below quorum": ListFault,
    "alone": ListFault,
    "twice": ListFault,
    "colluder votes anew": SecondList,
    "too few endorsers": ListNotCertified,
    "endorser twice": ListNotCertified,
    "foreign endorser": ListNotCertified,
    "endorsed elsewhere": ListNotCertified,
    "other tallies": ListFault,
    "another list certified": SecondList,
    "other tallies to prove": ListNotServed,
}


def _lie_to_everybody(how: str) -> World:
    victims = (1, 2, 3, 4, 5, 6)
    return _simulate(
        Misbehave(teacher=BYZANTINE, how="bias"),
        Equivocate(batch=0, victims=victims, how=how, times=1, is_instead=False),
    )


@pytest.mark.parametrize("how", REFUSED)
def test_a_teacher_that_is_lied_to_refuses_the_lie_or_then_the_truth(how: str) -> None:
    """Either may arrive first, and a lie that could be opened is a first list like any other."""
    kinds = {type(refusal) for _, refusal in _lie_to_everybody(how).refusals}
    others = {ListFault} if how == "other tallies to prove" else {SecondList}
    assert {REFUSED[how]} <= kinds <= {REFUSED[how]} | others


@pytest.mark.parametrize("how", FORGERIES)
@pytest.mark.parametrize("kind", FORGED)
def test_what_somebody_forges_in_the_aggregators_name_is_refused_and_changes_nothing(
    kind: str, how: str
) -> None:
    victims = (1, 2, 3, 4, 5, 6, 7)
    forge = Forge(batch=0, victims=victims, kind=kind, how=how, times=1)
    forged, plain = _simulate(forge), _simulate()
    arrived = {each.data for each in forged.network.delivered}
    assert arrived >= set(forged.broker.forged) > set()
    refused = [teacher for teacher, _ in forged.refusals]
    assert {type(refusal) for _, refusal in forged.refusals} == {NotFromAggregator}
    assert len(refused) == len(forged.broker.forged)
    assert [each.endings for each in forged.asked] == [each.endings for each in plain.asked]
    assert forged.ledger_of(1).head == plain.ledger_of(1).head


def test_a_second_list_is_certified_by_an_aggregator_that_lies_if_it_can_be() -> None:
    """Else nothing would show that it cannot be opened beside the first."""
    lie = Equivocate(
        batch=0, victims=(1, 2, 3, 4, 5, 6), how="without one", times=9, is_instead=True
    )
    world = _simulate(Misbehave(teacher=BYZANTINE, how="bias"), lie)
    tap = Wiretap(world)
    batch = world.asked[0].batch
    (opened,) = (of_list for where, of_list in tap.sharers if where == batch)
    stored = world.batch_store.get(batch, Kind.LIST)
    assert stored is not None
    assert opened != list_hash(decode(stored, BallotList))
    assert len(tap.sharers[batch, opened]) >= 4
    assert isinstance(world.asked[0].endings[0], Abort)


def test_another_input_is_another_query_and_costs_another_charge() -> None:
    assert set(EQUIVOCATIONS) - set(REFUSED) == {"other input"}
    world = _lie_to_everybody("other input")
    (data,) = world.ledger_of(1).summary().data
    assert data.tasks[0].answered == 2 * 2 + 1 + 1


def test_a_clock_that_is_ahead_refuses_and_a_clock_that_is_behind_does_not() -> None:
    for seconds, answered in ((300, 0), (-300, 4)):
        world = _simulate(TurnClock(role=1, at=0, seconds=seconds))
        (data,) = world.ledger_of(1).summary().data
        assert data.tasks[0].answered == answered


def _arrivals(*operations: Operation) -> list[bytes]:
    """What the aggregator got from teacher 1."""
    delivered = _simulate(*operations).network.delivered
    return [each.data for each in delivered if (each.sender, each.receiver) == (1, AGGREGATOR)]


STEPS = (
    BallotRequest.KIND,
    Ballot.KIND,
    BallotList.KIND,
    Endorsement.KIND,
    CertifiedList.KIND,
    SignedShares.KIND,
    ProofRequest.KIND,
    SignedShareProof.KIND,
)
"""In order, what the aggregator says to a teacher and what that answers; proofs if it must be."""


@functools.cache
def _seed_that_draws_1_and_7() -> int:
    """The lot is over the list's hash: other bytes in a ballot draw others.

    Teacher 1 is drawn whether or not the liar is there.
    """
    liar = Misbehave(teacher=BYZANTINE, how="wrong shares")
    for seed in range(100):
        said, without_liar = (
            {kind_of(each.data) for each in world.network.left if each.sender == 1}
            for world in (
                _simulate(*operations, seed=seed, batches=(1,)) for operations in ([liar], [])
            )
        )
        if {SignedShares.KIND, SignedShareProof.KIND} <= said and SignedShares.KIND in without_liar:
            return seed
    raise AssertionError("no seed draws both: is nobody asked to prove shares any more?")


FAULTS: dict[str, Callable[..., LinkFault]] = {
    "drop": Drop,
    "delay": functools.partial(Delay, seconds=30),
    "duplicate": functools.partial(Duplicate, seconds=3),
    "reorder": Reorder,
    "corrupt": functools.partial(Corrupt, bit=999),
    "replace": functools.partial(Replace, length=64),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", range(len(STEPS)), ids=STEPS)
def test_any_message_may_be_lost_late_doubled_reordered_or_changed(step: int, fault: str) -> None:
    """The liar and teacher 1 are among those whom this seed draws to endorse."""
    sender, receiver = (AGGREGATOR, 1) if step % 2 == 0 else (1, AGGREGATOR)
    nth = step // 2 + 2 if step >= 2 else 1  # a ballot is asked for twice in the first second
    link = FAULTS[fault](sender=sender, receiver=receiver, nth=nth)
    liars = [Misbehave(teacher=BYZANTINE, how="wrong shares")] if step >= 6 else []
    world = _simulate(link, *liars, seed=_seed_that_draws_1_and_7(), batches=(1,))
    assert [kind_of(data) for _, data in world.network.struck] == [STEPS[step]]
    assert all(isinstance(each.endings[0], Receipt) for each in world.asked)


def test_a_link_does_to_a_message_what_the_plan_says() -> None:
    link = {"sender": 1, "receiver": AGGREGATOR, "nth": 1}
    plain = _arrivals()
    assert _arrivals(Duplicate(**link, seconds=1)).count(plain[0]) == plain.count(plain[0]) + 1
    assert _arrivals(Delay(**link, seconds=1)).index(plain[0]) >= 0
    assert _arrivals(Drop(**link))[0] == plain[0]  # sent again, being the same for ever
    assert plain[0] in _arrivals(Reorder(**link))
    changed = _arrivals(Corrupt(**link, bit=999))[0]
    assert changed != plain[0]
    assert len(changed) == len(plain[0])
    assert len(_arrivals(Replace(**link, length=64))[0]) == 64
