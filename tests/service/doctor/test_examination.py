"""`dppp doctor` over real homes, a real ledger, a real model and a real broker."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.cli.commands import json_of, run_dppp
from tests.service.broker.brokers import free_port, running_broker
from tests.service.ceremony.ceremonies import (
    AGGREGATOR,
    BROKER,
    LEDGER,
    TEACHERS,
    Ceremony,
    hold_masked,
    join_all,
)

from dppp.service.ceremony.acceptance import accept_task
from dppp.service.ceremony.assembling import make_federation_file
from dppp.service.ceremony.home import Home
from dppp.service.ceremony.setup import set_up
from dppp.service.doctor.examination import examine
from dppp.service.process.config import EPOCH_SECRETS, TeacherConfig, read_config
from dppp.service.stores.epoch_secrets import open_epoch_secrets

A, B, _ = TEACHERS
MODEL = '[model]\nkind = "callable"\nimport = "{name}"\n'
GOOD = MODEL.format(name="tests.service.doctor.made_up_models:first_class")
OF_NO_CLASS = MODEL.format(name="tests.service.doctor.made_up_models:unheard_of")
BROKEN = MODEL.format(name="tests.service.doctor.made_up_models:broken")


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ceremony, int]:
    ceremony, port = hold_masked(tmp_path_factory.mktemp("doctor")), free_port()
    servers = [f"tls://127.0.0.1:{port}"]
    for name in (*TEACHERS, AGGREGATOR, BROKER):
        done = ceremony.set_up(name, servers=servers, listen=f"127.0.0.1:{port}", model=GOOD)
        if name in TEACHERS:
            accept_task(read_config(done.configuration, TeacherConfig), is_first_use=True)
    return ceremony, port


@pytest.fixture(scope="module")
def broker(held: tuple[Ceremony, int]) -> Iterator[None]:
    ceremony, port = held
    with running_broker(ceremony.home(BROKER).folder / "nats.conf", port):
        yield


@pytest.fixture
def home(held: tuple[Ceremony, int], tmp_path: Path) -> Path:
    """A teacher's home that a test may spoil."""
    shutil.copytree(held[0].home(A).folder, tmp_path / "home")
    return tmp_path / "home"


def states(path: Path, *, gateway: str | None = None) -> dict[str, str]:
    """The worst state of each check."""
    order = ["skipped", "good", "warning", "failed"]
    found: dict[str, str] = {}
    for each in examine(path, gateway=gateway):
        worst = max(found.get(each.check, "skipped"), each.state.value, key=order.index)
        found[each.check] = worst
    return found


def failed(path: Path) -> list[str]:
    return [check for check, state in states(path).items() if state == "failed"]


@pytest.mark.usefixtures("broker")
def test_every_party_of_a_sound_federation_is_healthy(held: tuple[Ceremony, int]) -> None:
    ceremony, _ = held
    for name in (A, AGGREGATOR, BROKER):
        found = json_of(f"doctor '{ceremony.home(name).folder}'")
        assert found["healthy"] is True
        assert {"versions", "files", "federation", "certificates", "clock"} <= {
            each["check"] for each in found["checks"]
        }
        remedies = [each["remedy"] for each in found["checks"] if each["state"] != "good"]
        assert all(remedies)
    shown = run_dppp(f"doctor '{ceremony.home(A).folder / 'teacher.toml'}'").stdout
    assert "40 of 40 queries are left" in shown
    assert "lets this home in" in shown


def test_what_is_wrong_is_named_with_a_remedy_and_an_exit_code(home: Path) -> None:
    (home / "signing.key").chmod(0o644)
    done = run_dppp(f"doctor {home}")
    assert done.returncode == 1
    assert f"chmod 600 {home / 'signing.key'}" in done.stdout
    assert "checks failed" in done.stderr
    said = run_dppp(f"doctor {home} --json")
    assert (said.returncode, json.loads(said.stdout)["healthy"]) == (1, False)
    assert run_dppp(f"doctor {home / 'nothing'}").returncode == 2


def test_a_broker_that_is_away_fails_and_the_rest_is_looked_at_all_the_same(home: Path) -> None:
    text = (home / "teacher.toml").read_text()
    port = text.split("tls://127.0.0.1:")[1].split('"')[0]
    (home / "teacher.toml").write_text(text.replace(port, str(free_port())))
    assert failed(home) == ["broker"]


