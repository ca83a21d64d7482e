"""A broker that goes away and comes back: said once, and not at each try."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.left_out import need_module

need_module("nats", extra="service")

from tests.service.broker.brokers import free_port, running_broker

from dppp.service.broker import connection
from dppp.service.broker.connection import Broker, BrokerAccess

_WAIT_SECONDS = 30


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(connection, "_RETRY_SECONDS", 0.05)
    caplog.set_level(logging.INFO, "dppp.broker")


@contextlib.asynccontextmanager
async def dialled(port: int) -> AsyncIterator[Broker]:
    servers = (f"nats://127.0.0.1:{port}",)
    broker = Broker(BrokerAccess(servers=servers, tls=None, nats_seed=None, name="teacher 1"))
    try:
        yield broker
    finally:
        await broker.close()


async def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def test_a_broker_that_is_not_there_is_said_once_however_often_it_is_tried(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 0
    on_error = Broker._on_error

    async def count(self: Broker, error: Exception) -> None:
        nonlocal failures
        failures += 1
        await on_error(self, error)

    monkeypatch.setattr(Broker, "_on_error", count)

    async def story() -> None:
        async with dialled(free_port()) as broker:
            trying = asyncio.create_task(broker.connect())
            await until(lambda: failures > 10)
            trying.cancel()

    asyncio.run(story())
    (said,) = caplog.records
    assert said.message == "broker error"
    assert "Connect call failed" in vars(said)["reason"]


def test_each_outage_is_said_once_and_ones_own_end_is_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    configuration = tmp_path / "nats.conf"
    configuration.write_text(f"host: 127.0.0.1\nport: {port}\n", encoding="utf-8")

    async def story() -> None:
        with contextlib.ExitStack() as first:
            first.enter_context(running_broker(configuration, port))
            async with dialled(port) as broker:
                await broker.connect()
                for _ in range(2):
                    first.close()
                    await until(lambda: not broker.is_connected)
                    await asyncio.sleep(1)  # twenty tries
                    first.enter_context(running_broker(configuration, port))
                    await until(lambda: broker.is_connected)

    asyncio.run(story())
    messages = [record.message for record in caplog.records]
    assert messages.count("broker out of reach") == 2
    assert messages.count("broker reached again") == 2
    errors = [
        vars(record)["reason"] for record in caplog.records if record.message == "broker error"
    ]
    assert (
        1 <= len(errors) <= 4
    )  # two kinds at most in each outage: the line broke; nobody is there
    assert messages[-1] == "broker reached again"
