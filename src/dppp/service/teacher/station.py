"""A teacher on the broker: dials out, answers what it may, says that it is here.

One message at a time goes to the teacher (protocol/teacher.py), in a thread of its own; a message
that is waiting or in work already is not queued twice. A refusal is logged locally; the aggregator
is told the rule, if it is one of those in protocol/refusals.py, and nothing otherwise. While
nothing waits, the teacher works ahead in the same thread. Used by `dppp teacher run`.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import get_args

from nats.aio.msg import Msg

from dppp.errors import DpppError, EpochSecretsUnavailable, LedgerError, WireError
from dppp.protocol.messages import BallotList, BallotRequest, CertifiedList, ProofRequest
from dppp.protocol.refusals import batch_named_in
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import kind_of
from dppp.protocol.with_masks.messages import CastRequest, MaskedFromAggregator, RefundNotice
from dppp.service.broker.connection import PRESENCE, Broker, Subjects
from dppp.service.broker.frames import ID_BYTES, MOST_BYTES, Reassembly, read_frame, split_message
from dppp.service.broker.progress import Holding, write_presence
from dppp.service.process.about_batch import about_batch
from dppp.service.process.log_throttle import LogThrottle
from dppp.service.teacher.metrics import TeacherMetrics

log = logging.getLogger("dppp.teacher")

_PRESENCE_SECONDS = 3
_MOST_WAITING = 256
_QUIET_SECONDS = 30
KINDS = frozenset(
    each.KIND
    for each in (
        BallotRequest,
        BallotList,
        CertifiedList,
        ProofRequest,
        *get_args(MaskedFromAggregator),
    )
)
"""The messages that a teacher may answer."""
_CHARGING = (BallotRequest.KIND, CastRequest.KIND, RefundNotice.KIND)
"""After these the ledger may have more or fewer queries left."""
_WORKER = re.compile(r"[0-9a-f]{16}")


class TeacherStation:
    """Runs a teacher until it is stopped. Use it in an ``async with`` block."""

    def __init__(
        self,
        *,
        teacher: Teacher,
        broker: Broker,
        subjects: Subjects,
        metrics: TeacherMetrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._teacher = teacher
        self._broker = broker
        self._subjects = subjects
        self._metrics = metrics
        self._clock = clock
        self._reassembly = {subject: Reassembly() for subject in self._inbound}
        self._waiting: asyncio.Queue[tuple[bytes, str]] = asyncio.Queue(_MOST_WAITING)
        self._waiting_bytes = 0
        self._drops = LogThrottle()
        self._in_work: set[tuple[bytes, str]] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="teacher")
        self._loops: list[asyncio.Task[None]] = []
        self._are_stores_usable = True
        self._quiet = asyncio.Event()

    @property
    def is_started(self) -> bool:
        """Whether the broker was reached, so that there may be something in work."""
        return bool(self._loops)

    @property
    def is_healthy(self) -> bool:
        """Whether the teacher can answer: broker in reach, stores usable, nothing stopped."""
        is_running = bool(self._loops) and not any(loop.done() for loop in self._loops)
        return is_running and self._are_stores_usable and self._broker.is_connected

    async def __aenter__(self) -> "TeacherStation":
        await self._broker.connect()
        for subject in self._inbound:
            await self._broker.subscribe(subject, self._take)
        self._loops = [
            asyncio.create_task(self._answer_all()),
            asyncio.create_task(self._work_ahead()),
            asyncio.create_task(self._say_present()),
        ]
        log.info("teacher ready", extra={"teacher": self._teacher.index})
        return self

    async def __aexit__(self, *_: object) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self._thread.shutdown(wait=True)  # an answer in work is finished, and stored
        await self._broker.close()
        log.info("teacher stopped", extra={"teacher": self._teacher.index})

    @property
    def _inbound(self) -> tuple[str, str]:
        return self._subjects.to(self._teacher.index), self._subjects.all

    async def _take(self, message: Msg) -> None:
        try:
            frame = read_frame(message.data)
            if frame.addressed and self._teacher.index not in frame.addressed:
                return
            data = self._reassembly[message.subject].take(frame)
        except WireError as error:
            self._drop(error.one_line)
            return
        if data is not None:
            self._queue(data, message.reply)

    def _queue(self, data: bytes, worker: str) -> None:
        if not _WORKER.fullmatch(worker):
            self._drop("it does not say whom to answer")
            return
        key = (hashlib.sha256(data).digest(), worker)
        if key in self._in_work:
            return
        is_too_much = self._waiting_bytes + len(data) > MOST_BYTES and not self._waiting.empty()
        if is_too_much or self._waiting.full():
            self._drop("too many are waiting")
            return
        self._waiting.put_nowait((data, worker))
        self._waiting_bytes += len(data)
        self._in_work.add(key)

    def _drop(self, reason: str) -> None:
        self._metrics.dropped.inc()
        if times := self._drops.times("message"):
            log.warning("message dropped", extra={"reason": reason, "times": times})

    async def _answer_all(self) -> None:
        while True:
            data, worker = await self._waiting.get()
            self._waiting_bytes -= len(data)
            answer = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._answer, data
            )
            self._in_work.discard((hashlib.sha256(data).digest(), worker))
            if answer is not None:
                for frame in split_message(answer):
                    await self._broker.publish(
                        self._subjects.answer(self._teacher.index, worker), frame
                    )

            self._quiet.set()

    async def _work_ahead(self) -> None:
        """At the start, after every message, and now and then: while nothing waits."""
        while True:
            is_more = True
            while is_more and self._waiting.empty():
                is_more = await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._prepare
                )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._quiet.wait(), _QUIET_SECONDS)
            self._quiet.clear()

    def _prepare(self) -> bool:
        try:
            return self._teacher.prepare(now=int(self._clock()))
        except DpppError as error:
            self._refuse("preparation", error)
        except Exception:  # nothing here may stop a teacher
            log.exception("working ahead failed")
        return False

    def _answer(self, data: bytes) -> bytes | None:
        with about_batch(batch_named_in(data)):
            return self._answer_one(data)

    def _answer_one(self, data: bytes) -> bytes | None:
        kind = "unknown"
        try:
            if (said := kind_of(data)) in KINDS:  # what anybody may write makes no new metrics
                kind = said
            with self._metrics.seconds.labels(kind).time():
                answer = self._teacher.handle(data, now=int(self._clock()))
        except DpppError as error:
            self._refuse(kind, error)
            return self._teacher.notice_of(data, error, now=int(self._clock()))
        except Exception:  # nothing that arrives may stop a teacher
            log.exception("a message failed", extra={"message_kind": kind})
            self._metrics.refused(kind, "Exception")
            return None
        self._are_stores_usable = True
        self._metrics.answers.labels(kind).inc()
        log.info("answered", extra={"message_kind": kind, "bytes": len(answer or b"")})
        if kind in _CHARGING:
            with suppress(DpppError):  # the answer counts; the next one will say what is wrong
                self._metrics.queries_left.set(self._teacher.queries_left)
        return answer

    def _refuse(self, kind: str, error: DpppError) -> None:
        self._metrics.refused(kind, type(error).__name__)
        extra = {"message_kind": kind, "rule": type(error).__name__, "reason": error.one_line}
        if isinstance(error, LedgerError | EpochSecretsUnavailable):
            self._are_stores_usable = False
            what = "ledger" if isinstance(error, LedgerError) else "secrets of epochs"
            log.error(f"the {what} cannot be used", extra=extra)
        else:
            log.warning("refused", extra=extra)

    async def _say_present(self) -> None:
        subject = self._subjects.answer(self._teacher.index, PRESENCE)
        connections = -1
        while True:
            is_new, connections = (
                connections != self._broker.times_connected,
                (self._broker.times_connected),
            )
            await self._broker.publish(subject, write_presence(self._held(), is_new=is_new))
            await asyncio.sleep(_PRESENCE_SECONDS)

    def _held(self) -> Iterator[tuple[bytes, Holding]]:
        """What was asked and is on its way, waits or is in work: nobody has to send it again."""
        for reassembly in self._reassembly.values():
            for identifier in reassembly.unfinished:
                yield identifier, Holding.SOME
        for digest, _ in self._in_work:
            yield digest[:ID_BYTES], Holding.ALL
