"""Ledger files that were put back, cut, swapped, overwritten or never were ledgers."""

import json
import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest
from tests.privacy.ledger.ledgers import FILLED, TEACHER, answer, fill, make_id
from tests.service.stores.full_disk import no_file_longer_than

from dppp.errors import (
    DpppError,
    LedgerDamaged,
    LedgerRolledBack,
    LedgerUnavailable,
    NotALedger,
    SecondList,
)
from dppp.privacy.ledger.chain import Head
from dppp.privacy.ledger.ledger import Ledger
from dppp.service.stores.head_file import HeadFile
from dppp.service.stores.ledgers import create_ledger, inspect_ledger, open_ledger
from dppp.service.stores.sqlite.connection import SqliteFile
from dppp.service.stores.sqlite.ledger import SqliteStore

BATCH = make_id("batch", "a")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


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


def test_a_write_ahead_log_that_is_lost_is_noticed(path: Path, head_path: Path) -> None:
    with open_ledger(path, head_path=head_path) as ledger:
        answer(ledger, "c")
        shutil.copy(path, path.with_name("without its log"))
    path.with_name("without its log").replace(path)
    with pytest.raises(LedgerRolledBack):
        open_ledger(path, head_path=head_path).__enter__()


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


def everything_in(path: Path) -> object:
    """All that a ledger says, after every check."""
    with inspect_ledger(path) as (ledger, store):
        store.check_file()
        ledger.check()
        listed = make_id("list")
        said = ledger.find_endorsement(BATCH, listed), ledger.find_answer(BATCH, listed)
        return ledger.summary(), ledger.find_ballot(BATCH), said


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


def test_damage_that_only_sqlite_can_see_is_said_in_one_line(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[36:40] = (1).to_bytes(4, "big")  # one unused page, and there is none
    path.write_bytes(whole)
    with inspect_ledger(path) as (ledger, store):
        ledger.check()
        with pytest.raises(
            LedgerDamaged, match=r"freelist.*\nhint: .*answer nothing from it"
        ) as caught:
            store.check_file()
    assert "\n" not in caught.value.one_line


def test_a_ledger_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(LedgerUnavailable, match=r"cannot create the ledger .*Not a directory"):
        create_ledger(tmp_path / "file" / "ledger.db", teacher=TEACHER)


def test_a_file_without_a_write_ahead_log_is_refused(tmp_path: Path) -> None:
    """As on a network's disk; here it is a database in memory, which has none either."""
    with pytest.raises(LedgerUnavailable, match=r"memory journal .* put the file on a local disk"):
        SqliteFile(
            tmp_path / "ledger.db",
            mode="memory",
            require=lambda _: None,
            translate=lambda error: LedgerUnavailable(str(error)),
        )


def test_a_full_disk_charges_nothing_and_the_ledger_goes_on(path: Path) -> None:
    store = SqliteStore(path)
    ledger = Ledger.open(store)
    (pages,) = store._file.connection.execute("PRAGMA page_count").fetchone()
    store._file.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerUnavailable, match="full"):
        answer(ledger, "c", ballot=bytes(100_000))
    assert ledger.check().index == FILLED
    store._file.connection.execute("PRAGMA max_page_count = 100000")
    answer(ledger, "c", ballot=bytes(100_000))
    assert ledger.check().index == FILLED + 1
    store.close()


def test_a_disk_that_is_full_at_the_commit_charges_nothing_and_the_ledger_goes_on(
    path: Path,
) -> None:
    store = SqliteStore(path)
    ledger = Ledger.open(store)
    log = path.with_name(f"{path.name}-wal")
    with no_file_longer_than(log.stat().st_size + 8_192):
        for _ in range(2):
            with pytest.raises(LedgerUnavailable):
                answer(ledger, "c", ballot=bytes(1_000_000))
    assert ledger.check().index == FILLED
    answer(ledger, "c", ballot=bytes(1_000_000))
    assert ledger.check().index == FILLED + 1
    store.close()


