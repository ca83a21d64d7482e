"""What a querier can find out about other queriers at the gateway: that the task's budget sinks."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.service.gateway.test_application import (
    ALICE,
    BOB,
    MOST_ROWS,
    Served,
    ask,
    serve_embedded,
)
from tests.service.gateway.test_page import PLAN

from dppp.errors import BatchStoreUnavailable
from dppp.protocol.events import Stage
from dppp.protocol.messages import BatchId
from dppp.service.batches.hub import (
    _MOST_WAITING,
    MOST_BATCHES,
    BatchEvent,
    EventHub,
    HubEvent,
    TeacherEvent,
)
from dppp.service.gateway.own_views import MOST_UNDER_WAY, Attendance, OwnViews, TookPart

SHARED = {"charged", "left", "epsilon_spent", "left_to_you"}
"""Of /api/budget: what is left of the task is everybody's, and docs/operations.md says so."""


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_embedded(most_rows=MOST_ROWS, insecure_testing=True, page=True) as served:
        yield served


@contextmanager
def watching(client: httpx.Client) -> Iterator[list[str]]:
    """The lines of /api/events as they come."""
    lines: list[str] = []
    is_open, is_enough = threading.Event(), threading.Event()

    def watch() -> None:
        with client.stream("GET", "/api/events") as stream:
            for line in stream.iter_lines():
                lines.append(line)
                is_open.set()
                if is_enough.is_set():
                    return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    assert is_open.wait(10)
    yield lines
    is_enough.set()
    thread.join(10)


def batch_events(lines: list[str]) -> list[dict[str, Any]]:
    found = [json.loads(line[5:]) for line in list(lines) if line.startswith("data:")]
    return [event for event in found if event["kind"] == "batch"]


