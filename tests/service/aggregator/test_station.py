"""What aggregators of one federation tell each other: taken if it is an event, dropped if not."""

import asyncio
import json
import logging
from typing import Any

import pytest
from nats.aio.msg import Msg
from tests.protocol.small import small

from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.events import Stage
from dppp.service.aggregator.station import AggregatorStation
from dppp.service.batches.hub import BatchEvent, EventHub
from dppp.service.batches.runner import BatchRunner
from dppp.service.broker.connection import Broker, BrokerAccess, Subjects

BATCH = "ab" * 32
EVENT = BatchEvent(batch=BATCH, stage=Stage.TALLY, at=1.0, queries=3).to_json()


@pytest.fixture
def station() -> AggregatorStation:
    """One whose broker is never dialled: messages are handed to it by the test."""
    parties, store = small(), MemoryBatchStore()
    access = BrokerAccess(servers=("tls://127.0.0.1:9",), tls=None, nats_seed=None, name="a")
    station = AggregatorStation(broker=Broker(access), subjects=Subjects("dppp.test"), store=store)
    aggregator = Aggregator(
        task=parties.task,
        public=parties.key.public,
        signer=parties.aggregator_signer,
        store=store,
    )
    station.carry_for(BatchRunner(aggregator=aggregator, channel=station, hub=EventHub()))
    return station


def tell(station: AggregatorStation, data: bytes) -> None:
    asyncio.run(station._take_event(Msg(_client=None, subject="events", data=data)))  # type: ignore[arg-type]


def told(station: AggregatorStation) -> list[str]:
    return list(station.runner.hub.stage_times.of(BATCH))


def test_an_event_of_another_aggregator_is_passed_on(station: AggregatorStation) -> None:
    tell(station, json.dumps({"worker": "other", "event": EVENT}).encode())
    assert told(station) == ["tally"]


def test_an_own_event_that_comes_back_is_not_told_twice(station: AggregatorStation) -> None:
    tell(station, json.dumps({"worker": station.worker, "event": EVENT}).encode())
    assert told(station) == []


BAD: dict[str, Any] = {
    "another kind": {"worker": "other", "event": EVENT | {"kind": "teacher"}},
    "no kind": {"worker": "other", "event": {}},
    "another stage": {"worker": "other", "event": EVENT | {"stage": "bribed"}},
    "a batch that is no id": {"worker": "other", "event": EVENT | {"batch": "batch"}},
    "a batch that is no text": {"worker": "other", "event": EVENT | {"batch": 7}},
    "a field too many": {"worker": "other", "event": EVENT | {"votes": [1]}},
    "no object": {"worker": "other", "event": [EVENT]},
    "no worker": {"event": EVENT},
    "a time that is text": {"worker": "other", "event": EVENT | {"at": "<b>never</b>"}},
    "a time that is not a number": {"worker": "other", "event": EVENT | {"at": float("nan")}},
    "a list of teachers": {"worker": "other", "event": EVENT | {"teacher": [1]}},
    "a negative number": {"worker": "other", "event": EVENT | {"done": -1}},
    "a reason that is not text": {"worker": "other", "event": EVENT | {"reason": 7}},
    "a short id": {"worker": "other", "event": EVENT | {"batch": "ab"}},
    "a list": [EVENT],
    "running what is no id": {"worker": "other", "running": ["batch"]},
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_event_is_dropped_and_logged(
    name: str, station: AggregatorStation, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "dppp.aggregator"):
        tell(station, json.dumps(BAD[name]).encode())
    assert [record.message for record in caplog.records] == ["event dropped"]
    assert told(station) == []


@pytest.mark.parametrize("stage", ["released", "aborted"])
def test_an_end_that_the_store_does_not_know_is_not_told(
    station: AggregatorStation, stage: str
) -> None:
    """Or the broker could tell a querier that its batch was aborted, in words of its choice."""
    forged = EVENT | {"stage": stage, "reason": "pay first"}
    tell(station, json.dumps({"worker": "other", "event": forged}).encode())
    assert told(station) == []


def test_what_is_no_json_is_dropped(
    station: AggregatorStation, caplog: pytest.LogCaptureFixture
) -> None:
    for data in (b"", b"{", b"\xff"):
        tell(station, data)
    assert len(caplog.records) == 3