def test_two_copies_of_a_ledger_on_one_head_file_do_not_both_answer(
    path: Path, head_path: Path
) -> None:
    """Or the same batch would be answered twice, each time with fresh noise."""
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    with (
        open_ledger(path, head_path=head_path) as one,
        open_ledger(copy, head_path=head_path) as other,
    ):
        answer(one, "c", ballot=b"noise")
        one.record_endorsement(make_id("batch", "b"), make_id("list"), b"endorsement")
        one.record_answer(make_id("batch", "b"), make_id("list"), b"answer")
        for _ in range(2):
            with pytest.raises(LedgerRolledBack, match="older copy"):
                answer(other, "c", ballot=b"fresh noise")
        with pytest.raises(LedgerRolledBack):
            other.find_ballot(make_id("batch", "c"))
        for record in (other.record_endorsement, other.record_answer):
            with pytest.raises(LedgerRolledBack):
                record(make_id("batch", "b"), make_id("second list"), b"x")
        assert one.find_ballot(make_id("batch", "c")) == b"noise"


def test_two_processes_on_one_ledger_and_one_head_file_both_answer(
    path: Path, head_path: Path
) -> None:
    with (
        open_ledger(path, head_path=head_path) as one,
        open_ledger(path, head_path=head_path) as other,
    ):
        assert answer(one, "c", ballot=b"noise") == b"noise"
        assert answer(other, "c", ballot=b"fresh noise") == b"noise"
        other.record_endorsement(make_id("batch", "b"), make_id("list"), b"endorsement")
        assert one.record_answer(make_id("batch", "b"), make_id("list"), b"answer") == b"answer"
        with pytest.raises(SecondList):
            other.record_answer(make_id("batch", "b"), make_id("second list"), b"x")
        assert one.find_ballot(make_id("batch", "c")) == b"noise"


def test_the_remembered_head_never_goes_back(tmp_path: Path) -> None:
    heads = HeadFile(tmp_path / "head")
    later, earlier = (Head(index=index, hash=make_id(index)) for index in (7, 6))
    assert heads.recall() is None
    heads.remember(later)
    heads.remember(earlier)
    assert heads.recall() == later
    with pytest.raises(LedgerRolledBack, match="two ledgers"):
        heads.remember(Head(index=7, hash=make_id("other")))


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_only_its_owner_reads_or_writes_a_head_file(tmp_path: Path) -> None:
    """Whoever may write it can make a ledger that was put back look new."""
    folder = tmp_path / "other disk"
    folder.mkdir()
    old = os.umask(0)
    try:
        HeadFile(folder / "head").remember(Head(index=7, hash=make_id(7)))
    finally:
        os.umask(old)
    assert modes(folder) == {"head": 0o600, "head.lock": 0o600}


@pytest.mark.parametrize("index", [7, 8])
def test_a_head_file_that_others_could_write_is_closed_to_them(tmp_path: Path, index: int) -> None:
    """As older versions made it; with or without a newer head, and with a rest of a crash."""
    heads = HeadFile(tmp_path / "head")
    heads.remember(Head(index=7, hash=make_id(7)))
    (tmp_path / "head").chmod(0o666)
    (tmp_path / "head.lock").chmod(0o666)
    (tmp_path / "head.new").touch(0o666)
    heads.remember(Head(index=index, hash=make_id(index)))
    assert modes(tmp_path)["head"] == modes(tmp_path)["head.lock"] == 0o600
    assert heads.recall() == Head(index=index, hash=make_id(index))


BAD_HEADS = {
    "empty": "",
    "no fields": "{}",
    "a list": "[]",
    "a short hash": '{"index": 1, "hash": "00"}',
    "before the first entry": json.dumps({"index": -1, "hash": "00" * 32}),
    "an index that is text": json.dumps({"index": "7", "hash": "00" * 32}),
    "no text": "\u00ff",
}


@pytest.mark.parametrize("name", BAD_HEADS)
def test_a_file_that_is_no_head_file_is_refused(tmp_path: Path, name: str) -> None:
    """One from before the first entry would fit any ledger, also one that was put back."""
    text = BAD_HEADS[name]
    (tmp_path / "head").write_text(text, encoding="latin-1")
    with pytest.raises(DpppError, match="head file"):
        HeadFile(tmp_path / "head").recall()
