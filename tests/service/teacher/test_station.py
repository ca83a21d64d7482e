"""What an aggregator may send a teacher without end, and what that takes at the teacher's."""

import msgpack
import pytest
from prometheus_client import generate_latest
from tests.protocol.small import small

from dppp.protocol.wire import VERSION
from dppp.service.broker.connection import Broker, BrokerAccess, Subjects
from dppp.service.teacher import station as teacher_station
from dppp.service.teacher.metrics import TeacherMetrics
from dppp.service.teacher.station import TeacherStation

WORKER = "0123456789abcdef"


@pytest.fixture
def metrics() -> TeacherMetrics:
    return TeacherMetrics()


@pytest.fixture
def station(metrics: TeacherMetrics) -> TeacherStation:
    """One whose broker is never dialled: messages are handed to it by the test."""
    access = BrokerAccess(servers=("tls://127.0.0.1:9",), tls=None, nats_seed=None, name="teacher")
    return TeacherStation(
        teacher=small().teachers[1],
        broker=Broker(access),
        subjects=Subjects("dppp.test"),
        metrics=metrics,
    )


def test_kinds_that_somebody_made_up_make_no_new_metrics(
    station: TeacherStation, metrics: TeacherMetrics
) -> None:
    before = len(generate_latest(metrics.registry).decode().splitlines())
    for number in range(300):
        made_up = msgpack.packb({"version": VERSION, "kind": f"kind {number}"})
        assert station._answer(made_up) is None
    lines = generate_latest(metrics.registry).decode().splitlines()
    assert len(lines) < before + 50
    assert 'dppp_refusals_total{message="unknown",rule="InputError"} 300.0' in lines


def test_what_waits_is_bounded_in_bytes_too(
    station: TeacherStation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher_station, "MOST_BYTES", 1_000)
    station._queue(bytes(2_000), WORKER)  # one alone is taken, whatever its length
    for number in range(10):
        station._queue(bytes([number]) * 100, WORKER)
    assert station._waiting.qsize() == 1
