"""How an aggregator sends: the same words once, and to each teacher in the order that it needs."""

import asyncio
from collections.abc import Sequence

import pytest

from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.events import Send
from dppp.service.aggregator.station import AggregatorStation
from dppp.service.broker.connection import Broker, BrokerAccess, Subjects
from dppp.service.broker.frames import read_frame

ROSTER, REQUEST, LISTS = b"roster", b"request", (b"list 1", b"list 2", b"list 3")


class NotedBroker(Broker):
    """A broker that is never dialled, and remembers what it was given."""

    def __init__(self) -> None:
        super().__init__(
            BrokerAccess(servers=("tls://127.0.0.1:9",), tls=None, nats_seed=None, name="a")
        )
        self.given: list[tuple[str, tuple[int, ...], bytes]] = []

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        frame = read_frame(data)
        assert reply
        self.given.append((subject.removeprefix("dppp.test."), frame.addressed, frame.piece))


@pytest.fixture
def broker() -> NotedBroker:
    return NotedBroker()


def send(broker: NotedBroker, *sends: tuple[int, bytes]) -> Sequence[tuple[str, object, bytes]]:
    station = AggregatorStation(
        broker=broker, subjects=Subjects("dppp.test"), store=MemoryBatchStore()
    )
    asyncio.run(station.send([Send(teacher=teacher, data=data) for teacher, data in sends]))
    return broker.given


def test_the_same_words_for_several_go_to_the_broker_once_and_in_order(
    broker: NotedBroker,
) -> None:
    sends = [(teacher, data) for teacher in (1, 2, 3) for data in (ROSTER, REQUEST)]
    assert send(broker, *sends) == [("all", (1, 2, 3), ROSTER), ("all", (1, 2, 3), REQUEST)]


def test_all_that_a_teacher_is_sent_at_once_is_on_one_subject_in_order(
    broker: NotedBroker,
) -> None:
    """On two subjects the list could come before the roster that it needs."""
    sends = [(teacher, data) for teacher in (1, 2, 3) for data in (ROSTER, LISTS[teacher - 1])]
    assert send(broker, *sends) == [
        (f"to.{teacher}", (teacher,), data)
        for teacher in (1, 2, 3)
        for data in (ROSTER, LISTS[teacher - 1])
    ]


def test_one_who_lacks_the_roster_is_sent_it_before_the_request(broker: NotedBroker) -> None:
    assert send(broker, (1, REQUEST), (2, ROSTER), (2, REQUEST), (3, REQUEST)) == [
        ("all", (1, 3), REQUEST),
        ("to.2", (2,), ROSTER),
        ("to.2", (2,), REQUEST),
    ]
