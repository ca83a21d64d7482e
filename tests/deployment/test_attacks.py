"""A teacher that has its keys and does not keep to the rules: refused, logged, and nothing else."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgpack
import pytest
from nats.aio.client import Client
from tests.deployment.running import TEACHERS, Running, wait_for

from dppp.service.broker.frames import split_message
from dppp.service.ceremony.federation_file import read_federation
from dppp.service.ceremony.home import Home
from dppp.service.process.config import TeacherConfig, read_config

LIAR = 2


class Liar:
    """Speaks to the broker with teacher 2's keys."""

    def __init__(self, running: Running) -> None:
        config = read_config(running.local.teacher_configs[LIAR - 1], TeacherConfig)
        self._home = Home(folder=config.home)
        self._servers = list(config.broker.servers)
        self.prefix = read_federation(config.federation, None).subject_prefix
        self.errors: list[str] = []

    def do(self, act: Callable[[Client], Awaitable[Any]]) -> Any:
        return asyncio.run(self._do(act))

    async def _do(self, act: Callable[[Client], Awaitable[Any]]) -> Any:
        async def note(error: Exception) -> None:
            self.errors.append(str(error))

        client = Client()
        await client.connect(
            servers=self._servers,
            tls=self._home.tls_context(),
            nkeys_seed_str=self._home.nats_seed(),
            error_cb=note,
            allow_reconnect=False,
            max_reconnect_attempts=1,
        )
        try:
            return await act(client)
        finally:
            if not client.is_closed:
                await client.close()

    def publish(self, subject: str, *payloads: bytes) -> None:
        async def act(client: Client) -> None:
            for payload in payloads:
                await client.publish(f"{self.prefix}.{subject}", payload)
            await client.flush(timeout=10)
            await asyncio.sleep(0.2)

        self.do(act)


@pytest.fixture
def liar(federation: Running) -> Liar:
    federation.wait_for_teachers(TEACHERS)
    return Liar(federation)


def worker_of(federation: Running) -> str:
    lines = [json.loads(line) for line in federation.log_of("aggregator").splitlines()]
    return str([line["worker"] for line in lines if line["message"] == "aggregator ready"][-1])


def assert_still_works(federation: Running) -> None:
    batch = federation.submit(1)
    state = federation.wait_for_end(batch)
    assert state["stage"] == "released", state


def test_another_teachers_subject_is_closed_and_nothing_arrives(
    federation: Running, liar: Liar
) -> None:
    worker = worker_of(federation)
    before = federation.log_of("aggregator")
    for subject in (f"from.1.{worker}", "from.1.presence", "to.1", "all", "work", "events"):
        liar.publish(subject, next(split_message(b"nonsense")))
    violations = [error for error in liar.errors if "permissions violation" in error.lower()]
    assert len(violations) == 6, liar.errors
    assert federation.log_of("aggregator") == before
    assert "Publish Violation" in federation.log_of("broker")
    assert_still_works(federation)


def test_nonsense_on_the_own_subject_is_dropped_and_logged(federation: Running, liar: Liar) -> None:
    worker = worker_of(federation)
    bad_frames = [
        b"",
        b"\xff" * 1000,
        msgpack.packb([1, b"x" * 16, 0, 2**31, [], b""]),
        msgpack.packb([1, b"x" * 16, 5, 2, [], b"late"]),
        msgpack.packb([9, b"x" * 16, 0, 1, [], b"other version"]),
        msgpack.packb([1, b"x" * 16, 0, 1, [], b"another hash"]),
        msgpack.packb([[[[[]]]]]),
    ]
    liar.publish(f"from.{LIAR}.{worker}", *bad_frames)
    whole = [frame for data in (b"", b"no message") for frame in split_message(data)]
    liar.publish(f"from.{LIAR}.{worker}", *whole)
    wait_for(
        lambda: federation.log_of("aggregator").count("message dropped") >= len(bad_frames),
        "the drops to be logged",
    )
    assert_still_works(federation)


def test_a_message_past_the_limit_costs_its_sender_the_connection(
    federation: Running, liar: Liar
) -> None:
    async def act(client: Client) -> bool:
        client._max_payload = 2**30  # as a client would that does not look
        await client.publish(f"{liar.prefix}.from.{LIAR}.presence", bytes(3 * 2**20))
        for _ in range(100):
            if client.is_closed or client._err is not None:
                return True  # with words or without: the server hangs up while it is being sent to
            await asyncio.sleep(0.1)
        return False

    assert liar.do(act)
    wait_for(
        lambda: "maximum payload exceeded" in federation.log_of("broker").lower(),
        "the broker to say why",
    )
    assert_still_works(federation)


def test_a_flood_of_unfinished_messages_takes_no_memory(federation: Running, liar: Liar) -> None:
    worker = worker_of(federation)
    pid = federation.process("aggregator").pid
    before = _resident_megabytes(pid)
    beginnings = [
        msgpack.packb([1, number.to_bytes(16, "big"), 0, 400, [], bytes(512 * 1024)])
        for number in range(200)
    ]
    liar.publish(f"from.{LIAR}.{worker}", *beginnings)
    assert_still_works(federation)
    assert _resident_megabytes(pid) < before + 60  # 100 MB were sent; four pieces are kept


def _resident_megabytes(pid: int) -> float:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 2**20
