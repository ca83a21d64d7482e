"""An aggregator whose store fails without killing it, or holds more than it remembers."""

import pytest
from tests.protocol.attacker import Attacker
from tests.protocol.parties import batch_of, request_for, set_up
from tests.small_federation import reply_of

from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import Kind, MemoryBatchStore
from dppp.protocol.events import Abort
from dppp.protocol.messages import BatchId
from dppp.protocol.receipt import Receipt


class FullDisk(MemoryBatchStore):
    """A store that takes nothing of one kind until there is room."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind: str | None = kind
        self.puts = 0

    def put_once(self, key: bytes, kind: Kind, data: bytes) -> bytes:
        self.puts += 1
        if kind == self.kind:
            raise OSError("no space left on device")
        return super().put_once(key, kind, data)


@pytest.fixture
def attacker() -> Attacker:
    return Attacker(set_up(5, 1, 1))


def _new_aggregator(attacker: Attacker, store: MemoryBatchStore) -> Aggregator:
    setting = attacker.setting
    return setting.aggregator(store)


def _run(attacker: Attacker, aggregator: Aggregator, now: int = 0) -> BatchId:
    """Carry messages until there is nothing left to say."""
    request = request_for(attacker.setting, [7])
    sends = list(aggregator.start(request, now=now).sends or aggregator.tick(now).sends)
    while sends:
        answers = [
            (send.teacher, reply_of(attacker.teachers[send.teacher], send.data, now=now))
            for send in sends
        ]
        sends = [
            send
            for teacher, data in answers
            for send in aggregator.receive(teacher, data, now=now).sends
        ]
    return batch_of(attacker.setting, request)


@pytest.mark.parametrize("kind", [Kind.REQUEST, Kind.LIST, Kind.OUTCOME])
def test_nothing_is_told_before_it_is_kept(attacker: Attacker, kind: str) -> None:
    store = FullDisk(kind)
    aggregator = _new_aggregator(attacker, store)
    batch = batch_of(attacker.setting, request_for(attacker.setting, [7]))
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            _run(attacker, aggregator)
        assert aggregator.outcome(batch) is None
    assert (attacker.answered(1) == 0) == (kind == Kind.REQUEST)
    store.kind = None
    _run(attacker, aggregator)
    assert isinstance(aggregator.outcome(batch), Receipt)


def test_an_abort_stays_one_though_the_batch_is_started_before_the_store_is_read(
    attacker: Attacker,
) -> None:
    store = MemoryBatchStore()
    first = _new_aggregator(attacker, store)
    request = request_for(attacker.setting, [7], deadline=10)
    attacker.collect(request)
    first.start(request, now=0)
    first.tick(10)
    batch = batch_of(attacker.setting, request)
    assert isinstance(first.outcome(batch), Abort)
    second = _new_aggregator(attacker, store)
    _run(attacker, second)
    assert second.outcome(batch) == first.outcome(batch)


def test_what_is_kept_is_not_written_again_at_every_tick(attacker: Attacker) -> None:
    store = FullDisk("nothing")
    aggregator = _new_aggregator(attacker, store)
    _run(attacker, aggregator)
    before = store.puts
    for now in range(10):
        aggregator.tick(now)
    assert store.puts == before
