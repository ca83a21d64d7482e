"""Somebody on the network in the broker's place, who says that no TLS is needed."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable

import pytest
from tests.left_out import need_module
from tests.service.broker.brokers import free_port, running_broker
from tests.service.ceremony.ceremonies import BROKER, TEACHERS, Ceremony, hold

need_module("nats", extra="service")

from dppp.errors import RunnerStopped
from dppp.service.broker.connection import Broker, BrokerAccess, _TlsClient

TLS_HANDSHAKE = b"\x16\x03"


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Ceremony:
    ceremony = hold(tmp_path_factory.mktemp("stripping"))
    ceremony.set_up(TEACHERS[0])
    return ceremony


def dial(ceremony: Ceremony, port: int) -> Broker:
    home = ceremony.home(TEACHERS[0])
    return Broker(
        BrokerAccess(
            servers=(f"tls://localhost:{port}",),
            tls=home.tls_context(),
            nats_seed=home.nats_seed(),
            name="teacher 1",
        )
    )


@contextlib.asynccontextmanager
async def impostor(port: int, said: list[bytes]) -> AsyncIterator[None]:
    """Speaks NATS in the clear, has no certificate, and writes down what is said to it."""
    info = {"version": "2.9.0", "proto": 1, "max_payload": 2**20, "nonce": "x", "headers": True}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO " + json.dumps({**info, "tls_required": False}).encode() + b"\r\n")
        with contextlib.suppress(OSError):
            while line := await reader.read(4096):
                said.append(line)
                if b"PING" in line:
                    writer.write(b"PONG\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port):
        yield


async def wait_for(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(40):
        while not condition():
            await asyncio.sleep(0.05)


def test_nothing_is_said_in_the_clear_to_who_leaves_tls_out(parties: Ceremony) -> None:
    async def story() -> list[bytes]:
        said: list[bytes] = []
        port = free_port()
        broker = dial(parties, port)
        async with impostor(port, said):
            dialling = asyncio.create_task(broker.connect())
            await wait_for(lambda: said)
            await asyncio.sleep(1)
            assert not broker.is_connected
            dialling.cancel()
            await asyncio.gather(dialling, return_exceptions=True)
        return said

    said = asyncio.run(story())
    assert said[0].startswith(TLS_HANDSHAKE)
    assert b"CONNECT" not in b"".join(said)


def test_nor_after_a_connection_that_broke(parties: Ceremony) -> None:
    port = free_port()
    configuration = parties.set_up(BROKER, listen=f"127.0.0.1:{port}").configuration

    async def story() -> list[bytes]:
        said: list[bytes] = []
        broker = dial(parties, port)
        with running_broker(configuration, port):
            await broker.connect()
        await wait_for(lambda: not broker.is_connected)
        async with impostor(port, said):
            await wait_for(lambda: said)
            await asyncio.sleep(1)
            assert not broker.is_connected
            await broker.close()
        return said

    said = asyncio.run(story())
    assert said[0].startswith(TLS_HANDSHAKE)
    assert b"CONNECT" not in b"".join(said)


def test_a_nats_py_that_connects_in_another_way_is_refused(
    parties: Ceremony, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does with the server's first line is its own affair, and may be renamed."""
    monkeypatch.delattr(_TlsClient, "_process_info")

    async def story() -> None:
        port = free_port()
        broker = dial(parties, port)
        async with impostor(port, []):
            with pytest.raises(RunnerStopped, match="cannot be told"):
                await asyncio.wait_for(broker.connect(), 30)

    asyncio.run(story())
