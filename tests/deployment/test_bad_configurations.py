"""`dppp teacher run` and `dppp aggregator run` with something wrong: an exit code and one line."""

import logging
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.deployment.running import make_federation

from dppp.service.ceremony.home import Home
from dppp.service.ceremony.renewal import install_renewal, request_renewal, sign_renewals
from dppp.service.local.federation import LocalFederation
from dppp.service.stores.ledgers import create_ledger

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> LocalFederation:
    return make_federation(tmp_path_factory.mktemp("made") / "local")


@pytest.fixture
def dealt_teacher(tmp_path: Path) -> Path:
    """The configuration of a teacher under paillier."""
    local = make_federation(tmp_path / "local", cryptosystem="paillier")
    return local.teacher_configs[0]


@pytest.fixture
def teacher(made: LocalFederation, tmp_path: Path) -> Path:
    """A home of its own for each test; returns its configuration."""
    shutil.copytree(made.teacher_configs[0].parent, tmp_path / "teacher")
    return tmp_path / "teacher" / "teacher.toml"


@pytest.fixture
def aggregator(made: LocalFederation, tmp_path: Path) -> Path:
    shutil.copytree(made.aggregator_config.parent, tmp_path / "aggregator")
    return tmp_path / "aggregator" / "aggregator.toml"


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """The commands send all logs of this process to standard error; put that back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def edit(pattern: str, new: str) -> Change:
    def change(config: Path) -> None:
        text = config.read_text(encoding="utf-8")
        changed = re.sub(pattern, new, text, count=1, flags=re.MULTILINE)
        assert changed != text, pattern
        config.write_text(changed, encoding="utf-8")

    return change


def without(name: str) -> Change:
    return lambda config: (config.parent / name).unlink()


def damaged(name: str, text: str = "no longer what it was") -> Change:
    return lambda config: _write(config.parent / name, text)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _private(name: str, text: str) -> Change:
    """A file that only its owner reads."""

    def change(config: Path) -> None:
        _write(config.parent / name, text)
        (config.parent / name).chmod(0o600)

    return change


def save_wide_model(config: Path) -> None:
    """Of three columns, where the task has two."""
    import skops.io
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit([[0, 0, 0], [1, 1, 1]], ["no", "yes"])
    skops.io.dump(model, config.parent / "model.skops")


BOTH: dict[str, tuple[Change, int, str]] = {
    "no configuration": (lambda config: config.unlink(), 2, "cannot read"),
    "no TOML": (lambda config: _write(config, "home ="), 2, "TOML"),
    "an unknown key": (edit("^log_level", 'colour = "red"\nlog_level'), 2, "colour is not known"),
    "a key missing": (edit("^servers.*$", ""), 2, "broker.servers is missing"),
    "a number for text": (edit("^log_level.*$", "log_level = 3"), 2, "log_level"),
    "no federation file": (without("federation.json"), 2, "federation.json"),
    "a damaged federation file": (damaged("federation.json"), 2, "federation.json"),
    "another hash": (edit('_hash = "......', '_hash = "000000'), 1, "hash"),
    "no seed": (without("nats.seed"), 2, "nats.seed"),
    "a seed that others read": (
        lambda config: os.chmod(config.parent / "nats.seed", 0o644),
        2,
        "chmod 600",
    ),
    "no certificate": (without("tls.pem"), 2, "dppp setup"),
}
TEACHER: dict[str, tuple[Change, int, str]] = {
    "no model": (without("model.skops"), 2, "there is no file"),
    "a damaged model": (damaged("model.skops"), 2, "model.skops"),
    "a model of other columns": (save_wide_model, 2, "3 features"),
    "a model server that is away": (
        edit(
            'kind = "skops"\npath = .*\ntrusted_types.*',
            'kind = "http"\nurl = "http://127.0.0.1:9/predict"',
        ),
        1,
        "start the model server first",
    ),
    "an unknown kind": (edit('kind = "skops"', 'kind = "magic"'), 2, "model"),
    "a pickle without the flag": (
        edit('kind = "skops"\npath = .*\ntrusted_types.*', 'kind = "pickle"\npath = "model.skops"'),
        1,
        "--allow-pickle-which-can-run-any-code",
    ),
    "a function that is not there": (
        edit(
            'kind = "skops"\npath = .*\ntrusted_types.*',
            'kind = "callable"\nimport = "nowhere.at_all:predict"',
        ),
        2,
        "cannot import",
    ),
    "no place for the secrets of epochs": (
        edit("^secrets = .*$", 'secrets = "nowhere/secrets.db"'),
        1,
        "nowhere/secrets.db",
    ),
    "a letter for the secrets of epochs": (
        _private("epoch-secrets.db", "a letter " * 300),
        2,
        "does not hold the secrets of epochs",
    ),
    "secrets of epochs that others read": (damaged("epoch-secrets.db", ""), 2, "chmod 600"),
    "no ledger beside its head": (without("ledger.db"), 1, "ledger"),
    "no ledger": (damaged("ledger.db"), 2, "ledger"),
    "a head file of another ledger": (
        damaged("head.json", '{"index": 900, "hash": "' + "ab" * 32 + '"}'),
        1,
        "spend the same budget twice",
    ),
}
AGGREGATOR: dict[str, tuple[Change, int, str]] = {
    "half a certificate": (
        edit("^# tls_certificate.*", 'tls_certificate = "gateway.pem"'),
        2,
        "tls_key",
    ),
    "no address": (edit("^listen = .*", 'listen = "everywhere"'), 2, "127.0.0.1:9101"),
    "a store that is none": (
        damaged("batches.db", "text " * 300),
        2,
        "batch store",
    ),
    "the same querier twice": (
        edit(r"(\[\[queriers\]\]\nname[^\[]*)\Z", r"\1\n\1"),
        2,
        "two queriers",
    ),
    "a querier without an allowance": (edit(r"^queries = .*\n", ""), 2, "queries = 500"),
}


@pytest.mark.parametrize("name", [*BOTH, *TEACHER])
def test_a_teacher_says_in_one_line_what_is_wrong(teacher: Path, name: str) -> None:
    change, code, word = (BOTH | TEACHER)[name]
    change(teacher)
    assert_refused(code, word, run_dppp(f"teacher run --config {teacher}"))


def test_a_teacher_under_paillier_says_that_its_share_is_missing(dealt_teacher: Path) -> None:
    without("key.share")(dealt_teacher)
    assert_refused(2, "key.share", run_dppp(f"teacher run --config {dealt_teacher}"))


@pytest.mark.parametrize("name", [*BOTH, *AGGREGATOR])
def test_an_aggregator_says_in_one_line_what_is_wrong(aggregator: Path, name: str) -> None:
    change, code, word = (BOTH | AGGREGATOR)[name]
    change(aggregator)
    assert_refused(code, word, run_dppp(f"aggregator run --config {aggregator}"))


@pytest.mark.parametrize("role", ["teacher", "aggregator"])
def test_a_certificate_that_has_ended_is_said_with_what_to_do(
    made: LocalFederation, request: pytest.FixtureRequest, tmp_path: Path, role: str
) -> None:
    config: Path = request.getfixturevalue(role)
    home, then = Home(folder=config.parent), datetime.now(UTC) - timedelta(minutes=1)
    (ended,) = sign_renewals(
        made.folder / "coordinator",
        [request_renewal(home)],
        tmp_path,
        now=then,
        lifetime=timedelta(seconds=1),
    )
    install_renewal(home, (tmp_path / ended.file).read_text(), now=then)
    assert_refused(1, "dppp renew request", run_dppp(f"{role} run --config {config}"))


def test_a_task_that_was_not_accepted_is_not_answered(teacher: Path) -> None:
    for name in ("ledger.db", "head.json"):
        (teacher.parent / name).unlink()
    assert_refused(1, "cannot reach the ledger", run_dppp(f"teacher run --config {teacher}"))
    assert not (teacher.parent / "ledger.db").exists()  # running makes none
    ledger, head = teacher.parent / "ledger.db", teacher.parent / "head.json"
    create_ledger(ledger, teacher="teacher-1", head_path=head)
    assert_refused(2, "dppp teacher accept", run_dppp(f"teacher run --config {teacher}"))


def test_an_old_copy_of_the_ledger_is_refused_by_run_and_by_accept(teacher: Path) -> None:
    """A copy from before the task was accepted, put back: it would forget the reservation."""
    old = teacher.parent / "old.db"
    accepted = json_of(f"teacher accept --config {teacher}")
    assert accepted["is_new_ledger"] is False
    create_ledger(old, teacher="teacher-1", head_path=None)
    old.replace(teacher.parent / "ledger.db")
    for command in ("run", "accept"):
        refused = run_dppp(f"teacher {command} --config {teacher}")
        assert_refused(1, "spend the same budget twice", refused)


def test_an_address_in_use_is_named(teacher: Path, aggregator: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        edit("^# listen = .*", f'listen = "{address}"')(teacher)
        refused = run_dppp(f"teacher run --config {teacher}")
        assert_refused(2, f"cannot listen on {address}", refused)
        edit("^listen = .*", f'listen = "{address}"')(aggregator)
        refused = run_dppp(f"aggregator run --config {aggregator}")
        assert_refused(2, f"cannot listen on {address}", refused)
