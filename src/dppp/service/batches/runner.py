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
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from dppp.errors import Busy, DpppError
from dppp.protocol.aggregator import Aggregator, Progress, Send
from dppp.protocol.batch import Abort, Phase
from dppp.protocol.messages import BatchId, BatchRequest, batch_id, query_id
from dppp.service.batches.events import BatchEvent, EventHub, Stage, TeacherEvent
from dppp.service.batches.inbox import Inbox
from dppp.service.process.log_throttle import LogThrottle

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
Clock = Callable[[], float]

MOST_OPEN_BATCHES = 64
_TICK_SECONDS = 0.25
_REMIND_SECONDS = 10
_OFFLINE_AFTER_SECONDS = 12

log = logging.getLogger("dppp.aggregator")


class Channel(Protocol):
    """Carries messages to teachers; what they answer comes back by `BatchRunner.take`."""

    async def send(self, sends: Sequence[Send]) -> None:
        """Send; messages may get lost."""


@dataclass(slots=True, kw_only=True)
class TeacherState:
    """What is known of a teacher: when it was heard of, and so whether it is there."""

    heard_at: float | None = None
    is_online: bool = False


@dataclass(slots=True, kw_only=True)
class _Open:
    """A batch under way, as it was last told of."""

    queries: int
    phase: Phase = Phase.VOTING
    voters: frozenset[int] = frozenset()
    endorsers: frozenset[int] = frozenset()
    sharers: frozenset[int] = frozenset()


