"""An aggregator on the broker: the channel of its batch runner, and how several share the work.

Every aggregator process has a name of its own, and teachers answer to the one that asked. A batch
that is in the store is offered to one process of the queue group; each process tells the others
what it runs, and a batch that nobody has run for a while is taken over by whoever notices. Two that
run the same batch do no harm: what is stored first counts (protocol/aggregator.py).
"""

import asyncio
import json
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nats.aio.msg import Msg

from dppp.errors import BatchStoreUnavailable, DpppError, WireError
from dppp.hashing import HASH_BYTES
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import BatchStore, StoredBatches
from dppp.protocol.events import Abort, Send, Stage
from dppp.protocol.messages import MOST_QUERIES, BatchId, BatchRequest
from dppp.protocol.refusals import batch_named_in
from dppp.service.batches.hub import BatchEvent
from dppp.service.batches.runner import MOST_OPEN_BATCHES, BatchRunner, Clock
from dppp.service.broker.connection import PRESENCE, QUEUE_GROUP, Broker, Subjects
from dppp.service.broker.frames import Reassembly, message_id, read_frame, split_message
from dppp.service.broker.progress import Holding, read_presence
from dppp.service.process.log_throttle import LogThrottle

log = logging.getLogger("dppp.aggregator")

_ANNOUNCE_SECONDS = 2
_ORPHAN_SECONDS = 8
_LATEST = 2**40
_FOR_ALL = 2
"""From this many teachers on, one message to all replaces a message to each."""


