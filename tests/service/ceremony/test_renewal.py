"""Certificates are renewed while the federation stays what it is; expired ones open nothing."""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import ssl
import stat
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.left_out import need_module, need_program

need_module("nats", extra="service")

import nats.errors
from prometheus_client import CollectorRegistry, generate_latest
from tests.service.broker.brokers import connected, free_port, running_broker
from tests.service.ceremony.ceremonies import AGGREGATOR, BROKER, TEACHERS, Ceremony, hold

from dppp.errors import FederationError, InputError, TlsCertificateEnded
from dppp.service.ceremony.authority import AUTHORITY_LIFETIME, read_tls_certificate
from dppp.service.ceremony.coordinator import collect
from dppp.service.ceremony.home import Home, make_home
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.renewal import install_renewal, request_renewal, sign_renewals
from dppp.service.ceremony.setup import set_up
from dppp.service.process.tls_certificate_watch import TlsCertificateWatch

SHORT = timedelta(seconds=4)
LATER = datetime.now(UTC) + timedelta(days=700)


@pytest.fixture
def running(ceremony: Ceremony, tmp_path: Path) -> Ceremony:
    """A federation in which everybody has set up."""
    copy = replace(ceremony, root=tmp_path / "copy")
    shutil.copytree(ceremony.root, copy.root)
    for name in (*TEACHERS, AGGREGATOR, BROKER):
        copy.set_up(name)
    return copy


def signed(held: Ceremony, request: JoinRequest, **options: datetime | timedelta) -> str:
    """The certificate from the coordinator."""
    out = held.root / f"signed {request.fingerprint}"
    (renewed,) = sign_renewals(held.root / "coordinator", [request], out, **options)  # type: ignore[arg-type]
    return (out / renewed.file).read_text()


def renew(held: Ceremony, name: str, **options: datetime | timedelta) -> datetime:
    certificate = signed(held, request_renewal(held.home(name)), **options)
    return install_renewal(held.home(name), certificate, now=options.get("now"))  # type: ignore[arg-type]


def contents(home: Home) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.folder.iterdir()}


@pytest.mark.parametrize("name", [TEACHERS[1], AGGREGATOR, BROKER])
def test_a_renewal_changes_tls_key_and_certificate_and_nothing_else(
    running: Ceremony, name: str
) -> None:
    home = running.home(name)
    before = contents(home)
    assert renew(running, name, now=LATER).date() == (LATER + timedelta(days=730)).date()
    after = contents(home)
    assert {each for each in after if after[each] != before[each]} == {"tls.key", "tls.pem"}
    assert after.keys() == before.keys()
    assert stat.S_IMODE((home.folder / "tls.key").stat().st_mode) == 0o600
    assert home.tls_certificate().public_key() == home.tls_key().public_key()


def test_asking_again_is_the_same_request_until_it_is_installed(running: Ceremony) -> None:
    home = running.home(TEACHERS[0])
    first = request_renewal(home)
    assert request_renewal(home) == first
    install_renewal(home, signed(running, first))
    assert request_renewal(home) != first


def test_a_request_whose_key_is_gone_is_refused(running: Ceremony) -> None:
    home = running.home(TEACHERS[0])
    request_renewal(home)
    (home.folder / "tls.key.next").unlink()
    with pytest.raises(FederationError, match="remove both"):
        request_renewal(home)


def test_the_coordinator_signs_for_nobody_else(running: Ceremony, tmp_path: Path) -> None:
    stranger = make_home(tmp_path / "stranger", name="hospital d")
    impostor = make_home(tmp_path / "impostor", name=TEACHERS[0])
    moved = make_home(tmp_path / "moved", name=BROKER, role=Role.BROKER, hosts=["evil.example.org"])
    for request in (stranger, impostor, moved):
        with pytest.raises(FederationError, match="nobody joined"):
            signed(running, request)
    with pytest.raises(FederationError, match="by which 'hospital a' joined"):
        signed(running, running.home(TEACHERS[0]).request())


def test_a_renewal_request_is_no_second_member(running: Ceremony) -> None:
    request = request_renewal(running.home(TEACHERS[0]))
    with pytest.raises(FederationError, match="same name"):
        collect(running.root / "coordinator", [request])


def test_only_the_own_certificate_for_the_waiting_key_is_installed(
    running: Ceremony, tmp_path: Path
) -> None:
    home = running.home(TEACHERS[0])
    mine = request_renewal(home)
    others = request_renewal(running.home(TEACHERS[1]))
    elsewhere = hold(tmp_path / "elsewhere")
    before = contents(home)
    old = (home.folder / "tls.pem").read_text()
    foreign = (
        (signed(running, others), "names somebody else"),
        (old, "another key"),
        (elsewhere.federation.teachers[0].tls_certificate, "not issued by this federation"),
        ("no certificate", "cannot be read"),
    )
    for certificate, words in foreign:
        with pytest.raises(FederationError, match=words):
            install_renewal(home, certificate)
    late = LATER + timedelta(days=800)
    with pytest.raises(TlsCertificateEnded, match="ended at"):
        install_renewal(home, signed(running, mine), now=late)
    assert contents(home) == before


