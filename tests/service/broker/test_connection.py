"""A real NATS server with the configuration of `dppp setup`: who may connect, and do what."""

import asyncio
import ssl
import subprocess
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.left_out import need_module, need_program

need_module("nats", extra="service")

import nats.errors
from tests.service.broker.brokers import Connection, connected, free_port, running_broker
from tests.service.ceremony.ceremonies import AGGREGATOR, BROKER, TEACHERS, Ceremony, hold

from dppp.service.ceremony.configurations import MAX_PAYLOAD_BYTES
from dppp.service.ceremony.home import Home
from dppp.service.ceremony.nkey import make_seed


@dataclass(frozen=True)
class Broker:
    ceremony: Ceremony
    stranger: Home
    """A teacher of another federation with the same names."""
    port: int
    log: Path

    def home(self, name: str) -> Home:
        return self.ceremony.home(name)

    @property
    def prefix(self) -> str:
        return self.ceremony.federation.subject_prefix


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    need_program("nats-server", package="nats-server")
    here, elsewhere = (hold(tmp_path_factory.mktemp(name)) for name in ("here", "elsewhere"))
    port = free_port()
    for name in (*TEACHERS, AGGREGATOR):
        here.set_up(name)
    configuration = here.set_up(BROKER, listen=f"127.0.0.1:{port}").configuration
    elsewhere.set_up(TEACHERS[0])
    with running_broker(configuration, port) as log:
        yield Broker(ceremony=here, stranger=elsewhere.home(TEACHERS[0]), port=port, log=log)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, timeout=60))


async def refused(broker: Broker, **options: Any) -> None:
    """No connection comes about."""
    home = options.pop("home", broker.home(TEACHERS[0]))
    with pytest.raises((nats.errors.Error, OSError)):
        async with connected(home, broker.port, **options):
            pytest.fail("the server let it in")


def test_teachers_and_aggregator_talk_on_their_own_subjects(broker: Broker) -> None:
    async def work() -> None:
        p = broker.prefix
        async with (
            connected(broker.home(TEACHERS[0]), broker.port) as teacher,
            connected(broker.home(AGGREGATOR), broker.port) as aggregator,
        ):
            await aggregator.hear(f"{p}.from.*.*")
            await teacher.hear(f"{p}.to.1")
            await teacher.hear(f"{p}.all")
            await teacher.say(f"{p}.from.1.worker", b"ballot")
            await teacher.say(f"{p}.from.1.presence", b"here")
            await aggregator.say(f"{p}.to.1", b"request")
            await aggregator.say(f"{p}.all", b"list")
            await teacher.settle()
            await aggregator.settle()
            assert teacher.heard == [(f"{p}.to.1", b"request"), (f"{p}.all", b"list")]
            assert [data for _, data in aggregator.heard] == [b"ballot", b"here"]
            assert teacher.errors == aggregator.errors == []

    run(work())


def test_aggregator_workers_share_work_and_events(broker: Broker) -> None:
    async def work() -> None:
        home, p = broker.home(AGGREGATOR), broker.prefix
        async with connected(home, broker.port) as one, connected(home, broker.port) as other:
            for each in (one, other):
                await each.hear(f"{p}.events")
                await each.hear(f"{p}.work")
                await each.settle()
            await one.say(f"{p}.work", b"batch")
            await one.say(f"{p}.events", b"progress")
            await other.settle()
            await one.settle()
            assert len(one.heard) == len(other.heard) == 2
            assert one.errors == other.errors == []

    run(work())


@pytest.mark.parametrize(
    "subject",
    ["{p}.from.1.worker", "{p}.to.1", "{p}.all", "{p}.work", "{p}.events", "{p}.from.2", "other"],
)
def test_a_teacher_cannot_publish_on_anothers_subject(broker: Broker, subject: str) -> None:
    async def work() -> None:
        async with (
            connected(broker.home(TEACHERS[0]), broker.port) as victim,
            connected(broker.home(AGGREGATOR), broker.port) as aggregator,
            connected(broker.home(TEACHERS[1]), broker.port) as teacher,
        ):
            for name in ("to.1", "all"):
                await victim.hear(f"{broker.prefix}.{name}")
            for name in ("from.*.*", "work", "events"):
                await aggregator.hear(f"{broker.prefix}.{name}")
            await teacher.say(subject.format(p=broker.prefix), b"forged")
            await _until_refused(teacher, "Publish")
            await victim.settle()
            await aggregator.settle()
            assert victim.heard == aggregator.heard == []

    run(work())