def wait_for(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def test_the_stream_of_events_tells_a_querier_of_its_own_batches_only(served: Served) -> None:
    alice, bob = served.client(ALICE), served.client(BOB)
    with watching(bob) as lines:
        others = ask(alice, [[1.0, 1.0], [2.0, 2.0]])
        own = ask(bob, [[0.0, 7.0]])
        wait_for(
            lambda: any(event["stage"] == "released" for event in batch_events(lines)),
            "bob's own release in bob's stream",
        )
    assert {event["batch"] for event in batch_events(lines)} == {own["batch"]}
    assert batch_events(lines)[0]["stage"] == "votes"
    for secret in (others["batch"], others["id"]):
        assert secret not in "".join(lines)


OF_THE_TASK = {"/api/budget": 0, "/api/card": 0}
"""Both say how much of the task is spent, whoever spent it."""


def everything(client: httpx.Client) -> dict[str, Any]:
    """The answer of every address that needs no id, by the gateway's own description."""
    described = client.get("/openapi.json").json()["paths"]
    paths = [path for path, ways in described.items() if "get" in ways and "{" not in path]
    asked = {path: PLAN if path == "/api/plan" else {} for path in paths if path != "/api/events"}
    assert {"/health", "/api/budget", "/api/teachers", "/api/batches"} <= asked.keys()
    return {
        path: answer.json() if "json" in answer.headers["content-type"] else answer.content
        for path, answer in ((path, client.get(path, params=each)) for path, each in asked.items())
    }


def test_nothing_that_a_querier_is_told_changes_with_anothers_batch_but_the_tasks_budget(
    served: Served,
) -> None:
    alice, bob = served.client(ALICE), served.client(BOB)
    ask(bob, [[0.0, 7.0]])
    wait_for(
        lambda: all(each["ballots"] == 1 for each in bob.get("/api/teachers").json()),
        "five ballots on bob's batch",
    )
    before = everything(bob)
    served.embedded.channel.silent |= {2}
    ask(alice, [[1.0, 1.0]])
    assert everything(bob) | OF_THE_TASK == before | OF_THE_TASK
    budget = before["/api/budget"]
    after = everything(bob)["/api/budget"]
    assert {name for name in budget if budget[name] != after[name]} <= SHARED
    assert after["charged"] == 2
    assert after["yours"] == budget["yours"] == 1
    assert {each["teacher"]: each["missed"] for each in alice.get("/api/teachers").json()}[2] == 1


def test_a_batch_of_another_that_is_under_way_is_not_seen_either(served: Served) -> None:
    alice, bob = served.client(ALICE), served.client(BOB)
    before = everything(bob)
    served.embedded.channel.silent |= {1, 2, 3, 4, 5}
    assert alice.post("/api/batches", json={"rows": [[1.0, 1.0]]}).status_code == 202
    assert everything(bob) | OF_THE_TASK == before | OF_THE_TASK


def test_that_a_row_was_released_to_another_is_not_told(served: Served) -> None:
    """Each querier has its own row key, so a row of another is a new one, and costs the same."""
    alice, bob = served.client(ALICE), served.client(BOB)  # alice may fetch transcripts
    with watching(alice) as lines:
        others = ask(bob, [[1.0, 1.0]])
        new = ask(alice, [[1.0, 1.0]])
        known = ask(alice, [[1.0, 1.0]])
        mixed = ask(alice, [[1.0, 1.0], [0.0, 7.0]])
    assert (new["charged"], known["charged"], known["batch"], mixed["charged"]) == (1, 0, None, 1)
    told = [alice.get("/api/batches").text, *lines]
    for each in (known, mixed):
        for path in ("", "/labels", "/verification", "/receipt", "/transcript"):
            answer = alice.get(f"/api/batches/{each['id']}{path}")
            assert answer.status_code == (200 if each is mixed or path in ("", "/labels") else 409)
            assert bytes.fromhex(others["batch"]) not in answer.content
            told.append(answer.content.decode("latin-1"))
    for secret in (others["batch"], others["id"]):
        assert secret not in "".join(told)


def batch_event(batch: int, stage: Stage, teacher: int | None = None, **more: Any) -> BatchEvent:
    name = f"{batch:064x}"
    return BatchEvent(batch=name, stage=stage, at=float(batch), queries=1, teacher=teacher, **more)


async def owners_of(batch: BatchId) -> tuple[str, ...]:
    """Even ones are bob's; that of 1,001 is in no job, and for that of 1,003 the store is away."""
    number = int.from_bytes(batch, "big")
    if number == 1_003:
        raise BatchStoreUnavailable("the store is away")
    if number == 1_005:
        return ("alice", "bob")
    return () if number == 1_001 else (("alice", "bob")[number % 2 == 0],)


@contextmanager
def two_views() -> Iterator[tuple[EventHub, OwnViews]]:
    hub = EventHub()
    yield hub, OwnViews(hub, owners_of=owners_of, queriers=("alice", "bob"), teachers=range(1, 4))


async def settle() -> None:
    for _ in range(3 * _MOST_WAITING):
        await asyncio.sleep(0)


def test_a_batch_whose_querier_cannot_be_found_out_is_told_to_nobody() -> None:
    online = TeacherEvent(teacher=1, is_online=True, at=1.0)
    of_bob = batch_event(2, Stage.VOTES)

    async def story(name: str) -> list[HubEvent]:
        with two_views() as (hub, views):
            async with views:
                await settle()
                with views.of(name).hub.watch() as events:
                    for each in (1_001, 1_003):
                        hub.tell(batch_event(each, Stage.VOTES))
                    hub.tell(of_bob)
                    hub.tell(online)
                    await settle()
                    hub.end()
                    return [event async for event in events]

    assert asyncio.run(story("alice")) == [online]
    assert asyncio.run(story("bob")) == [of_bob, online]


def test_however_busy_others_are_a_slow_reader_loses_nothing_of_its_own() -> None:
    """What it lost, and the times that were forgotten, would tell how busy they are."""

    async def story() -> tuple[list[HubEvent], dict[str, float]]:
        with two_views() as (hub, views):
            async with views:
                await settle()
                with views.of("bob").hub.watch() as events:
                    hub.tell(batch_event(2, Stage.VOTES))
                    for number in range(_MOST_WAITING + MOST_BATCHES):
                        hub.tell(batch_event(2_001 + 2 * number, Stage.VOTES))
                        await asyncio.sleep(0)
                    await settle()
                    hub.end()
                    found = [event async for event in events]
                return found, views.of("bob").hub.stage_times.of(f"{2:064x}")

    found, times = asyncio.run(story())
    assert found == [batch_event(2, Stage.VOTES)]
    assert times == {"votes": 2.0}


def test_when_a_gateway_stops_streams_end_and_who_comes_back_is_told_again() -> None:
    async def story() -> int:
        with two_views() as (hub, views):
            async with views:
                await settle()
                with views.of("bob").hub.watch() as events:
                    hub.end()
                    assert [event async for event in events] == []
                with views.of("bob").hub.watch() as events:
                    hub.tell(batch_event(2, Stage.VOTES))
                    hub.end()
                    return len([event async for event in events])

    assert asyncio.run(story()) == 1


def test_a_batch_that_two_processes_run_counts_once_and_one_without_a_beginning_not_at_all() -> (
    None
):
    attendance = Attendance(range(1, 4))
    for worker in (None, "another"):
        attendance.note(batch_event(1, Stage.VOTES, worker=worker))
        attendance.note(batch_event(1, Stage.BALLOTS, 2, worker=worker))
    attendance.note(batch_event(1, Stage.RELEASED))
    attendance.note(batch_event(1, Stage.BALLOTS, 3, worker="another"))
    attendance.note(batch_event(1, Stage.RELEASED, worker="another"))
    attendance.note(batch_event(5, Stage.ABORTED))
    assert attendance.of(1) == TookPart(missed=1, has_missed_last=True)
    assert attendance.of(2) == TookPart(answered_at=1.0, ballots=1)
    assert attendance.of(3) == TookPart(missed=1, has_missed_last=True)


def test_batches_whose_end_is_never_told_are_forgotten() -> None:
    attendance = Attendance([1])
    for number in range(MOST_UNDER_WAY + 1):
        attendance.note(batch_event(number, Stage.VOTES))
    attendance.note(batch_event(0, Stage.RELEASED))
    assert attendance.of(1).missed == 0
    attendance.note(batch_event(1, Stage.RELEASED))
    assert attendance.of(1).missed == 1
