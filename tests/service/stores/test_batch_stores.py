"""The aggregator's store: the first bytes win, among threads and processes, and survive.

The same on SQLite and PostgreSQL.
"""

import multiprocessing
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Protocol

import pytest
from tests.left_out import need_module
from tests.service.ceremony.tampering import run_sql

from dppp.errors import BatchStoreUnavailable, InputError
from dppp.protocol.batch_store import BatchStore, Kind, claim_store
from dppp.protocol.messages import BatchId
from dppp.service.stores.batches import open_batch_store
from dppp.service.stores.ledgers import create_ledger
from dppp.service.stores.locations import Location

need_module("psycopg", extra="service")
import psycopg

FIRST, SECOND = BatchId(b"\1" * 32), BatchId(b"\0" * 32)


class Open(Protocol):
    def __call__(self) -> BatchStore: ...


@pytest.fixture
def open_store(location: Location) -> Iterator[Open]:
    """Opens the store of the test once more, each time by itself."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(open_batch_store(location))


def test_the_first_bytes_put_are_kept_for_ever(open_store: Open) -> None:
    store = open_store()
    assert store.put_once(FIRST, Kind.LIST, b"one") == b"one"
    assert store.put_once(FIRST, Kind.LIST, b"other") == b"one"
    assert store.get(FIRST, Kind.LIST) == b"one"
    assert open_store().put_once(FIRST, Kind.LIST, b"third") == b"one"


def test_kinds_and_batches_are_kept_apart_and_empty_bytes_are_something(open_store: Open) -> None:
    store = open_store()
    store.put_once(FIRST, Kind.REQUEST, b"")
    assert store.get(FIRST, Kind.REQUEST) == b""
    assert store.get(FIRST, Kind.LIST) is None
    assert store.get(SECOND, Kind.REQUEST) is None


def test_keys_come_in_the_order_in_which_they_were_first_put(open_store: Open) -> None:
    store = open_store()
    puts = (
        (SECOND, Kind.LIST),
        (FIRST, Kind.REQUEST),
        (SECOND, Kind.REQUEST),
        (FIRST, Kind.REQUEST),
    )
    for key, kind in puts:
        store.put_once(key, kind, b"data")
    assert open_store().having(Kind.REQUEST) == (FIRST, SECOND)
    assert open_store().having(Kind.LIST) == (SECOND,)


def test_what_was_put_since_is_told_with_its_place(open_store: Open) -> None:
    store = open_store()
    for key in (SECOND, FIRST):
        store.put_once(key, Kind.JOB, b"data")
        store.put_once(key, Kind.REQUEST, b"data")
    (first, before), (second, after) = store.put_since(Kind.JOB, 0)
    assert (before, after) == (SECOND, FIRST)
    assert first < second
    assert store.put_since(Kind.JOB, second) == ((second, FIRST),)
    assert store.put_since(Kind.JOB, second + 1) == ()


def test_of_many_threads_one_wins_and_all_get_its_bytes(open_store: Open) -> None:
    stores = [open_store() for _ in range(3)]
    with ThreadPoolExecutor(12) as pool:
        kept = pool.map(
            lambda number: stores[number % 3].put_once(FIRST, Kind.LIST, b"%d" % number), range(60)
        )
    assert len(set(kept)) == 1


PROGRAM = """
import sys
from pathlib import Path
from dppp.service.stores.batches import open_batch_store
place, name = sys.argv[1:]
with open_batch_store(place if "://" in place else Path(place)) as store:
    print([store.put_once(bytes([n]), "list", name.encode()) for n in range(20)])
"""


def test_of_several_processes_one_wins_and_all_get_its_bytes(location: Location) -> None:
    running = [
        subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", PROGRAM, str(location), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    said = {process.communicate(timeout=120)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(said) == 1


def test_what_is_kept_cannot_be_changed_by_a_slip_of_the_hand(
    open_store: Open, location: Location
) -> None:
    open_store().put_once(FIRST, Kind.LIST, b"one")
    with pytest.raises(
        (sqlite3.IntegrityError, psycopg.errors.RaiseException), match="written once"
    ):
        run_sql(location, "UPDATE kept SET data = key")


def use_after_fork(store: BatchStore, location: Location) -> None:
    with pytest.raises(InputError, match="another process"):
        store.having(Kind.REQUEST)
    with open_batch_store(location) as own:
        own.put_once(FIRST, Kind.LIST, b"child")
    os._exit(7)


def test_a_store_does_not_work_in_a_forked_process_but_can_be_opened_again(
    open_store: Open, location: Location
) -> None:
    store = open_store()
    child = multiprocessing.get_context("fork").Process(
        target=use_after_fork, args=(store, location)
    )
    child.start()
    child.join(30)
    assert child.exitcode == 7
    assert store.put_once(FIRST, Kind.LIST, b"parent") == b"child"


def test_a_closed_store_says_so(location: Location) -> None:
    with open_batch_store(location) as store:
        pass
    with pytest.raises(BatchStoreUnavailable, match="closed"):
        store.having(Kind.REQUEST)


def test_a_large_transcript_is_kept_whole(open_store: Open) -> None:
    data = os.urandom(5_000_000)
    open_store().put_once(FIRST, Kind.OUTCOME, data)
    assert open_store().get(FIRST, Kind.OUTCOME) == data


def test_a_store_is_of_one_task_and_of_no_version_before_endorsements(open_store: Open) -> None:
    store = open_store()
    claim_store(store, b"t" * 32)
    store.put_once(FIRST, Kind.REQUEST, b"signed")
    claim_store(open_store(), b"t" * 32)
    with pytest.raises(InputError, match="belongs to another task"):
        claim_store(open_store(), b"u" * 32)


@pytest.mark.parametrize("kind", [Kind.REQUEST, Kind.JOB])
def test_a_store_that_an_old_version_wrote_into_is_refused(open_store: Open, kind: Kind) -> None:
    store = open_store()
    store.put_once(FIRST, kind, b"of 0.1.0")
    with pytest.raises(InputError, match=r"before 0\.2\.0.*\nhint: .*new place"):
        claim_store(open_store(), b"t" * 32)


def test_a_ledger_is_no_batch_store(open_store: Open, location: Location) -> None:
    create_ledger(location, teacher="hospital-7")
    with pytest.raises(InputError, match="correct the"):
        open_store()
