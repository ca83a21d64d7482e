"""Runs an aggregator's batches: gives it messages and time, sends what it wants sent.

The aggregator (protocol/aggregator.py) knows no clock and no network; this is where it gets both.
Its arithmetic runs in one thread of its own, so that progress, health and other queriers are served
meanwhile. A channel carries bytes to teachers: a broker, or teachers in the same process.
"""

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from dppp.errors import BatchStoreUnavailable, Busy, DpppError, TeachersMissing
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.events import (
    Aborted,
    AnswerCounted,
    BallotCounted,
    EndorsementCounted,
    Event,
    ListClosed,
    Output,
    Released,
    Send,
    StageEvent,
    Started,
    TeacherBlamed,
    TeacherRefused,
)
from dppp.protocol.messages import BatchId, BatchRequest
from dppp.protocol.refusals import batch_named_in
from dppp.service.batches.hub import BatchEvent, EventHub, TeacherEvent
from dppp.service.batches.inbox import Inbox
from dppp.service.batches.reminders import Reminders
from dppp.service.batches.store_watch import StoreWatch
from dppp.service.process.about_batch import about_batch
from dppp.service.process.log_throttle import LogThrottle

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
Clock = Callable[[], float]

MOST_OPEN_BATCHES = 64
_TICK_SECONDS = 0.25
_OFFLINE_AFTER_SECONDS = 12

log = logging.getLogger("dppp.aggregator")


class Channel(Protocol):
    """Carries messages to teachers; what they answer comes back by `BatchRunner.take`."""

    async def send(self, sends: Sequence[Send]) -> None:
        """Send; messages may get lost."""

    async def remind(self, sends: Sequence[Send]) -> None:
        """Send again what was asked before and may be lost."""


@dataclass(slots=True, kw_only=True)
class TeacherState:
    """What is known of a teacher: when it was heard of, and so whether it is there."""

    heard_at: float | None = None
    is_online: bool = False


