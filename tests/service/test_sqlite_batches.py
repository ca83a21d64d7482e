"""The aggregator's store: the first bytes win, among threads and processes, and survive."""

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dppp.errors import BatchStoreUnavailable, InputError
from dppp.protocol.messages import BatchId
from dppp.service.sqlite_batches import SqliteBatchStore

FIRST, SECOND = BatchId(b"\1" * 32), BatchId(b"\0" * 32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "batches.sqlite"


def test_the_first_bytes_put_are_kept_for_ever(path: Path) -> None:
    store = SqliteBatchStore(path)
    assert store.put_once(FIRST, "list", b"one") == b"one"
    assert store.put_once(FIRST, "list", b"other") == b"one"
    assert store.get(FIRST, "list") == b"one"
    store.close()
    assert SqliteBatchStore(path).put_once(FIRST, "list", b"third") == b"one"


def test_kinds_and_batches_are_kept_apart_and_empty_bytes_are_something(path: Path) -> None:
    store = SqliteBatchStore(path)
    store.put_once(FIRST, "request", b"")
    assert store.get(FIRST, "request") == b""
    assert store.get(FIRST, "list") is None
    assert store.get(SECOND, "request") is None


def test_keys_come_in_the_order_in_which_they_were_first_put(path: Path) -> None:
    store = SqliteBatchStore(path)
    puts = ((SECOND, "list"), (FIRST, "request"), (SECOND, "request"), (FIRST, "request"))
    for key, kind in puts:
        store.put_once(key, kind, b"data")
    store.close()
    assert SqliteBatchStore(path).having("request") == (FIRST, SECOND)
    assert SqliteBatchStore(path).having("list") == (SECOND,)


def test_of_many_threads_one_wins_and_all_get_its_bytes(path: Path) -> None:
    stores = [SqliteBatchStore(path) for _ in range(3)]
    with ThreadPoolExecutor(12) as pool:
        kept = pool.map(
            lambda number: stores[number % 3].put_once(FIRST, "list", b"%d" % number), range(60)
        )
    assert len(set(kept)) == 1


def test_of_several_processes_one_wins_and_all_get_its_bytes(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path;"
        "from dppp.service.sqlite_batches import SqliteBatchStore;"
        "store = SqliteBatchStore(Path(sys.argv[1]));"
        "print([store.put_once(bytes([n]), 'list', sys.argv[2].encode()) for n in range(20)])"
    )
    running = [
        subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", program, str(path), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    said = {process.communicate(timeout=120)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(said) == 1


def test_what_is_kept_cannot_be_changed_by_a_slip_of_the_hand(path: Path) -> None:
    SqliteBatchStore(path).put_once(FIRST, "list", b"one")
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="written once"):
        connection.execute("UPDATE kept SET data = x'00'")
    connection.close()


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


def test_a_store_does_not_work_in_a_forked_process_or_when_closed(path: Path) -> None:
    store = SqliteBatchStore(path)
    store._file._process = os.getpid() + 1
    with pytest.raises(InputError, match="another process"):
        store.having("request")
    store._file._process = os.getpid()
    store.close()
    with pytest.raises(BatchStoreUnavailable):
        store.having("request")