class AggregatorStation:
    """Carries a runner's messages. Use it in an ``async with`` block, inside the runner's."""

    def __init__(
        self, *, broker: Broker, subjects: Subjects, store: BatchStore, clock: Clock = time.time
    ) -> None:
        self.worker = secrets.token_hex(8)
        self._broker = broker
        self._subjects = subjects
        self._stored = StoredBatches(store)
        self._clock = clock
        self._runner: BatchRunner | None = None
        self._reassembly: dict[int, Reassembly] = {}
        self._heard_of: dict[BatchId, float] = {}
        self._drops = LogThrottle()
        self._held: dict[int, Mapping[bytes, Holding]] = {}
        self.on_slow: Callable[[int], object] = lambda _teacher: None
        """Told of each reminder that was not sent, since its teacher is still receiving."""
        self._loops: list[asyncio.Task[None]] = []

    def carry_for(self, runner: BatchRunner) -> None:
        """Whose messages these are."""
        self._runner = runner
        longest = runner.task.answer_bytes(MOST_QUERIES)
        self._reassembly = {index: Reassembly(longest) for index in runner.teachers}

    @property
    def runner(self) -> BatchRunner:
        """The runner that this station carries messages for."""
        assert self._runner is not None, "carry_for comes first"
        return self._runner

    @property
    def is_healthy(self) -> bool:
        """Whether the broker is in reach, and nothing has stopped."""
        is_running = bool(self._loops) and not any(loop.done() for loop in self._loops)
        return is_running and self._broker.is_connected

    async def __aenter__(self) -> "AggregatorStation":
        await self._broker.connect()
        for teacher in self._reassembly:  # each by itself: one who floods fills its own queue
            await self._broker.subscribe_to_one(
                self._subjects.answer(teacher, self.worker), self._take
            )
            await self._broker.subscribe_to_one(
                self._subjects.answer(teacher, PRESENCE), self._hear
            )
        await self._broker.subscribe(self._subjects.events, self._take_event)
        await self._broker.subscribe(self._subjects.work, self._take_work, queue=QUEUE_GROUP)
        self._loops = [
            asyncio.create_task(each)
            for each in (self._pass_events_on(), self._announce(), self._look_for_orphans())
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self._broker.close()

    async def send(self, sends: Sequence[Send]) -> None:
        """Send; what several teachers are sent in the same words goes to the broker once.

        A teacher reads two subjects, each in its order. So all that it is sent here goes to one of
        the two: a roster must not come after the request that needs it.
        """
        for messages, teachers in _in_same_words(sends).items():
            is_for_all = len(teachers) >= _FOR_ALL
            subject = self._subjects.all if is_for_all else self._subjects.to(teachers[0])
            for data in messages:
                for frame in split_message(data, teachers):
                    await self._broker.publish(subject, frame, reply=self.worker)

    async def remind(self, sends: Sequence[Send]) -> None:
        """Send again what may be lost, and not what a teacher says that it has or receives."""
        await self.send([send for send in sends if not self._is_held(send)])

    def _is_held(self, send: Send) -> bool:
        holding = self._held.get(send.teacher, {}).get(message_id(send.data))
        if holding is Holding.SOME:
            batch = batch_named_in(send.data)
            extra = {"batch": None if batch is None else batch.hex(), "teacher": send.teacher}
            log.warning("a teacher is still receiving", extra={**extra, "bytes": len(send.data)})
            self.on_slow(send.teacher)
        return holding is not None

    async def dispatch(self, request: BatchRequest) -> None:
        """Store a batch and offer it to one aggregator of the queue group.

        If the offer gets lost, whoever looks for batches that nobody runs will find it.
        """
        identifier = await self.runner.ask(Aggregator.put, request, now=int(self._clock()))
        await self._broker.publish(self._subjects.work, identifier)

    async def _take(self, message: Msg) -> None:
        teacher = self._subjects.sender_of(message.subject)
        if teacher is None or teacher not in self._reassembly:
            return
        try:
            data = self._reassembly[teacher].take(read_frame(message.data))
        except WireError as error:
            if times := self._drops.times(teacher):
                extra = {"teacher": teacher, "reason": error.one_line, "times": times}
                log.warning("message dropped", extra=extra)
            return
        if data is not None:
            self.runner.take(teacher, data)

    async def _hear(self, message: Msg) -> None:
        teacher = self._subjects.sender_of(message.subject)
        if teacher is None or teacher not in self._reassembly:
            return
        is_new, self._held[teacher] = read_presence(message.data)
        self.runner.hear(teacher)
        if is_new:
            await self.runner.remind_one(teacher)

    async def _take_work(self, message: Msg) -> None:
        if len(message.data) == HASH_BYTES:
            await self._adopt(BatchId(message.data))

    async def _adopt(self, identifier: BatchId) -> None:
        try:
            await self.runner.adopt(identifier)
        except BatchStoreUnavailable:
            return  # it is found again when the store is back
        except DpppError as error:
            extra = {"batch": identifier.hex(), "reason": error.one_line}
            log.error("cannot go on with a batch", extra=extra)

    async def _pass_events_on(self) -> None:
        with self.runner.hub.watch() as events:
            async for event in events:
                if isinstance(event, BatchEvent) and event.worker is None:
                    plain = {"worker": self.worker, "event": event.to_json()}
                    await self._broker.publish(self._subjects.events, json.dumps(plain).encode())

    async def _announce(self) -> None:
        while True:
            running = [each.hex() for each in self.runner.open_batches]
            plain = {"worker": self.worker, "running": running}
            await self._broker.publish(self._subjects.events, json.dumps(plain).encode())
            await asyncio.sleep(_ANNOUNCE_SECONDS)

    async def _take_event(self, message: Msg) -> None:
        """From another aggregator of this federation, or from the broker: nothing is assumed."""
        try:
            plain = json.loads(message.data)
            worker = str(plain["worker"])
            if worker == self.worker:
                return
            running = [_read_batch(each) for each in plain.get("running", ())[:MOST_OPEN_BATCHES]]
            event = _read_event(plain["event"], worker) if "event" in plain else None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("event dropped", extra={"reason": type(error).__name__})
            return
        for batch in running:
            self._heard_of[batch] = self._clock()
        if event is not None:
            await self._note(event)

    async def _note(self, event: BatchEvent) -> None:
        identifier = BatchId(bytes.fromhex(event.batch))
        self._heard_of[identifier] = self._clock()
        if event.is_last:
            await self.runner.refresh(identifier)
            outcome = await asyncio.to_thread(self._stored.receipt_or_abort, identifier)
            if (event.stage is Stage.ABORTED) != isinstance(outcome, Abort) or outcome is None:
                return  # the store knows of no such end
            if isinstance(outcome, Abort):
                event = replace(event, reason=outcome.reason)
        self.runner.hub.tell(event)

    async def _look_for_orphans(self) -> None:
        """The one way to go on after a crash: of this process, or of another that shares the store.

        Another that runs a batch says so every few seconds. A batch that nobody speaks of is
        nobody's, and whoever notices goes on with it.
        """
        while True:
            await asyncio.sleep(max(_ANNOUNCE_SECONDS, self.runner.store_watch.pause_seconds))
            try:
                unfinished = await self.runner.ask(Aggregator.unfinished)
                self._heard_of = {
                    each: at for each, at in self._heard_of.items() if each in unfinished
                }
                for identifier in unfinished:
                    if self._is_orphan(identifier):
                        await self.runner.adopt(identifier)
                        log.info("batch taken over", extra={"batch": identifier.hex()})
            except BatchStoreUnavailable:
                continue  # store_watch.py has said so, once
            except DpppError as error:
                log.error("cannot look for batches", extra={"reason": error.one_line})

    def _is_orphan(self, identifier: BatchId) -> bool:
        if identifier in self.runner.open_batches:
            return False
        now = self._clock()
        heard_at = self._heard_of[identifier] = min(self._heard_of.get(identifier, now), now)
        return now > heard_at + _ORPHAN_SECONDS  # a clock may have been put back


def _in_same_words(sends: Sequence[Send]) -> dict[tuple[bytes, ...], list[int]]:
    """All messages of each teacher, in order, and the teachers that are sent just these."""
    messages: defaultdict[int, list[bytes]] = defaultdict(list)
    for send in sends:
        messages[send.teacher].append(send.data)
    found: defaultdict[tuple[bytes, ...], list[int]] = defaultdict(list)
    for teacher, own in messages.items():
        found[tuple(own)].append(teacher)
    return found


def _read_batch(text: str) -> BatchId:
    found = BatchId(bytes.fromhex(text))
    if len(found) != HASH_BYTES:
        raise ValueError("the id of a batch has another length")
    return found


def _read_event(plain: dict[str, Any], worker: str) -> BatchEvent:
    """An event of another worker. The broker could have made it, so it is believed little.

    What a batch came to, and why, is read from the store.
    """
    if plain.pop("kind") != "batch":
        raise ValueError("an event of another kind")
    plain.pop("worker")
    stage, at, teacher = Stage(plain.pop("stage")), plain.pop("at"), plain.pop("teacher")
    batch, reason = plain.pop("batch"), plain.pop("reason")
    numbers = {name: plain.pop(name) for name in ("queries", "done", "of", "flagged", "size_bytes")}
    whole = [*numbers.values(), *([] if teacher is None else [teacher])]
    is_typed = type(at) in (int, float) and 0 <= at < _LATEST and isinstance(reason, str | None)
    if plain or not is_typed or not all(type(each) is int and 0 <= each < 2**31 for each in whole):
        raise ValueError("an event with other fields, or values out of range")
    _read_batch(batch)
    return BatchEvent(batch=batch, stage=stage, at=at, teacher=teacher, worker=worker, **numbers)
