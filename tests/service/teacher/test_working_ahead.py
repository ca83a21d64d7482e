"""A teacher's station in quiet moments: it works ahead, and what fails there stops nothing."""

import asyncio
import logging

import pytest
from prometheus_client import generate_latest

from dppp import calibrate, create_federation
from dppp.errors import EpochSecretsUnavailable
from dppp.federation import Federation, Parties, in_process
from dppp.protocol.signing import sign
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import encode
from dppp.protocol.with_masks.messages import KeyRequest
from dppp.protocol.with_masks.teacher import MaskSide
from dppp.service.broker.connection import Broker, BrokerAccess, Subjects
from dppp.service.teacher.metrics import TeacherMetrics
from dppp.service.teacher.station import TeacherStation

WORKER = "0123456789abcdef"


@pytest.fixture
def parties() -> Parties:
    promise = calibrate("skellam", epsilon=8, delta=1e-5, teachers=4, queries=5, classes=2)
    return create_federation(
        name="fruit",
        class_names=["apple", "pear"],
        features=["weight"],
        certificate=promise,
        models=[lambda rows: [1] * len(rows)] * 4,
    )


def station_of(teacher: Teacher, metrics: TeacherMetrics | None = None) -> TeacherStation:
    """One whose broker is never dialled."""
    access = BrokerAccess(servers=("tls://127.0.0.1:9",), tls=None, nats_seed=None, name="teacher")
    return TeacherStation(
        teacher=teacher,
        broker=Broker(access),
        subjects=Subjects("dppp.test"),
        metrics=metrics or TeacherMetrics(),
    )


def waiting(teacher: Teacher) -> int:
    """Dealings that wait for the next ballots."""
    side = teacher._side
    assert isinstance(side, MaskSide)
    return sum(len(each) for each in side._prepared.values())


async def work_ahead_for(station: TeacherStation, seconds: float) -> None:
    working = asyncio.create_task(station._work_ahead())
    await asyncio.sleep(seconds)
    assert not working.done()
    working.cancel()


def test_dealings_are_made_ahead_and_each_is_used_once(parties: Parties) -> None:
    teacher = parties.teachers[1]
    federation = Federation(aggregator=parties.aggregator, deliver=in_process(parties.teachers))
    asyncio.run(work_ahead_for(station_of(teacher), 0.2))
    assert waiting(teacher) == 0  # nobody's key is known yet
    federation.ask([[1.0]])
    asyncio.run(work_ahead_for(station_of(teacher), 1))
    assert waiting(teacher) == 2
    federation.ask([[2.0]])
    assert waiting(teacher) == 1
    federation.ask([[3.0]])
    federation.ask([[4.0]])
    assert waiting(teacher) == 0


def test_a_message_that_waits_comes_before_work_ahead(parties: Parties) -> None:
    teacher = parties.teachers[1]
    Federation(aggregator=parties.aggregator, deliver=in_process(parties.teachers)).ask([[1.0]])

    async def with_a_message() -> None:
        station = station_of(teacher)
        station._queue(b"waits", WORKER)
        await work_ahead_for(station, 0.3)

    asyncio.run(with_a_message())
    assert waiting(teacher) == 0


def test_secrets_that_cannot_be_forgotten_are_said_and_the_teacher_is_not_healthy(
    parties: Parties, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*, now: int) -> bool:
        raise EpochSecretsUnavailable(f"the disk is full at {now}")

    station = station_of(parties.teachers[1])
    monkeypatch.setattr(parties.teachers[1], "prepare", fail)
    with caplog.at_level(logging.ERROR, "dppp.teacher"):
        asyncio.run(work_ahead_for(station, 0.3))
    assert [record.message for record in caplog.records] == ["the secrets of epochs cannot be used"]
    assert not station._are_stores_usable


def test_messages_under_masks_have_metrics_of_their_own(parties: Parties) -> None:
    metrics = TeacherMetrics()
    station = station_of(parties.teachers[1], metrics)
    epoch = parties.task.epoch_at(int(station._clock()))
    asked = KeyRequest(task_id=parties.task.task_id, epoch=epoch)
    assert station._answer(encode(sign(asked, parties.aggregator_signer))) is not None
    lines = generate_latest(metrics.registry).decode().splitlines()
    assert 'dppp_answers_total{message="epoch key request"} 1.0' in lines
