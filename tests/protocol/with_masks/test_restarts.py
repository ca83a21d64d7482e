"""Roles that are restarted at any message: the batch goes on to a release, and is charged once."""

from collections.abc import Callable

import pytest
from tests.protocol.with_masks.colluders import add_to_rows, deal_badly, endorse_another_sum
from tests.protocol.with_masks.federation import Federation, set_up

from dppp.masks.sealing import Purpose
from dppp.protocol.receipt import Receipt
from dppp.protocol.wire import kind_of

CULPRIT = 2

SCENES: dict[str, Callable[[Federation], None]] = {
    "no fault": lambda _: None,
    "a wrong sum": lambda f: f.corrupt(CULPRIT, endorse_another_sum),
    "a wrong row": lambda f: f.corrupt(CULPRIT, deal_badly(secret_rows=add_to_rows([4]))),
    "bad seals": lambda f: f.corrupt(
        CULPRIT, deal_badly(break_seals=[(3, Purpose.SECRET_ROW), (4, Purpose.SECRET_ROW)])
    ),
}


def stages(scene: str) -> list[tuple[str, int]]:
    """Each kind of message in a run, with the attempt it belongs to: where a restart happens."""
    federation = Federation(set_up())
    SCENES[scene](federation)
    seen: dict[tuple[str, int], None] = {}
    federation.before_delivery = lambda _, data: seen.setdefault(
        (kind_of(data), federation.attempts)
    )
    federation.ask()
    return list(seen)


PLACES = [(scene, *place) for scene in SCENES for place in stages(scene)]


@pytest.mark.parametrize("after", [False, True], ids=["before answers", "after some answers"])
@pytest.mark.parametrize(("scene", "kind", "attempt"), PLACES)
def test_a_restarted_aggregator_goes_on_to_a_release(
    scene: str, kind: str, attempt: int, after: bool
) -> None:
    federation = Federation(set_up())
    SCENES[scene](federation)
    output = federation.start(federation.request(deadline=2000))
    while not any(
        kind_of(each.data) == kind and federation.attempts == attempt for each in output.sends
    ):
        output = federation.step(output)
    if after:  # three of them answer, and the aggregator dies with what it heard
        for send in output.sends[:3]:
            federation.deliver(send.teacher, send.data)
    federation.run(federation.restart_aggregator(), longest=1900)
    receipt = federation.end
    assert isinstance(receipt, Receipt), (receipt, federation.blamed)
    assert set(federation.blamed) <= {CULPRIT}
    federation.require_right_sums(receipt)
    everybody = set(federation.setting.everybody)
    assert {federation.charged(each) for each in everybody & set(receipt.participants)} == {2}


@pytest.mark.parametrize("teacher", [1, 4])
@pytest.mark.parametrize(("scene", "kind", "attempt"), PLACES)
def test_a_restarted_teacher_goes_on_when_it_is_reminded(
    scene: str, kind: str, attempt: int, teacher: int
) -> None:
    federation = Federation(set_up())
    SCENES[scene](federation)
    restarted: list[int] = []

    def restart(receiver: int, data: bytes) -> None:
        is_time = (kind_of(data), federation.attempts) == (kind, attempt)
        if receiver == teacher and is_time and not restarted:
            restarted.append(teacher)
            federation.start_teacher(teacher)

    federation.before_delivery = restart
    federation.remind_seconds = 1
    receipt = federation.ask()
    assert isinstance(receipt, Receipt), receipt
    assert set(federation.blamed) <= {CULPRIT}
    federation.require_right_sums(receipt)
    assert federation.charged(teacher) == 2
    # One who comes back late for the list may be done without, and then no wrong row is added up.
    assert set(federation.blamed) == ({CULPRIT} if receipt.attempt > 1 else set())


def test_all_teachers_restarted_before_every_message_go_on_when_they_are_reminded() -> None:
    federation = Federation(set_up())
    SCENES["a wrong row"](federation)
    seen: set[tuple[int, str, int]] = set()

    def restart(receiver: int, data: bytes) -> None:
        place = (receiver, kind_of(data), federation.attempts)
        if place not in seen:
            seen.add(place)
            federation.start_teacher(receiver)

    federation.before_delivery = restart
    federation.remind_seconds = 1
    receipt = federation.ask(deadline=3000)
    assert isinstance(receipt, Receipt), receipt
    assert set(federation.blamed) == {CULPRIT}
    federation.require_right_sums(receipt)
