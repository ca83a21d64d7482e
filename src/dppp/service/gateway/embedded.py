"""A gateway over a federation in this process: no broker, the same protocol, the same HTTP."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI

from dppp.errors import DpppError
from dppp.federation import Parties
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import BatchStore
from dppp.protocol.events import Send
from dppp.protocol.refusals import batch_named_in
from dppp.protocol.teacher import Teacher
from dppp.service.batches.hub import EventHub
from dppp.service.batches.runner import BatchRunner
from dppp.service.batches.store_watch import StoreWatch, WatchedStore
from dppp.service.gateway.application import make_gateway
from dppp.service.gateway.jobs import Jobs
from dppp.service.gateway.queriers import Querier
from dppp.service.process.about_batch import about_batch

log = logging.getLogger("dppp.teacher")


class EmbeddedChannel:
    """Hands messages to teachers, one at a time, in a thread beside the event loop's.

    `silent` are teachers that give no answer, and may be changed at any time: a demo of dropouts.
    """

    def __init__(
        self, teachers: Mapping[int, Teacher], clock: Callable[[], float] = time.time
    ) -> None:
        self.silent: set[int] = set()
        self._teachers = teachers
        self._clock = clock
        self._take: Callable[[int, bytes], None] = lambda _teacher, _data: None
        self._hear: Callable[[int], None] = lambda _teacher: None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="teachers")
        self._running: set[asyncio.Task[None]] = set()

    def answer_to(self, take: Callable[[int, bytes], None], hear: Callable[[int], None]) -> None:
        """Where answers and signs of life go."""
        self._take, self._hear = take, hear

    async def send(self, sends: Sequence[Send]) -> None:
        """Give the messages to their teachers; answers come later."""
        for send in sends:
            running = asyncio.create_task(self._deliver(send))
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    async def remind(self, sends: Sequence[Send]) -> None:
        """Nothing gets lost here; a teacher may have been silent."""
        await self.send(sends)

    async def give_signs_of_life(self, every_seconds: float = 3) -> None:
        """Until cancelled: say that every teacher which is not silent is here."""
        while True:
            for teacher in self._teachers.keys() - self.silent:
                self._hear(teacher)
            await asyncio.sleep(every_seconds)

    async def close(self) -> None:
        """Forget what was not delivered yet."""
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._thread.shutdown(wait=True)

    async def _deliver(self, send: Send) -> None:
        if send.teacher in self.silent:
            return
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self._thread, self._handle, send)
        if answer is not None and send.teacher not in self.silent:
            self._take(send.teacher, answer)

    def _handle(self, send: Send) -> bytes | None:
        try:
            with about_batch(batch_named_in(send.data)):
                return self._teachers[send.teacher].handle(send.data, now=int(self._clock()))
        except DpppError as refusal:
            log.warning("refused", extra={"teacher": send.teacher, "reason": refusal.one_line})
            return self._teachers[send.teacher].notice_of(
                send.data, refusal, now=int(self._clock())
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The application to serve, and the channel on which teachers can be made silent."""

    app: FastAPI
    channel: EmbeddedChannel
    runner: BatchRunner


def embed_gateway(
    parties: Parties,
    *,
    store: BatchStore,
    queriers: Sequence[Querier],
    most_rows: int = 20_000,
    deadline_seconds: int = 600,
    gather_seconds: float = 0,
    page: bool = False,
    examples: Sequence[Sequence[float]] = (),
    insecure_testing: bool = False,
) -> Embedded:
    """A gateway for a federation made in this process."""
    channel = EmbeddedChannel(parties.teachers)
    watch = StoreWatch()
    store = WatchedStore(store, watch)
    runner = BatchRunner(
        aggregator=Aggregator(
            task=parties.task,
            public=None if parties.key is None else parties.key.public,
            signer=parties.aggregator_signer,
            store=store,
        ),
        channel=channel,
        hub=EventHub(),
        store_watch=watch,
    )
    channel.answer_to(runner.take, runner.hear)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        signs = asyncio.create_task(channel.give_signs_of_life())
        async with runner:
            await runner.resume()
            yield
        signs.cancel()
        await asyncio.gather(signs, return_exceptions=True)
        await channel.close()

    jobs = Jobs(
        runner=runner,
        store=store,
        allowances={querier.name: querier.queries for querier in queriers},
        deadline_seconds=deadline_seconds,
        gather_seconds=gather_seconds,
        apart=[querier.name for querier in queriers if not querier.share],
    )
    app = make_gateway(
        runner=runner,
        jobs=jobs,
        queriers=queriers,
        most_rows=most_rows,
        page=page,
        examples=examples,
        insecure_testing=insecure_testing,
        lifespan=lifespan,
    )
    return Embedded(app=app, channel=channel, runner=runner)