class BatchRunner:
    """All batches that this process runs. Use it in an ``async with`` block."""

    def __init__(
        self, *, aggregator: Aggregator, channel: Channel, hub: EventHub, clock: Clock = time.time
    ) -> None:
        self.task = aggregator.task
        self.hub = hub
        self.teachers = {index: TeacherState() for index in range(1, self.task.trust.teachers + 1)}
        self._aggregator = aggregator
        self._channel = channel
        self._clock = clock
        self._open: dict[BatchId, _Open] = {}
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
        ids = [query_id(self.task.task_id, query) for query in request.queries]
        identifier = batch_id(self.task.task_id, ids)
        sends = await self.ask(Aggregator.start, request, now=self._now())
        await self._follow(identifier, sends)
        return identifier

    async def adopt(self, identifier: BatchId) -> None:
        """Go on with a batch of the store that nobody runs."""
        self._require_room()
        sends = await self.ask(Aggregator.adopt, identifier, now=self._now())
        await self._follow(identifier, sends)

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
                extra = {"teacher": teacher, "reason": str(error), "times": times}
                log.warning("message dropped", extra=extra)

    def hear(self, teacher: int) -> None:
        """A teacher gave a sign of life."""
        state = self.teachers.get(teacher)
        if state is not None:
            state.heard_at = self._clock()
            if not state.is_online:
                self._set_online(teacher, is_online=True)

    def _require_room(self) -> None:
        if len(self._open) >= MOST_OPEN_BATCHES:
            raise Busy(f"{MOST_OPEN_BATCHES} batches are under way; ask again in a minute")

    async def _follow(self, identifier: BatchId, sends: Sequence[Send]) -> None:
        found = await self.ask(Aggregator.progress, identifier)
        if found is not None and identifier not in self._open:
            self._open[identifier] = _Open(queries=found.queries)
            self._tell(identifier, Stage.VOTES, queries=found.queries)
            log.info("batch started", extra={"batch": identifier.hex(), "queries": found.queries})
        await self._channel.send(sends)

    async def _take_messages(self) -> None:
        while True:
            teacher, data = await self._inbox.get()
            with _going_on():
                sends = await self._step(Aggregator.receive, teacher, data, now=self._now())
                await self._channel.send(sends)

    async def _pass_time(self) -> None:
        reminded_at = self._clock()
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._notice_silence()
            with _going_on():
                sends = await self._step(Aggregator.tick, self._now())
                reminded_at = min(reminded_at, self._clock())  # a clock may be put back
                if self._clock() >= reminded_at + _REMIND_SECONDS:
                    reminded_at = self._clock()
                    sends += await self.ask(Aggregator.remind)
                await self._channel.send(sends)

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
        method: Callable[Concatenate[Aggregator, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Call a method that may get batches further, and tell how far all of them are.

        One turn in the aggregator's thread, however many batches are under way.
        """
        followed = self.open_batches

        def step(aggregator: Aggregator) -> tuple[Result, list[Progress | None]]:
            result = method(aggregator, *arguments, **named)
            return result, [aggregator.progress(identifier) for identifier in followed]

        result, found = await self.ask(step)
        for identifier, progress in zip(followed, found, strict=True):
            seen = self._open.get(identifier)
            if seen is None:
                continue  # the other loop noticed its end first
            if progress is None:
                await self._tell_end(identifier, seen)
            else:
                self._tell_news(identifier, seen, progress)
        return result

    def _tell_news(self, identifier: BatchId, seen: _Open, found: Progress) -> None:
        teachers, threshold = self.task.trust.teachers, self.task.trust.threshold
        for teacher in sorted(set(found.voters) - seen.voters):
            seen.voters |= {teacher}
            done = len(seen.voters)
            self._tell(
                identifier,
                Stage.BALLOTS,
                queries=seen.queries,
                done=done,
                of=teachers,
                teacher=teacher,
            )
        if found.phase is not Phase.VOTING and seen.phase is Phase.VOTING:
            self._tell(
                identifier, Stage.TALLY, queries=seen.queries, done=len(found.voters), of=teachers
            )
        seen.phase = found.phase
        news = (
            (Stage.ENDORSEMENTS, found.endorsers, seen.endorsers),
            (Stage.SHARES, found.sharers, seen.sharers),
        )
        for stage, found_now, seen_before in news:
            for done, teacher in enumerate(sorted(set(found_now) - seen_before), start=1):
                self._tell(
                    identifier,
                    stage,
                    queries=seen.queries,
                    done=len(seen_before) + done,
                    of=threshold,
                    teacher=teacher,
                )
        seen.endorsers, seen.sharers = frozenset(found.endorsers), frozenset(found.sharers)

    async def _tell_end(self, identifier: BatchId, seen: _Open) -> None:
        if self._open.pop(identifier, None) is None:
            return  # the other loop noticed first
        outcome = await self.ask(Aggregator.outcome, identifier)
        assert outcome is not None, "a batch that is no longer under way has an outcome"
        for teacher, reason in (await self.ask(Aggregator.faults, identifier)).items():
            extra = {"batch": identifier.hex(), "teacher": teacher, "reason": reason}
            log.warning("teacher at fault", extra=extra)
        if isinstance(outcome, Abort):
            self._tell(identifier, Stage.ABORTED, queries=seen.queries, reason=outcome.reason)
            details = {"missing": outcome.missing, "culprits": outcome.culprits}
            log.warning("batch aborted", extra={"batch": identifier.hex(), **details})
        else:
            flagged = sum(answer.is_flagged for answer in outcome.answers)
            self._tell(identifier, Stage.RELEASED, queries=seen.queries, flagged=flagged)
            log.info("batch released", extra={"batch": identifier.hex(), "queries": seen.queries})
            if flagged:
                extra = {"batch": identifier.hex(), "answers": flagged}
                log.warning("implausible counts", extra=extra)

    def _tell(
        self,
        identifier: BatchId,
        stage: Stage,
        *,
        queries: int,
        done: int = 0,
        of: int = 0,
        teacher: int | None = None,
        reason: str | None = None,
        flagged: int = 0,
    ) -> None:
        self.hub.tell(
            BatchEvent(
                batch=identifier.hex(),
                stage=stage,
                at=self._clock(),
                queries=queries,
                done=done,
                of=of,
                teacher=teacher,
                reason=reason,
                flagged=flagged,
            )
        )

    def _now(self) -> int:
        return int(self._clock())


@contextmanager
def _going_on() -> Iterator[None]:
    """Whatever fails (a store out of reach, mostly) stops a step and not the runner."""
    try:
        yield
    except DpppError as error:
        log.error("a step failed and will be tried again", extra={"reason": str(error)})
    except Exception:
        log.exception("a step failed")