class BatchRunner:
    """All batches that this process runs. Use it in an ``async with`` block."""

    def __init__(
        self,
        *,
        aggregator: Aggregator,
        channel: Channel,
        hub: EventHub,
        clock: Clock = time.time,
        store_watch: StoreWatch | None = None,
    ) -> None:
        """`store_watch` knows whether the aggregator's store can be used."""
        self.task = aggregator.task
        self.hub = hub
        self.store_watch = store_watch or StoreWatch()
        self.teachers = {index: TeacherState() for index in range(1, self.task.trust.teachers + 1)}
        self._aggregator = aggregator
        self._channel = channel
        self._clock = clock
        self._open: dict[BatchId, int] = {}  # batches under way here: how many queries each has
        self._reminders = Reminders(clock)
        self._inbox = Inbox()
        self._drops = LogThrottle()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="aggregator")
        self._loops: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "BatchRunner":
        self._loops = [
            asyncio.create_task(each, name=name)
            for name, each in (("messages", self._take_messages()), ("time", self._pass_time()))
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self._thread.shutdown(wait=True)

    @property
    def is_alive(self) -> bool:
        """Whether messages are taken and time passes."""
        return bool(self._loops) and not any(loop.done() for loop in self._loops)

    @property
    def open_batches(self) -> tuple[BatchId, ...]:
        """The batches that are under way here."""
        return tuple(self._open)

    async def ask(
        self,
        method: Callable[Concatenate[Aggregator, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Call a method of the aggregator in its own thread, as `ask(Aggregator.tick, now)`."""
        call = functools.partial(method, self._aggregator, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def submit(self, request: BatchRequest) -> BatchId:
        """Start a batch, or go on with it; returns when it is stored."""
        self._require_room()
        await self._step(Aggregator.start, request, now=self._now())
        return request.batch_id

    async def adopt(self, identifier: BatchId) -> None:
        """Go on with a batch of the store that nobody runs."""
        self._require_room()
        await self._step(Aggregator.adopt, identifier, now=self._now())

    async def resume(self) -> None:
        """After a restart of the only aggregator of a store: go on with all that is unfinished."""
        for identifier in await self.ask(Aggregator.unfinished):
            await self.adopt(identifier)

    async def refresh(self, identifier: BatchId) -> None:
        """Another aggregator ended this batch: take its outcome."""
        await self._step(Aggregator.refresh, identifier)

    def take(self, teacher: int, data: bytes) -> None:
        """A message that the channel says is from this teacher."""
        self.hear(teacher)
        try:
            self._inbox.put(teacher, data)
        except Busy as error:
            if times := self._drops.times(teacher):
                extra = {"teacher": teacher, "reason": error.one_line, "times": times}
                log.warning("message dropped", extra=extra)

    def hear(self, teacher: int) -> None:
        """A teacher gave a sign of life."""
        state = self.teachers.get(teacher)
        if state is not None:
            state.heard_at = self._clock()
            if not state.is_online:
                self._set_online(teacher, is_online=True)

    async def require_teachers(self) -> None:
        """Refuse a batch that would be charged and aborted, as far as can be known before."""
        left_out = await self.ask(Aggregator.left_out)
        missing = {
            index: "left out" if index in left_out else "offline"
            for index, state in self.teachers.items()
            if index in left_out or not state.is_online
        }
        there, needed = len(self.teachers) - len(missing), self.task.trust.ballots_needed
        if there >= needed:
            return
        named = ", ".join(
            f"{self.task.teachers[index - 1].name} ({index}, {why})"
            for index, why in missing.items()
        )
        raise TeachersMissing(
            f"{there} of {len(self.teachers)} teachers are there, and a batch needs {needed}; "
            f"missing: {named}. Nothing was charged",
            hint="ask again when they are back; `dppp query --insist` asks all the same, and what "
            "is aborted then stays charged",
        )

    def _require_room(self) -> None:
        if len(self._open) >= MOST_OPEN_BATCHES:
            raise Busy(f"{MOST_OPEN_BATCHES} batches are under way", hint="ask again in a minute")

    async def _take_messages(self) -> None:
        while True:
            teacher, data = await self._inbox.get()
            with about_batch(batch_named_in(data)), _going_on():
                await self._step(Aggregator.receive, teacher, data, now=self._now())

    async def _pass_time(self) -> None:
        while True:
            await asyncio.sleep(max(_TICK_SECONDS, self.store_watch.pause_seconds))
            self._notice_silence()
            with _going_on():
                await self._step(Aggregator.tick, self._now())
                if due := self._reminders.due():
                    await self._remind(due)

    async def remind_one(self, teacher: int) -> None:
        """A teacher has just come, and knows nothing of what was sent before."""
        if self._open:
            with _going_on():
                await self._remind(None, teacher=teacher)

    async def _remind(self, due: frozenset[BatchId] | None, *, teacher: int | None = None) -> None:
        output = await self.ask(Aggregator.remind, due, teacher=teacher)
        await self._channel.remind(output.sends)

    def _notice_silence(self) -> None:
        for teacher, state in self.teachers.items():
            silent_since = state.heard_at or 0
            if state.is_online and self._clock() > silent_since + _OFFLINE_AFTER_SECONDS:
                self._set_online(teacher, is_online=False)

    def _set_online(self, teacher: int, *, is_online: bool) -> None:
        self.teachers[teacher].is_online = is_online
        log.info("teacher online" if is_online else "teacher offline", extra={"teacher": teacher})
        self.hub.tell(TeacherEvent(teacher=teacher, is_online=is_online, at=self._clock()))

    async def _step(
        self,
        method: Callable[Concatenate[Aggregator, Arguments], Output],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> None:
        """Let the aggregator take a step, tell what happened, and send what it wants sent."""
        output = await self.ask(method, *arguments, **named)
        for event in output.events:
            self._note(event)
        for send in output.sends:
            if batch := batch_named_in(send.data):
                self._reminders.note_sent(BatchId(batch), len(send.data))
        await self._channel.send(output.sends)

    def _note(self, event: Event) -> None:
        if isinstance(event, Started):
            self._open[event.batch] = event.queries
        if not isinstance(event, TeacherRefused):
            self._reminders.note_progress(event.batch)
        _log_event(event)
        if not isinstance(event, TeacherBlamed | TeacherRefused):
            self.hub.tell(self._describe(event))
        if isinstance(event, Released | Aborted):
            self._open.pop(event.batch, None)
            self._reminders.forget(event.batch)

    def _describe(self, event: StageEvent) -> BatchEvent:
        """An event of the protocol as watchers are told of it."""
        trust = self.task.trust
        found = BatchEvent(
            batch=event.batch.hex(),
            stage=event.stage,
            at=self._clock(),
            queries=self._open.get(event.batch, 0),
        )
        match event:
            case BallotCounted():
                ballot = replace(found, teacher=event.teacher, size_bytes=event.size_bytes)
                return replace(ballot, done=event.count, of=trust.teachers)
            case ListClosed():
                return replace(found, done=event.count, of=trust.teachers)
            case EndorsementCounted() | AnswerCounted():
                return replace(found, done=event.count, of=trust.threshold, teacher=event.teacher)
            case Aborted():
                return replace(found, reason=event.abort.reason)
            case Released():
                return replace(found, flagged=_flagged(event))
        return found

    def _now(self) -> int:
        return int(self._clock())


def _flagged(event: Released) -> int:
    return sum(release.is_flagged for release in event.receipt.answers)


def _log_event(event: Event) -> None:
    extra: dict[str, object] = {"batch": event.batch.hex()}
    match event:
        case Started():
            log.info("batch started", extra={**extra, "queries": event.queries})
        case TeacherBlamed():
            blamed = {"teacher": event.teacher, "reason": event.reason}
            log.warning("teacher at fault", extra={**extra, **blamed})
        case TeacherRefused():
            refused = {"teacher": event.teacher, "rule": event.rule}
            ahead = {"clock_ahead_seconds": event.clock_ahead_seconds}
            log.warning("teacher refused", extra={**extra, **refused, **ahead})
        case Aborted():
            abort = event.abort
            details = {"missing": abort.missing, "culprits": abort.culprits}
            log.warning("batch aborted", extra={**extra, "reason": abort.reason, **details})
        case Released():
            log.info("batch released", extra={**extra, "queries": len(event.receipt.answers)})
            if flagged := _flagged(event):
                log.warning("implausible counts", extra={**extra, "answers": flagged})


@contextmanager
def _going_on() -> Iterator[None]:
    """Whatever fails (a store out of reach, mostly) stops a step and not the runner."""
    try:
        yield
    except BatchStoreUnavailable:
        return  # store_watch.py has said so, once
    except DpppError as error:
        log.error("a step failed and will be tried again", extra={"reason": error.one_line})
    except Exception:
        log.exception("a step failed")
