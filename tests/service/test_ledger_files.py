"""Ledger files that were put back, cut, swapped, overwritten or never were ledgers."""

import json
import multiprocessing
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.privacy.ledgers import DATA, TEACHER, agree, answer, fill, make_id

from dppp.errors import (
    DpppError,
    InputError,
    LedgerDamaged,
    LedgerRolledBack,
    LedgerUnavailable,
    NotALedger,
    WrongTeacher,
)
from dppp.privacy.ledger import Ledger
from dppp.privacy.ledger_chain import Head
from dppp.service.head_file import HeadFile
from dppp.service.ledger_file import create_ledger, inspect_ledger, open_ledger
from dppp.service.sqlite_store import SqliteStore

BATCH = make_id("batch", "a")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def head_path(tmp_path: Path) -> Path:
    return tmp_path / "head.json"


@pytest.fixture(autouse=True)
def _filled(path: Path, head_path: Path) -> None:
    create_ledger(path, teacher=TEACHER, head_path=head_path)
    with open_ledger(path, head_path=head_path) as ledger:
        fill(ledger)


def test_the_settings_are_those_that_survive_a_crash(path: Path) -> None:
    store = SqliteStore(path)
    settings = {
        name: store._file.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "application_id")
    }
    store.close()
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "application_id": int.from_bytes(b"DPPP", "big"),
    }


def test_an_old_file_put_back_is_refused_and_says_what_to_do(path: Path, head_path: Path) -> None:
    shutil.copy(path, path.with_name("old copy"))
    with open_ledger(path, head_path=head_path) as ledger:
        answer(ledger, "c")
    shutil.copy(path.with_name("old copy"), path)
    with pytest.raises(LedgerRolledBack, match=r"older copy.*restore the newest"):
        open_ledger(path, head_path=head_path).__enter__()


def test_an_old_file_put_back_and_written_to_is_refused(path: Path, head_path: Path) -> None:
    shutil.copy(path, path.with_name("old copy"))
    with open_ledger(path, head_path=head_path) as ledger:
        answer(ledger, "c", ballot=b"noise")
    shutil.copy(path.with_name("old copy"), path)
    with open_ledger(path) as ledger:
        answer(ledger, "c", ballot=b"other noise")
    with pytest.raises(LedgerRolledBack, match="put back and written to"):
        open_ledger(path, head_path=head_path).__enter__()


def test_a_write_ahead_log_that_is_lost_is_noticed(path: Path, head_path: Path) -> None:
    with open_ledger(path, head_path=head_path) as ledger:
        answer(ledger, "c")
        shutil.copy(path, path.with_name("without its log"))
    path.with_name("without its log").replace(path)
    with pytest.raises(LedgerRolledBack):
        open_ledger(path, head_path=head_path).__enter__()


def test_a_ledger_put_back_while_in_use_answers_no_more(path: Path, head_path: Path) -> None:
    shutil.copy(path, path.with_name("old copy"))
    with open_ledger(path, head_path=head_path) as ledger:
        answer(ledger, "c")
        path.with_name("old copy").replace(path)
        with pytest.raises(LedgerRolledBack, match="replaced"):
            answer(ledger, "d", queries=1)


def test_a_store_ahead_of_the_remembered_head_is_fine(path: Path, head_path: Path) -> None:
    with open_ledger(path) as ledger:
        answer(ledger, "c")
    with open_ledger(path, head_path=head_path) as ledger:
        assert ledger.head.index == 6


def test_a_ballot_stored_by_a_process_that_died_is_remembered_before_it_is_sent(
    path: Path, head_path: Path
) -> None:
    with open_ledger(path, head_path=head_path) as living, open_ledger(path) as dying:
        answer(dying, "c")
        assert HeadFile(head_path).recall() != dying.head
        assert answer(living, "c", ballot=b"x") == b"ballot of c"
        assert HeadFile(head_path).recall() == dying.head


def test_no_ballot_leaves_when_its_head_cannot_be_remembered(path: Path, tmp_path: Path) -> None:
    other_disk = tmp_path / "other disk"
    other_disk.mkdir()
    with open_ledger(path) as ledger:
        HeadFile(other_disk / "head").remember(ledger.head)
    with open_ledger(path, head_path=other_disk / "head") as ledger:
        other_disk.rename(tmp_path / "gone")
        for _ in range(2):
            with pytest.raises(LedgerUnavailable, match="nothing was sent"):
                answer(ledger, "c")
        (tmp_path / "gone").rename(other_disk)
        assert answer(ledger, "c", ballot=b"x") == b"ballot of c"


def test_a_lost_head_file_is_refused(path: Path, head_path: Path) -> None:
    head_path.unlink()
    with pytest.raises(LedgerRolledBack, match="no head is remembered"):
        open_ledger(path, head_path=head_path).__enter__()


def test_a_lost_ledger_is_not_made_anew(path: Path, head_path: Path) -> None:
    path.unlink()
    with pytest.raises(LedgerUnavailable, match="would forget what was spent"):
        open_ledger(path, head_path=head_path).__enter__()
    with pytest.raises(InputError, match="open it instead"):
        create_ledger(path, teacher=TEACHER, head_path=head_path)
    assert not path.exists()