def test_an_installation_that_was_cut_in_the_middle_is_finished_by_the_same_command(
    running: Ceremony,
) -> None:
    home = running.home(TEACHERS[0])
    certificate = signed(running, request_renewal(home))
    (home.folder / "tls.pem.next").write_text("half of it")
    (home.folder / "tls.key.next").replace(home.folder / "tls.key")
    with pytest.raises(FederationError, match="cannot use the TLS certificates"):
        home.tls_context()
    install_renewal(home, certificate)
    home.tls_context()
    assert "renewal-request.json" not in contents(home)
    assert "tls.pem.next" not in contents(home)


def test_an_installation_that_cannot_write_says_so_and_is_finished_by_the_same_command(
    running: Ceremony,
) -> None:
    home = running.home(TEACHERS[0])
    certificate = signed(running, request_renewal(home))
    (home.folder / "tls.pem").unlink()
    (home.folder / "tls.pem").mkdir()  # which no file can replace
    with pytest.raises(
        InputError, match=r"cannot write to .*\nhint: .*make room and run this again"
    ):
        install_renewal(home, certificate)
    (home.folder / "tls.pem").rmdir()
    install_renewal(home, certificate)
    home.tls_context()


def test_no_certificate_outlives_the_authority_and_none_is_issued_after_it(
    running: Ceremony,
) -> None:
    made = running.home(TEACHERS[0]).tls_certificate().not_valid_before_utc
    end = renew(running, TEACHERS[0], now=made + AUTHORITY_LIFETIME - timedelta(days=100))
    assert end < made + AUTHORITY_LIFETIME + timedelta(hours=1)
    with pytest.raises(TlsCertificateEnded, match="make a new federation"):
        renew(running, TEACHERS[1], now=made + AUTHORITY_LIFETIME + timedelta(days=1))


def test_a_renewed_home_can_be_set_up_anew(running: Ceremony, tmp_path: Path) -> None:
    """Its configuration was lost; the federation file still has the certificate of before."""
    renew(running, BROKER)
    kept = ("signing.key", "tls.key", "tls.pem", "join-request.json")
    again = Home(folder=tmp_path / "again")
    again.folder.mkdir()
    for name in kept:
        shutil.copy2(running.home(BROKER).folder / name, again.folder)
    set_up(again, running.federation, running.federation.hash)
    assert contents(again)["tls.pem"] == contents(running.home(BROKER))["tls.pem"]
    (again.folder / "federation.json").unlink()
    (again.folder / "tls.pem").unlink()
    with pytest.raises(FederationError, match=r"put tls\.pem beside"):
        set_up(again, running.federation, running.federation.hash)


def test_a_home_that_was_not_set_up_is_told_so(ceremony: Ceremony, tmp_path: Path) -> None:
    make_home(tmp_path / "home", name="hospital e")
    home = Home(folder=tmp_path / "home")
    with pytest.raises(InputError, match="dppp setup"):
        home.tls_certificate()


def wait_until_after(end: datetime) -> None:
    time.sleep(max(0.0, (end - datetime.now(UTC)).total_seconds() + 1))


def unchecked_context(home: Home) -> ssl.SSLContext:
    """As in `Home.tls_context`, which does not even dial with a certificate that has ended."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(home.folder / "authority.pem")
    context.load_cert_chain(home.folder / "tls.pem", home.folder / "tls.key")
    return context


def test_an_ended_certificate_is_refused_and_the_renewed_one_let_in(tmp_path: Path) -> None:
    """All certificates end; the broker's is renewed first."""
    need_program("nats-server", package="nats-server")
    held, port = hold(tmp_path, lifetime=SHORT), free_port()
    end = held.federation.tls_certificates_end
    held.set_up(TEACHERS[0], now=end)
    configuration = held.set_up(BROKER, now=end, listen=f"127.0.0.1:{port}").configuration
    renew(held, BROKER)
    home = held.home(TEACHERS[0])

    async def reach(tls: ssl.SSLContext | None = None) -> None:
        async with connected(home, port, tls=tls) as connection:
            await connection.settle()

    with running_broker(configuration, port) as log:
        wait_until_after(end)
        with pytest.raises(TlsCertificateEnded, match="dppp renew request"):
            home.tls_context()
        with pytest.raises((nats.errors.Error, OSError)):
            asyncio.run(reach(unchecked_context(home)))
        assert "certificate has expired" in log.read_text()
        renew(held, TEACHERS[0])
        asyncio.run(reach())


