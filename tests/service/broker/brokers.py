"""A real nats-server on loopback, started and stopped by the test."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.left_out import need_program

from dppp.service.ceremony.home import Home

_START_SECONDS = 20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running_broker(configuration: Path, port: int) -> Iterator[Path]:
    """The server on this configuration; yields its log."""
    program = need_program("nats-server", package="nats-server")
    log = configuration.with_name("nats.log")
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - the broker
            [program, "-c", str(configuration)], stdout=out, stderr=out
        )
    try:
        _wait_for(port, process, log)
        yield log
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nats-server did not start: {log.read_text()}")


class Connection:
    """A client that remembers what the server refused and what it heard."""

    def __init__(self) -> None:
        self.client = Client()
        self.errors: list[str] = []
        self.heard: list[tuple[str, bytes]] = []

    async def hear(self, subject: str) -> None:
        async def keep(message: Msg) -> None:
            self.heard.append((message.subject, message.data))

        await self.client.subscribe(subject, cb=keep)
        await self.settle()

    async def say(self, subject: str, data: bytes) -> None:
        await self.client.publish(subject, data)
        await self.settle()

    async def settle(self) -> None:
        """After this the server has dealt with everything that was sent before."""
        await self.client.flush(timeout=10)


@contextlib.asynccontextmanager
async def connected(
    home: Home, port: int, *, seed: str | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Connection]:
    """Dial the broker as a party does."""
    connection = Connection()

    async def note(error: Exception) -> None:
        connection.errors.append(str(error))

    try:
        async with asyncio.timeout(30):
            await connection.client.connect(
                f"tls://127.0.0.1:{port}",
                tls=tls or home.tls_context(),
                nkeys_seed_str=seed or home.nats_seed(),
                allow_reconnect=False,
                connect_timeout=10,
                error_cb=note,
            )
            yield connection
    finally:
        # After a failed handshake nats-py waits for ever for the connection that TLS took over.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(connection.client.close(), timeout=2)