def test_an_existing_ledger_is_not_overwritten(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(InputError, match="open it instead"):
        create_ledger(path, teacher=TEACHER)
    assert path.read_bytes() == before


def test_the_ledger_of_another_teacher_is_refused(
    path: Path, head_path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    create_ledger(other, teacher="hospital-8")
    with pytest.raises(WrongTeacher):
        open_ledger(other, teacher=TEACHER).__enter__()
    other.replace(path)
    with pytest.raises(LedgerRolledBack):
        open_ledger(path, teacher=TEACHER, head_path=head_path).__enter__()


def make_foreign_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE entries (position INTEGER)")
    connection.close()


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("no ledger " * 1000),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "foreign": make_foreign_database,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    FOREIGN[kind](path)
    before = path.read_bytes()
    for is_read_only in (False, True):
        with pytest.raises(NotALedger, match="correct the path"):
            SqliteStore(path, is_read_only=is_read_only)
    assert path.read_bytes() == before


def test_a_later_version_is_refused(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(NotALedger, match="version 2"):
        SqliteStore(path)


def everything_in(path: Path) -> object:
    """All that a ledger says, after every check."""
    with inspect_ledger(path) as (ledger, store):
        store.check_file()
        ledger.check()
        return ledger.summary(), ledger.find_ballot(BATCH)


def test_a_ledger_cut_anywhere_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole), 509):
        path.write_bytes(whole[:length])
        with pytest.raises((LedgerDamaged, NotALedger)):
            everything_in(path)


def test_no_flipped_bit_of_the_file_changes_what_the_ledger_says(path: Path) -> None:
    whole = path.read_bytes()
    truth = everything_in(path)
    refused = 0
    for position in [*range(100), *range(100, len(whole), 61)]:
        flipped = bytes([whole[position] ^ 1 << position % 8])
        path.write_bytes(whole[:position] + flipped + whole[position + 1 :])
        try:
            assert everything_in(path) == truth
        except DpppError:
            refused += 1
    assert refused > 20


def test_the_past_cannot_be_changed_by_a_slip_of_the_hand(path: Path) -> None:
    connection = sqlite3.connect(path)
    for statement in ("UPDATE entries SET kind = 'x'", "DELETE FROM contents"):
        with pytest.raises(sqlite3.IntegrityError, match="only ever appended"):
            connection.execute(statement)
    connection.close()


def test_a_ledger_can_be_looked_at_while_it_is_written_to(path: Path) -> None:
    with open_ledger(path) as ledger, inspect_ledger(path) as (seen, _):
        with ledger._turn():
            assert seen.check().index == 5
        answer(ledger, "c")
        assert seen.head == ledger.head
        with pytest.raises(LedgerUnavailable):
            answer(seen, "d", queries=1)


def test_a_closed_ledger_says_so(path: Path) -> None:
    with open_ledger(path) as ledger:
        pass
    with pytest.raises(LedgerUnavailable, match="closed"):
        answer(ledger, "c")


def test_a_full_disk_charges_nothing_and_the_ledger_goes_on(path: Path) -> None:
    store = SqliteStore(path)
    ledger = Ledger.open(store)
    (pages,) = store._file.connection.execute("PRAGMA page_count").fetchone()
    store._file.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerUnavailable, match="full"):
        answer(ledger, "c", ballot=bytes(100_000))
    assert ledger.check().index == 5
    store._file.connection.execute("PRAGMA max_page_count = 100000")
    answer(ledger, "c", ballot=bytes(100_000))
    assert ledger.check().index == 6
    store.close()


def use_after_fork(ledger: Ledger, path: Path) -> None:
    with pytest.raises(InputError, match="anew"):
        answer(ledger, "c")
    with open_ledger(path) as own:
        answer(own, "c")
    os._exit(7)


def test_a_ledger_does_not_survive_a_fork_but_can_be_opened_again(path: Path) -> None:
    with open_ledger(path) as ledger:
        child = multiprocessing.get_context("fork").Process(
            target=use_after_fork, args=(ledger, path)
        )
        child.start()
        child.join(30)
        assert child.exitcode == 7
        assert answer(ledger, "c", ballot=b"x") == b"ballot of c"


def test_a_large_ballot_is_kept_whole(path: Path) -> None:
    ballot = os.urandom(5_000_000)
    with open_ledger(path) as ledger:
        answer(ledger, "c", ballot=ballot)
    with open_ledger(path) as ledger:
        assert ledger.find_ballot(make_id("batch", "c")) == ballot
        assert ledger.check().index == 6


def test_the_remembered_head_never_goes_back(tmp_path: Path) -> None:
    heads = HeadFile(tmp_path / "head")
    later, earlier = (Head(index=index, hash=make_id(index)) for index in (7, 6))
    assert heads.recall() is None
    heads.remember(later)
    heads.remember(earlier)
    assert heads.recall() == later
    with pytest.raises(LedgerRolledBack, match="two ledgers"):
        heads.remember(Head(index=7, hash=make_id("other")))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"index": -1, "hash": "00"}', "\u00ff"])
def test_a_file_that_is_no_head_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "head").write_text(text, encoding="latin-1")
    with pytest.raises(DpppError, match="head file"):
        HeadFile(tmp_path / "head").recall()


def test_the_head_file_is_what_show_prints(path: Path, head_path: Path) -> None:
    with inspect_ledger(path) as (ledger, _):
        assert json.loads(head_path.read_text()) == ledger.summary().to_json()["head"]
        assert ledger.summary().data[0].data_id == DATA


def test_agreeing_again_after_a_restart_costs_nothing(path: Path, head_path: Path) -> None:
    with open_ledger(path, head_path=head_path) as ledger:
        before = ledger.head
        ledger.fix_cap(DATA, epsilon=2, delta=1e-5)
        ledger.accept(DATA, agree("first"))
        assert ledger.head == before