@pytest.mark.parametrize(
    "subject",
    ["{p}.to.1", "{p}.to.*", "{p}.from.1.worker", "{p}.from.*.*", "{p}.work", ">", "_INBOX.>"],
)
def test_a_teacher_cannot_listen_to_anothers_subject(broker: Broker, subject: str) -> None:
    async def work() -> None:
        p = broker.prefix
        async with (
            connected(broker.home(TEACHERS[0]), broker.port) as victim,
            connected(broker.home(AGGREGATOR), broker.port) as aggregator,
            connected(broker.home(TEACHERS[1]), broker.port) as teacher,
        ):
            await teacher.hear(subject.format(p=p))
            await _until_refused(teacher, "Subscription")
            await aggregator.say(f"{p}.to.1", b"request")
            await aggregator.say(f"{p}.work", b"batch")
            await victim.say(f"{p}.from.1.worker", b"ballot")
            await teacher.settle()
            assert teacher.heard == []

    run(work())


def test_the_aggregator_cannot_speak_for_a_teacher(broker: Broker) -> None:
    async def work() -> None:
        async with connected(broker.home(AGGREGATOR), broker.port) as aggregator:
            await aggregator.hear(f"{broker.prefix}.from.*.*")
            await aggregator.say(f"{broker.prefix}.from.1.worker", b"forged")
            await _until_refused(aggregator, "Publish")
            assert aggregator.heard == []

    run(work())


def test_a_message_past_the_limit_is_refused(broker: Broker) -> None:
    async def work() -> None:
        async with connected(broker.home(TEACHERS[0]), broker.port) as teacher:
            assert teacher.client.max_payload == MAX_PAYLOAD_BYTES
            with pytest.raises(nats.errors.MaxPayloadError):
                await teacher.say(f"{broker.prefix}.from.1.x", bytes(MAX_PAYLOAD_BYTES + 1))

    run(work())


def test_an_unknown_nkey_gets_no_connection(broker: Broker) -> None:
    run(refused(broker, seed=make_seed()))
    run(refused(broker, seed=broker.stranger.nats_seed()))
    assert "authentication error" in broker.log.read_text()


def test_a_certificate_of_another_authority_gets_no_connection(broker: Broker) -> None:
    context = broker.stranger.tls_context()
    context.load_verify_locations(broker.home(TEACHERS[0]).folder / "authority.pem")
    run(refused(broker, tls=context))
    assert "TLS handshake error" in broker.log.read_text()


def test_no_certificate_gets_no_connection(broker: Broker) -> None:
    run(refused(broker, tls=_without_certificate(broker)))


def test_a_broker_of_another_authority_is_not_dialled(broker: Broker) -> None:
    run(refused(broker, home=broker.stranger))


def test_tls_1_2_is_refused(broker: Broker) -> None:
    context = broker.home(TEACHERS[0]).tls_context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    run(refused(broker, tls=context))
    log = broker.log.read_text()
    assert "no cipher suite supported by both client and server" in log


def test_the_server_finds_its_configuration_valid(broker: Broker) -> None:
    program = need_program("nats-server", package="nats-server")
    result = subprocess.run(  # noqa: S603 - the broker
        [program, "-c", str(broker.home(BROKER).folder / "nats.conf"), "-t"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert result.returncode == 0, result.stderr


def _without_certificate(broker: Broker) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=broker.home(TEACHERS[0]).folder / "authority.pem")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


async def _until_refused(connection: Connection, what: str) -> None:
    """The server's answer to a flush comes after its refusal; the callback may take a moment."""
    async with asyncio.timeout(10):
        while not any(
            f"permissions violation for {what}".lower() in e.lower() for e in connection.errors
        ):
            await asyncio.sleep(0.01)
