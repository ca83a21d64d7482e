"""Real stations and a real broker, and one teacher behind a line of few bytes a second.

Everything is ten times as fast as in life: the line, the broker's deadline for a write, the first
reminder and the signs of life. In life: 1,000 rows of 784 numbers to a teacher behind 4 Mbit/s.
"""

import asyncio
import contextlib
import logging
import re
import time
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import generate_latest
from tests.service.broker.brokers import free_port, running_broker
from tests.service.broker.slow_link import SlowLink, slow_link
from tests.service.ceremony.ceremonies import hold_masked
from tests.small_federation import kept_certificate, seal_table

from dppp.federation import Parties, create_federation
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.messages import BatchId, BatchRequest, batch_id
from dppp.protocol.receipt import Receipt
from dppp.service.aggregator.metrics import AggregatorMetrics
from dppp.service.aggregator.station import AggregatorStation
from dppp.service.batches import reminders
from dppp.service.batches.hub import EventHub
from dppp.service.batches.runner import BatchRunner
from dppp.service.broker.connection import Broker, BrokerAccess, Subjects
from dppp.service.ceremony.configurations import broker_configuration
from dppp.service.gateway.jobs import Jobs
from dppp.service.teacher import station as teacher_station
from dppp.service.teacher.metrics import TeacherMetrics
from dppp.service.teacher.station import TeacherStation

TEACHERS, SLOW = 3, 3
FEATURES = 784
FASTER = 10
BYTES_PER_SECOND = 1_500_000
SUBJECTS = Subjects("dppp.slow")


@pytest.fixture(scope="module")
def parties() -> Parties:
    """Nobody may vanish: without the slow one there is no release."""
    promise = kept_certificate(
        "skellam",
        epsilon=20,
        delta=1e-4,
        teachers=TEACHERS,
        colluders=1,
        dropouts=0,
        queries=5_000,
        classes=2,
    )
    return create_federation(
        name="slow",
        class_names=["no", "yes"],
        features=[f"pixel {number}" for number in range(FEATURES)],
        certificate=promise,
        models=[lambda rows: [0] * len(rows)] * TEACHERS,
    )


@pytest.fixture
def broker_port(tmp_path: Path) -> int:
    """A broker with the limits that `dppp setup` writes; everybody may say everything."""
    text = broker_configuration(
        hold_masked(tmp_path / "ceremony").federation, folder=tmp_path, listen="127.0.0.1:1"
    )
    limits = re.findall(r"(?m)^(?:max_|ping_|write_).*$", text)
    (deadline,) = (each for each in limits if each.startswith("write_deadline"))
    (seconds,) = re.findall(r"\d+", deadline)
    faster = f'write_deadline: "{1_000 * int(seconds) // FASTER}ms"'
    port = free_port()
    lines = [f"host: 127.0.0.1\nport: {port}", faster, *(set(limits) - {deadline})]
    (tmp_path / "nats.conf").write_text("\n".join(lines), encoding="utf-8")
    return port


def dial(port: int, name: str) -> Broker:
    servers = (f"nats://127.0.0.1:{port}",)
    return Broker(BrokerAccess(servers=servers, tls=None, nats_seed=None, name=name))


def teacher_at(parties: Parties, index: int, port: int) -> TeacherStation:
    return TeacherStation(
        teacher=parties.teachers[index],
        broker=dial(port, f"teacher {index}"),
        subjects=SUBJECTS,
        metrics=TeacherMetrics(),
    )


class Story:
    """An aggregator that asks about so many rows, and what it came to."""

    def __init__(self, parties: Parties, port: int) -> None:
        self.parties = parties
        store = MemoryBatchStore()
        self.station = AggregatorStation(
            broker=dial(port, "aggregator"), subjects=SUBJECTS, store=store
        )
        aggregator = Aggregator(task=parties.task, signer=parties.aggregator_signer, store=store)
        self.runner = BatchRunner(aggregator=aggregator, channel=self.station, hub=EventHub())
        self.station.carry_for(self.runner)
        self.metrics = AggregatorMetrics(
            self.runner, Jobs(runner=self.runner, store=store, allowances={})
        )
        self.station.on_slow = self.metrics.note_slow

    async def ask(self, rows: int, within_seconds: float) -> object:
        table = np.random.default_rng(rows).random((rows, FEATURES))
        request = BatchRequest(
            deadline=int(time.time()) + 60, queries=seal_table(self.parties.task, table)
        )
        await self.runner.submit(request)
        return await self.end_of(request.batch_id, within_seconds)

    async def end_of(self, batch: BatchId, within_seconds: float) -> object:
        until = time.monotonic() + within_seconds
        while time.monotonic() < until:
            outcome = await self.runner.ask(Aggregator.outcome, batch)
            if outcome is not None:
                return outcome
            await asyncio.sleep(0.1)
        return None


async def tell(
    parties: Parties, port: int, rows: int, within_seconds: float
) -> tuple[object, SlowLink, str]:
    """Ask through a slow line; the outcome, the line, and the metrics afterwards."""
    async with contextlib.AsyncExitStack() as stack:
        slow_port, link = await stack.enter_async_context(
            slow_link(to_port=port, bytes_per_second=BYTES_PER_SECOND)
        )
        story = Story(parties, port)
        await stack.enter_async_context(story.runner)
        await stack.enter_async_context(story.station)
        for index in range(1, TEACHERS + 1):
            chosen = slow_port if index == SLOW else port
            await stack.enter_async_context(teacher_at(parties, index, chosen))
        await story.end_of(BatchId(bytes(32)), 0.5)  # until all were heard of
        await story.ask(1, within_seconds)  # keys of the epoch
        outcome = await story.ask(rows, within_seconds)
        return outcome, link, generate_latest(story.metrics.registry).decode()


def test_a_long_batch_reaches_a_teacher_behind_a_slow_line_once(
    parties: Parties,
    broker_port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(reminders, "FIRST_SECONDS", 10 / FASTER)
    monkeypatch.setattr(reminders, "slow_seconds", lambda _: 1)  # so that it is reminded in vain
    monkeypatch.setattr(teacher_station, "_PRESENCE_SECONDS", 3 / FASTER)
    rows = 1_500
    payload = rows * FEATURES * 8
    with (
        running_broker(tmp_path / "nats.conf", broker_port),
        caplog.at_level(logging.WARNING, "dppp"),
    ):
        outcome, link, metrics = asyncio.run(tell(parties, broker_port, rows, 40))
    assert isinstance(outcome, Receipt), outcome
    assert link.dialled == 1  # the broker did not hang up
    # Once; again where a busy machine was slow to say so, but each time after twice the pause.
    assert payload < link.carried < 4 * payload
    said = [record for record in caplog.records if record.message == "a teacher is still receiving"]
    assert {vars(record)["teacher"] for record in said} == {SLOW}
    assert {vars(record)["batch"] for record in said} == {
        batch_id(parties.task.task_id, outcome.query_ids).hex()
    }
    assert f'dppp_slow_links_total{{teacher="{SLOW}"}} {float(len(said))}' in metrics
    assert 'dppp_slow_links_total{teacher="1"} 0.0' in metrics
