"""The aggregator's store in a file: what is true of SQLite alone."""

import os
import sqlite3
from pathlib import Path

import pytest
from tests.service.full_disk import full_disk

from dppp.errors import BatchStoreUnavailable, InputError
from dppp.protocol.messages import BatchId
from dppp.service.sqlite_batches import SqliteBatchStore

FIRST, SECOND = BatchId(b"\1" * 32), BatchId(b"\0" * 32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "batches.sqlite"


def test_commits_wait_for_the_disk(path: Path) -> None:
    with SqliteBatchStore(path)._file.transaction() as connection:
        found = [
            connection.execute(f"PRAGMA {each}").fetchone()[0]
            for each in ("journal_mode", "synchronous")
        ]
    assert found == ["wal", 2]


def test_a_file_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"somebody's letter, longer than the header of SQLite" * 20)
    with pytest.raises(InputError, match="no batch store"):
        SqliteBatchStore(path)
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="no batch store"):
        SqliteBatchStore(path)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(BatchStoreUnavailable, match=r"nowhere/batches\.sqlite"):
        SqliteBatchStore(tmp_path / "nowhere" / "batches.sqlite")


def test_a_store_whose_disk_was_full_goes_on(path: Path) -> None:
    store = SqliteBatchStore(path)
    store.put_once(FIRST, "request", b"first")
    with full_disk(os.getpid(), path.with_name(f"{path.name}-wal")):
        for _ in range(2):
            with pytest.raises(BatchStoreUnavailable, match="full"):
                store.put_once(SECOND, "request", b"second")
    assert store.having("request") == (FIRST,)
    assert store.put_once(SECOND, "request", b"again") == b"again"
    store.close()
