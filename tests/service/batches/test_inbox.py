"""One teacher who sends without end, beside teachers who do their part."""

import asyncio
import contextlib
import time

import pytest
from tests.protocol.small import small
from tests.small_federation import seal_table

from dppp.errors import Busy
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.messages import BatchRequest
from dppp.protocol.receipt import Receipt
from dppp.service.batches.hub import EventHub
from dppp.service.batches.inbox import MOST_BYTES, MOST_MESSAGES, Inbox
from dppp.service.batches.runner import BatchRunner
from dppp.service.gateway.embedded import EmbeddedChannel

FLOODING = 1


def test_teachers_are_served_in_turn_and_each_loses_only_its_own() -> None:
    async def take_all() -> list[tuple[int, bytes]]:
        inbox = Inbox()
        for place in range(MOST_MESSAGES):
            inbox.put(FLOODING, bytes([place % 256]))
        with pytest.raises(Busy):
            inbox.put(FLOODING, b"one more")
        for teacher in (2, 3):
            inbox.put(teacher, b"first")
            inbox.put(teacher, b"second")
        return [await inbox.get() for _ in range(8)]

    assert asyncio.run(take_all()) == [
        *[(1, b"\0"), (2, b"first"), (3, b"first")],
        *[(1, b"\1"), (2, b"second"), (3, b"second")],
        *[(1, b"\2"), (1, b"\3")],
    ]


def test_bytes_that_wait_are_bounded_but_one_long_message_is_taken() -> None:
    async def fill() -> None:
        inbox = Inbox()
        long = bytes(MOST_BYTES + 1)
        inbox.put(FLOODING, long)
        with pytest.raises(Busy):
            inbox.put(FLOODING, b"x")
        assert await inbox.get() == (FLOODING, long)
        inbox.put(FLOODING, bytes(MOST_BYTES))
        with pytest.raises(Busy):
            inbox.put(FLOODING, b"x")

    asyncio.run(fill())


def test_a_teacher_who_floods_does_not_keep_a_batch_from_being_released() -> None:
    async def run() -> object:
        parties = small()
        channel = EmbeddedChannel(parties.teachers)
        aggregator = Aggregator(
            task=parties.task,
            public=parties.key.public,
            signer=parties.aggregator_signer,
            store=MemoryBatchStore(),
        )
        runner = BatchRunner(aggregator=aggregator, channel=channel, hub=EventHub())
        channel.answer_to(runner.take, runner.hear)

        async def flood() -> None:
            while True:
                for _ in range(2_000):
                    runner.take(FLOODING, b"junk")
                await asyncio.sleep(0)

        async with runner:
            flooding = asyncio.create_task(flood())
            await asyncio.sleep(0.5)
            queries = seal_table(parties.task, [[1.0, 2.0]])
            deadline = int(time.time()) + 20
            batch = await runner.submit(BatchRequest(deadline=deadline, queries=queries))
            outcome: object = None
            while outcome is None:
                outcome = await runner.ask(Aggregator.outcome, batch)
                await asyncio.sleep(0.1)
            flooding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await flooding
        await channel.close()
        return outcome

    outcome = asyncio.run(run())
    assert isinstance(outcome, Receipt), outcome
