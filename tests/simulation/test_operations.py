"""That every operation does what it says: a fault that never happens shows nothing."""

import pytest
from tests.simulation.invariants import simulate
from tests.simulation.operations import (
    AGGREGATOR,
    EQUIVOCATIONS,
    MISBEHAVIOURS,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Equivocate,
    Misbehave,
    Operation,
    Plan,
    Reorder,
    Replace,
    TurnClock,
)
from tests.simulation.world import World

from dppp.errors import DpppError, ListFault, SecondList
from dppp.protocol.batch import Abort
from dppp.protocol.transcript import Transcript

BYZANTINE = 7


def _simulate(*operations: Operation) -> World:
    """N = 7, C = 1, D = 1: one bad ballot and one withheld share are survived."""
    return simulate(
        Plan(
            seed=3,
            teachers=7,
            colluders=1,
            dropouts=1,
            deadline_seconds=45,
            batches=(2, 1, 1),
            operations=operations,
        )
    )


NAMED_BY_ITS_BALLOT = {"copy", "replay", "bad proof", "impersonate"}


@pytest.mark.parametrize("how", MISBEHAVIOURS)
def test_a_misbehaving_teacher_is_survived_and_named_if_it_can_be(how: str) -> None:
    world = _simulate(Misbehave(teacher=BYZANTINE, how=how))
    for asked in world.asked:
        (ending,) = asked.endings
        if how == "oversize":
            assert isinstance(ending, Transcript | Abort)  # a neighbour's bias, or noticed
        else:
            assert isinstance(ending, Transcript)
        faults = world.faults(asked.batch)
        assert set(faults) <= {BYZANTINE}
        if how in NAMED_BY_ITS_BALLOT:
            assert set(faults) == {BYZANTINE}


def test_wrong_shares_are_named_in_a_batch_where_they_are_asked_for() -> None:
    for how in ("wrong shares", "other list"):
        world = _simulate(Misbehave(teacher=BYZANTINE, how=how))
        assert any(BYZANTINE in world.faults(asked.batch) for asked in world.asked)


REFUSED: dict[str, type[DpppError]] = {
    "without one": SecondList,
    "below quorum": ListFault,
    "alone": ListFault,
    "twice": ListFault,
    "colluder votes anew": SecondList,
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
    assert {REFUSED[how]} <= kinds <= {REFUSED[how], SecondList}


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
