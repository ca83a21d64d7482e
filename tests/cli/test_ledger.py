"""`dppp ledger`: what was spent, and whether that is the truth."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp, run_process
from tests.privacy.ledger.ledgers import (
    DATA,
    FILLED,
    TEACHER,
    agree,
    answer,
    fill,
    make_id,
    new_location,
)

from dppp.service.stores.ledgers import create_ledger, open_ledger
from dppp.service.stores.locations import Location


@pytest.fixture
def head_path(tmp_path: Path) -> Path:
    return tmp_path / "head.json"


def fill_at(location: Location, head_path: Path) -> None:
    create_ledger(location, teacher=TEACHER, head_path=head_path)
    with open_ledger(location, head_path=head_path) as ledger:
        fill(ledger)
        ledger.accept(DATA, agree("second", "third", epsilon=0.5))


@pytest.fixture
def path(tmp_path: Path, head_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    fill_at(path, head_path)
    return path


@pytest.fixture(params=["sqlite", "postgres by environment", "postgres by file"])
def typed(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    head_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """A ledger of each kind, as it is given to the commands."""
    kind, _, by = request.param.partition(" by ")
    location = new_location(kind, tmp_path)
    fill_at(location, head_path)
    if by == "environment":
        monkeypatch.setenv("DPPP_LEDGER_URL", str(location))
        return "env:DPPP_LEDGER_URL"
    if by == "file":
        (tmp_path / "ledger.url").write_text(f"{location}\n")
        return f"file:{tmp_path / 'ledger.url'}"
    return str(location)


def test_show_prints_every_number_for_people(typed: str) -> None:
    result = run_dppp(f"ledger show {typed}")
    assert result.returncode == 0
    for word in (TEACHER, DATA, "cap", "reserved", "1.5", make_id("task", "first").hex()[:16]):
        assert word in result.stdout
    assert "fixed together" in result.stdout


def test_show_prints_one_object_for_programs(typed: str) -> None:
    found = json_of(f"ledger show {typed}")
    assert found["teacher"] == TEACHER
    assert found["head"]["index"] == FILLED + 1
    (data,) = found["data"]
    assert data["reserved"] == {"epsilon": 1.5, "delta": 2e-6}
    assert [task["answered"] for task in data["tasks"]] == [6, 0, 0]
    assert [task["fixed_together"] for task in data["tasks"]] == [1, 2, 2]


def test_show_counts_refunded_and_redone_batches(path: Path, head_path: Path) -> None:
    assert "refunded" not in run_dppp(f"ledger show {path}").stdout
    unanswered, evidence = make_id("batch", "b"), make_id("withdrawals of t teachers")
    with open_ledger(path, head_path=head_path) as ledger:
        ledger.record_retry(unanswered, 2, b"new ballot", evidence=evidence)
        ledger.record_refund(unanswered, evidence=evidence, attempt=2)
    shown = " ".join(run_dppp(f"ledger show {path}").stdout.split())
    assert "refunded, whose queries are not among the answered: 1" in shown
    assert "batches redone, each at one charge: 1" in shown
    assert f"{make_id('task', 'first').hex()[:16]} 10 3 7 2 " in shown
    found = json_of(f"ledger show {path}")["data"][0]["tasks"][0]
    names = ("queries", "answered", "left", "batches", "refunded", "redone")
    assert [found[name] for name in names] == [10, 3, 7, 2, 1, 1]


def test_check_finds_a_whole_ledger_whole(typed: str, head_path: Path) -> None:
    result = run_process(f"ledger check {typed} --remembered {head_path}")
    assert result.returncode == 0, result.stderr
    assert f"all {FILLED + 2} entries" in result.stdout
    assert "did not go back" in result.stdout
    found = json_of(f"ledger check {typed}")
    assert found["checked"] is True
    assert found["head"] == json.loads(head_path.read_text())


def test_check_says_that_it_cannot_see_a_rollback_without_a_head(path: Path) -> None:
    assert "only a remembered head can tell" in run_dppp(f"ledger check {path}").stdout


def test_check_names_the_first_broken_entry(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER contents_update")
    connection.execute("UPDATE contents SET content = x'00' WHERE position = 4")
    connection.commit()
    connection.close()
    assert_refused(1, "entry 4 ", run_dppp(f"ledger check {path}"))


def test_check_refuses_an_old_file_put_back(path: Path) -> None:
    head_path = path.with_name("head.json")
    shutil.copy(path, path.with_name("old"))
    with open_ledger(path, head_path=head_path) as ledger:
        answer(ledger, "c")
    shutil.copy(path.with_name("old"), path)
    assert_refused(1, "older copy", run_dppp(f"ledger check {path} --remembered {head_path}"))


def test_what_is_no_ledger_is_bad_input(path: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello " * 100)
    for command in ("show", "check"):
        assert_refused(2, "not a dppp ledger", run_dppp(f"ledger {command} {tmp_path / 'text'}"))
        assert_refused(2, "there is no file", run_dppp(f"ledger {command} {tmp_path / 'none'}"))
        assert_refused(2, "there is no file", run_dppp(f"ledger {command} {tmp_path}"))
    bad_head = f"ledger check {path} --remembered {tmp_path / 'text'}"
    assert_refused(2, "not a head file", run_dppp(bad_head))
    no_head = f"ledger check {path} --remembered {tmp_path / 'none'}"
    assert_refused(2, "there is no file", run_dppp(no_head))


def test_remember_begins_a_head_file_and_never_replaces_one(typed: str, tmp_path: Path) -> None:
    new = tmp_path / "new head.json"
    found = json_of(f"ledger remember {typed} '{new}'")
    assert json.loads(new.read_text()) == found["head"]
    assert_refused(2, "already", run_dppp(f"ledger remember {typed} '{new}'"))


def test_a_url_on_the_command_line_is_refused_and_never_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://teacher:hunter2@127.0.0.1:1/ledger"
    assert_refused(2, "env:NAME", run_dppp(f"ledger show {url}"))
    (tmp_path / "bad.url").write_text("mysql://teacher:hunter2@host/ledger")
    (tmp_path / "bytes.url").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("DPPP_LEDGER_URL", url)
    for given, code, word in (
        ("env:NO_SUCH_VARIABLE", 2, "NO_SUCH_VARIABLE"),
        (f"file:{tmp_path / 'none.url'}", 2, "cannot read"),
        (f"file:{tmp_path / 'bytes.url'}", 2, "UTF-8"),
        (f"file:{tmp_path / 'bad.url'}", 2, "postgresql://"),
        ("env:DPPP_LEDGER_URL", 1, "cannot"),
    ):
        for command in ("show", "check"):
            result = run_dppp(f"ledger {command} {given}")
            assert_refused(code, word, result)
            assert "hunter2" not in result.stderr + result.stdout


def test_looking_changes_nothing(path: Path) -> None:
    before = path.read_bytes()
    for command in ("show", "check"):
        assert run_dppp(f"ledger {command} {path}").returncode == 0
    assert path.read_bytes() == before


def test_backup_and_restore_go_from_any_kind_to_any(
    typed: str, head_path: Path, tmp_path: Path
) -> None:
    copied = json_of(f"ledger backup {typed} {tmp_path}/copy.db --remembered {head_path}")
    assert copied["head"] == json.loads(head_path.read_text())
    back = json_of(f"ledger restore {tmp_path}/copy.db {tmp_path}/back.db --head {head_path}")
    assert back["head"] == copied["head"]
    again = run_dppp(f"ledger restore {tmp_path}/copy.db {typed} --head {head_path}")
    assert_refused(2, "there is a ledger already", again)


def test_restore_says_what_to_do_with_a_copy_that_is_too_old(
    path: Path, head_path: Path, tmp_path: Path
) -> None:
    run_dppp(f"ledger backup {path} {tmp_path}/old.db")
    with open_ledger(path, head_path=head_path) as ledger:
        answer(ledger, "since", queries=1)
    path.unlink()
    refused = run_dppp(f"ledger restore {tmp_path}/old.db {path} --head {head_path}")
    assert_refused(1, "look for a newer copy", refused)
    assert not path.exists()
