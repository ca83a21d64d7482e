"""The rounds of a batch through a broker with nobody computing: what the transport costs.

The teachers' connections are made with their own keys, over TLS, all by this process. Stop the
federation before, but for its broker.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from nats.aio.msg import Msg

from dppp.benchmarks.deployment.bare_crypto import BareBatch
from dppp.benchmarks.deployment.process_use import cpu_seconds
from dppp.service.broker.connection import Broker, BrokerAccess, Handler, Subjects
from dppp.service.broker.frames import Reassembly, read_frame, split_message
from dppp.service.ceremony.federation_file import read_federation
from dppp.service.ceremony.home import Home
from dppp.service.local.federation import LocalFederation
from dppp.service.process.config import AggregatorConfig, Party, TeacherConfig, read_config

_WORKER = "0" * 16
_ROUND_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class BareRounds:
    """What batches cost that are nothing but messages."""

    seconds: tuple[float, ...]
    cpu_seconds: float


def measure_broker(
    local: LocalFederation, broker_pid: int, batch: BareBatch, repeats: int
) -> BareRounds:
    """Send messages of a batch's sizes there and back, `repeats` times."""
    return asyncio.run(_measure(local, broker_pid, batch, repeats))


async def _measure(
    local: LocalFederation, broker_pid: int, batch: BareBatch, repeats: int
) -> BareRounds:
    seconds = []
    async with _everybody(local) as rounds:
        await rounds.run(batch)  # the first one pays for connecting
        before, own = cpu_seconds([broker_pid]), time.process_time()
        for _ in range(repeats):
            started = time.perf_counter()
            await asyncio.wait_for(rounds.run(batch), _ROUND_SECONDS)
            seconds.append(time.perf_counter() - started)
        cpu = cpu_seconds([broker_pid]) - before + time.process_time() - own
    return BareRounds(seconds=tuple(seconds), cpu_seconds=cpu)


class _Rounds:
    """An aggregator's connection, with teachers at the other end who echo what they are told."""

    def __init__(self, aggregator: Broker, teachers: Sequence[Broker], subjects: Subjects) -> None:
        self._aggregator = aggregator
        self._teachers = teachers
        self._subjects = subjects
        self._answer = b""
        self._answering = 0
        self._missing = 0
        self._reassembly = {index: Reassembly() for index in range(len(teachers) + 1)}
        self._done = asyncio.Event()

    async def subscribe(self) -> None:
        for index, teacher in enumerate(self._teachers, start=1):
            await teacher.subscribe(self._subjects.all, self._echo_of(index, teacher))
        await self._aggregator.subscribe(self._subjects.answers_for(_WORKER), self._count)
        for each in (*self._teachers, self._aggregator):
            await each.flush()

    async def run(self, batch: BareBatch) -> None:
        """Every round: what is asked goes to all, and as many answer as did in the batch."""
        for asked, answer, answers in zip(
            batch.asked_bytes, batch.answer_bytes, batch.answers, strict=True
        ):
            self._answer, self._answering, self._missing = bytes(answer), answers, answers
            self._done.clear()
            for frame in split_message(bytes(asked)):
                await self._aggregator.publish(self._subjects.all, frame)
            await self._done.wait()

    def _echo_of(self, index: int, teacher: Broker) -> Handler:
        async def echo(message: Msg) -> None:
            whole = self._reassembly[index].take(read_frame(message.data))
            if whole is not None and index <= self._answering:
                for frame in split_message(self._answer):
                    await teacher.publish(self._subjects.answer(index, _WORKER), frame)

        return echo

    async def _count(self, message: Msg) -> None:
        frame = read_frame(message.data)
        if frame.place == frame.pieces - 1:
            self._missing -= 1
            if self._missing == 0:
                self._done.set()


@asynccontextmanager
async def _everybody(local: LocalFederation) -> AsyncIterator[_Rounds]:
    configs = [read_config(path, TeacherConfig) for path in local.teacher_configs]
    own = read_config(local.aggregator_config, AggregatorConfig)
    subjects = Subjects(read_federation(own.federation, None).subject_prefix)
    async with AsyncExitStack() as stack:
        connected = []
        for config in (own, *configs):
            broker = Broker(_access(config))
            await asyncio.wait_for(broker.connect(), _ROUND_SECONDS)
            stack.push_async_callback(broker.close)
            connected.append(broker)
        rounds = _Rounds(connected[0], connected[1:], subjects)
        await rounds.subscribe()
        yield rounds


def _access(config: Party) -> BrokerAccess:
    home = Home(folder=config.home)
    return BrokerAccess(
        servers=config.broker.servers,
        tls=home.tls_context(),
        nats_seed=home.nats_seed(),
        name="benchmark",
    )
