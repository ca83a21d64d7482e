"""The aggregator's store in a file: what is true of SQLite alone."""

import os
import sqlite3
from pathlib import Path

import pytest
from tests.service.stores.full_disk import no_file_longer_than

from dppp.errors import BatchStoreUnavailable, InputError
from dppp.protocol.batch_store import Kind
from dppp.protocol.messages import BatchId
from dppp.service.stores.sqlite.batches import SqliteBatchStore

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


def test_after_a_failed_commit_the_store_goes_on_by_itself(path: Path) -> None:
    store = SqliteBatchStore(path)
    store.put_once(FIRST, Kind.REQUEST, b"kept")
    log = path.with_name(f"{path.name}-wal")
    with no_file_longer_than(log.stat().st_size + 8_192):
        for _ in range(2):
            with pytest.raises(BatchStoreUnavailable, match="nothing was sent"):
                store.put_once(SECOND, Kind.REQUEST, bytes(1_000_000))
    assert store.get(SECOND, Kind.REQUEST) is None
    assert store.put_once(SECOND, Kind.REQUEST, b"later") == b"later"
    assert store.having(Kind.REQUEST) == (FIRST, SECOND)
    store.close()
    with pytest.raises(BatchStoreUnavailable, match="closed"):
        store.get(FIRST, Kind.REQUEST)


def test_nobody_else_on_the_machine_reads_what_queriers_asked(path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = SqliteBatchStore(path)
        store.put_once(FIRST, Kind.REQUEST, b"a patient")
    finally:
        os.umask(before)
    modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    store.close()


def test_a_file_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"somebody's letter, longer than the header of SQLite" * 20)
    with pytest.raises(InputError, match="not a batch store"):
        SqliteBatchStore(path)
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a batch store"):
        SqliteBatchStore(path)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(BatchStoreUnavailable, match=r"nowhere/batches\.sqlite"):
        SqliteBatchStore(tmp_path / "nowhere" / "batches.sqlite")