def test_a_broker_whose_certificate_has_ended_is_not_trusted(tmp_path: Path) -> None:
    need_program("nats-server", package="nats-server")
    held, port = hold(tmp_path), free_port()
    held.set_up(TEACHERS[0])
    configuration = held.set_up(BROKER, listen=f"127.0.0.1:{port}").configuration
    end = renew(held, BROKER, lifetime=SHORT)

    async def reach() -> None:
        async with connected(held.home(TEACHERS[0]), port) as connection:
            await connection.settle()

    with running_broker(configuration, port):
        wait_until_after(end)
        with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
            asyncio.run(reach())


def test_who_was_connected_when_its_certificate_ended_stays_so(tmp_path: Path) -> None:
    """What the runbook says: the end is felt at the next connection, not before."""
    need_program("nats-server", package="nats-server")
    held = hold(tmp_path, lifetime=timedelta(seconds=20))
    port, name = free_port(), TEACHERS[0]
    held.set_up(name)
    end = held.home(name).tls_certificate().not_valid_after_utc
    configuration = held.set_up(BROKER, listen=f"127.0.0.1:{port}").configuration

    async def work() -> None:
        async with connected(held.home(name), port) as connection:
            await asyncio.sleep(max(0.0, (end - datetime.now(UTC)).total_seconds() + 1))
            await connection.settle()

    with running_broker(configuration, port):
        asyncio.run(work())


def test_a_running_broker_takes_a_renewed_certificate_without_hanging_up(tmp_path: Path) -> None:
    need_program("nats-server", package="nats-server")
    held, port, name = hold(tmp_path), free_port(), TEACHERS[0]
    held.set_up(name)
    configuration = held.set_up(BROKER, listen=f"127.0.0.1:{port}").configuration

    async def shown() -> list[str]:
        """The broker's certificate, as a new connection gets it, in words."""
        async with connected(held.home(name), port) as connection:
            found = connection.client._transport._io_writer.get_extra_info("ssl_object")  # type: ignore[union-attr]
            return ssl.DER_cert_to_PEM_cert(found.getpeercert(binary_form=True)).split()

    async def work(process: int) -> None:
        async with connected(held.home(name), port) as connection:
            renew(held, BROKER)
            new = (held.home(BROKER).folder / "tls.pem").read_text().split()
            assert await shown() != new
            os.kill(process, signal.SIGHUP)
            found: list[str] = []
            async with asyncio.timeout(60):
                while found != new:
                    with contextlib.suppress(nats.errors.Error, OSError):  # who knocks just then
                        found = await shown()
                    await asyncio.sleep(0.1)
            await connection.settle()
            assert connection.errors == []

    with running_broker(configuration, port) as log:
        asyncio.run(work(int(log.read_text().partition("]")[0].removeprefix("["))))


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (31, []),
        (29.5, ["the TLS certificate ends soon"]),
        (-0.5, ["the TLS certificate has ended"]),
    ],
)
def test_the_end_is_told_a_month_before(
    ceremony: Ceremony, caplog: pytest.LogCaptureFixture, days: float, said: list[str]
) -> None:
    certificate = ceremony.federation.teachers[0].tls_certificate
    end = read_tls_certificate(certificate).not_valid_after_utc.timestamp()
    log = logging.getLogger("dppp.test")
    watch = TlsCertificateWatch(
        read_tls_certificate(certificate), log, clock=lambda: end - days * 86_400
    )
    registry = CollectorRegistry()
    watch.show_in(registry)
    with caplog.at_level(logging.INFO):
        watch.tell()
    assert [record.message for record in caplog.records] == said
    shown = dict(
        line.split() for line in generate_latest(registry).decode().splitlines() if "#" not in line
    )
    assert float(shown["dppp_certificate_seconds"]) == pytest.approx(days * 86_400)


def test_a_process_that_runs_on_says_when_the_end_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    held = hold(tmp_path, lifetime=timedelta(seconds=3))
    certificate = read_tls_certificate(held.federation.teachers[0].tls_certificate)
    watch = TlsCertificateWatch(certificate, logging.getLogger("dppp.test"))

    async def work() -> None:
        watching = asyncio.create_task(watch.run())
        async with asyncio.timeout(30):
            while "the TLS certificate has ended" not in caplog.text:
                await asyncio.sleep(0.1)
        watching.cancel()

    asyncio.run(work())
    assert watch.seconds_left < 0
    assert [record.message for record in caplog.records].count("the TLS certificate has ended") == 1
