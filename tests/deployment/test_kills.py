"""kill -9 of each kind of process in the middle of a batch: it completes, and is charged once."""

import signal

import pytest
from tests.deployment.running import (
    DROPOUTS,
    TEACHERS,
    Running,
    wait_for,
)

from dppp.service.local.processes import read_processes, write_processes

FIRST, SECOND, THIRD, FOURTH = (f"teacher-{index}" for index in range(1, 5))
ASKED = [2, 0, 1]


@pytest.fixture
def held(federation: Running) -> tuple[Running, str, list[int]]:
    """A batch that cannot go on, since two teachers sleep, with three ballots in."""
    federation.wait_for_teachers(TEACHERS)
    # Under masks a batch begins with everybody's key of the epoch: have those before two sleep.
    assert federation.wait_for_end(federation.submit(1))["stage"] == "released"
    before = federation.settled_charges()
    federation.pause(FIRST, SECOND)
    batch = federation.submit(*ASKED)
    wait_for(lambda: federation.state(batch)["ballots"] == TEACHERS - 2, "three ballots")
    return federation, batch, before


@pytest.fixture
def endorsed(federation: Running) -> tuple[Running, str, list[int]]:
    """A batch whose list is closed without one teacher, and endorsed by two: two more sleep."""
    federation.wait_for_teachers(TEACHERS)
    assert federation.wait_for_end(federation.submit(1))["stage"] == "released"
    before = federation.settled_charges()
    federation.pause(FIRST)
    batch = federation.submit(*ASKED)
    wait_for(lambda: federation.state(batch)["ballots"] == TEACHERS - 1, "four ballots")
    federation.pause(SECOND, THIRD)  # while the aggregator still waits for the fifth
    wait_for(lambda: federation.state(batch)["endorsements"] == 2, "two endorsements")
    return federation, batch, before


def assert_released_and_charged_once(running: Running, batch: str, before: list[int]) -> None:
    state = running.wait_for_end(batch)
    assert state["stage"] == "released", state
    assert len(running.labels(batch)) == len(ASKED)

    def charges() -> list[int]:
        return [now - then for now, then in zip(running.charged(), before, strict=True)]

    voters = TEACHERS - DROPOUTS
    wait_for(lambda: charges().count(len(ASKED)) >= voters, "all who voted to be charged")
    assert set(charges()) <= {0, len(ASKED)}  # who was away until the release is asked no more


def test_the_aggregator_dies_with_ballots_in_and_goes_on_after_its_restart(
    held: tuple[Running, str, list[int]],
) -> None:
    running, batch, before = held
    running.kill("aggregator")
    running.go_on(FIRST, SECOND)
    running.restart("aggregator")
    assert_released_and_charged_once(running, batch, before)


def test_the_broker_dies_and_everybody_finds_it_again(
    held: tuple[Running, str, list[int]],
) -> None:
    running, batch, before = held
    running.kill("broker")
    running.go_on(FIRST, SECOND)
    running.restart("broker")
    assert_released_and_charged_once(running, batch, before)


def test_a_teacher_that_voted_dies_and_the_others_open_without_it(
    held: tuple[Running, str, list[int]],
) -> None:
    running, batch, before = held
    running.kill(THIRD)
    running.go_on(FIRST, SECOND)
    assert_released_and_charged_once(running, batch, before)
    running.restart(THIRD)
    running.wait_for_teachers(TEACHERS)
    again = running.submit(1)
    assert running.wait_for_end(again)["stage"] == "released"


def test_a_teacher_that_did_not_vote_dies_and_is_not_missed(
    held: tuple[Running, str, list[int]],
) -> None:
    running, batch, before = held
    running.kill(FIRST)
    running.go_on(SECOND)
    assert running.wait_for_end(batch)["stage"] == "released"
    charged = running.charged()
    assert charged[1:] == [count + len(ASKED) for count in before[1:]]
    assert charged[0] == before[0]
    running.restart(FIRST)
    running.wait_for_teachers(TEACHERS)


def test_a_second_aggregator_takes_over_what_the_first_one_leaves(
    held: tuple[Running, str, list[int]],
) -> None:
    running, batch, before = held
    second = running.start_second_aggregator()
    running.kill("aggregator")
    running.go_on(FIRST, SECOND)
    wait_for(lambda: "batch released" in running.log_of("second"), "the second to release")
    running.restart("aggregator")
    assert_released_and_charged_once(running, batch, before)
    assert "batch taken over" in running.log_of("second")
    running.kill("second")
    left = [each for each in read_processes(running.local.folder) if each != second]
    write_processes(running.local.folder, left)


@pytest.mark.parametrize("name", ["aggregator", FOURTH])
def test_who_dies_with_endorsements_in_goes_on_after_its_restart(
    endorsed: tuple[Running, str, list[int]], name: str
) -> None:
    """A teacher knows its keys, its ballot and its endorsement again, and opens the same list."""
    running, batch, before = endorsed
    running.kill(name)
    running.restart(name)
    running.go_on(SECOND, THIRD)
    assert_released_and_charged_once(running, batch, before)
    running.go_on(FIRST)
    running.wait_for_teachers(TEACHERS)


def test_an_aggregator_that_stops_ends_the_streams_of_those_who_watch(federation: Running) -> None:
    """In order: a stream that is cut off would raise here."""
    with federation.client.stream("GET", "/api/events") as watching:
        lines = watching.iter_lines()
        assert next(lines) == ": watching"
        federation.kill("aggregator", signal.SIGTERM)
        assert "event: end" not in list(lines)  # that is for a batch, not for a restart
    federation.restart("aggregator")
    federation.wait_for_teachers(TEACHERS)