@pytest.mark.usefixtures("broker")
def test_a_home_of_another_federation_is_not_let_in(
    held: tuple[Ceremony, int], tmp_path: Path
) -> None:
    other = hold_masked(tmp_path)
    done = other.set_up(A, servers=[f"tls://127.0.0.1:{held[1]}"], model=GOOD)
    accept_task(read_config(done.configuration, TeacherConfig), is_first_use=True)
    assert failed(done.configuration) == ["broker"]


@pytest.mark.parametrize(("model", "word"), [(OF_NO_CLASS, "maligne"), (BROKEN, "no column")])
def test_a_model_that_cannot_vote_is_found_by_a_made_up_row(
    home: Path, model: str, word: str
) -> None:
    path = home / "teacher.toml"
    path.write_text(path.read_text().replace(GOOD, model))
    (found,) = [each for each in examine(path) if each.check == "model"]
    assert found.state == "failed"
    assert word in found.said


def test_a_ledger_that_went_back_or_lost_its_head_is_found(home: Path) -> None:
    head = home / LEDGER.head
    text = head.read_text()
    head.write_text(text.replace('"index": 2', '"index": 3'))
    assert "ledger" in failed(home)
    head.unlink()
    assert "ledger" in failed(home)
    head.write_text(text)
    assert "ledger" not in failed(home)


def test_a_head_file_that_others_can_write_is_found(home: Path) -> None:
    (home / LEDGER.head).chmod(0o666)
    assert "ledger" in failed(home)


def test_secrets_of_epochs_that_cannot_be_read_are_found_and_left_as_they_are(home: Path) -> None:
    secrets = home / EPOCH_SECRETS
    with open_epoch_secrets(secrets) as opened:
        opened.put_once(bytes(32), 1, b"secret" * 1_000)
    assert states(home)["secrets"] == "good"
    whole = secrets.read_bytes()
    for damaged in (b"\xff" * len(whole), whole[:4096] + b"\xff" * (len(whole) - 4096)):
        secrets.write_bytes(damaged)
        assert "secrets" in failed(home)
        assert secrets.read_bytes() == damaged
    secrets.write_bytes(whole)
    secrets.chmod(0o644)
    assert "secrets" in failed(home)


def test_a_changed_federation_file_and_a_foreign_key_are_found(
    home: Path, held: tuple[Ceremony, int]
) -> None:
    shutil.copy(held[0].home(B).folder / "signing.key", home / "signing.key")
    assert "federation" in failed(home)
    (home / "teacher.toml").write_text(
        (home / "teacher.toml").read_text().replace(held[0].federation.hash.hex(), "0" * 64)
    )
    assert "federation" in failed(home)


@pytest.mark.parametrize(
    ("lifetime", "state"),
    [(timedelta(days=10), "warning"), (timedelta(minutes=-1), "failed")],
)
def test_a_certificate_that_ends_soon_is_a_warning_and_one_that_ended_a_failure(
    tmp_path: Path, lifetime: timedelta, state: str
) -> None:
    join_all(tmp_path, cryptosystem="masks")
    made = make_federation_file(tmp_path / "coordinator", tmp_path / "made", lifetime=lifetime)
    earlier = datetime.now(UTC) - timedelta(minutes=2)
    set_up(Home(folder=tmp_path / BROKER), made, made.hash, now=earlier)
    assert states(tmp_path / BROKER)["certificates"] == state


class _Clock(BaseHTTPRequestHandler):
    """A gateway that says what time it is there."""

    off = timedelta()

    def do_HEAD(self) -> None:
        now = datetime.now(UTC) + self.off
        self.send_response_only(405)
        self.send_header("Date", now.strftime("%a, %d %b %Y %H:%M:%S GMT"))
        self.end_headers()


@pytest.mark.parametrize(("off", "state"), [(0, "good"), (600, "failed"), (-600, "failed")])
def test_the_clock_is_compared_with_the_gateways(home: Path, off: int, state: str) -> None:
    handler = type("Clock", (_Clock,), {"off": timedelta(seconds=off)})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        gateway = f"http://127.0.0.1:{server.server_port}"
        assert states(home, gateway=gateway)["clock"] == state
    finally:
        server.shutdown()
        server.server_close()
    assert states(home, gateway=f"http://127.0.0.1:{free_port()}")["clock"] == "failed"


def test_looking_changes_nothing(home: Path) -> None:
    def content() -> dict[str, bytes]:
        files = (path for path in home.iterdir() if not path.name.endswith(("-wal", "-shm")))
        return {path.name: path.read_bytes() for path in files}

    before = content()
    states(home)
    assert content() == before
