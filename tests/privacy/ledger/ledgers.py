"""Ledgers to test with: all kinds of stores, ids, and agreements that cost what one likes."""

import contextlib
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

from tests.left_out import need_module

from dppp.privacy.ledger.agreement import AgreedTask, Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import LedgerStore, MemoryStore
from dppp.privacy.noise import Polya
from dppp.service.stores.ledgers import open_store
from dppp.service.stores.locations import Location
from dppp.service.stores.sqlite.ledger import write_schema

STORES = ("memory", "sqlite", "postgres")
"""The last two outlive their process."""

TEACHER = "hospital-7"
DATA = "patients-2026"

PLENTY = Polya(shape=1.0, ratio=0.999)
"""So much noise that any (ε, δ) of these tests covers it."""


def make_id(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


def make_ids(batch: object, count: int) -> list[bytes]:
    return [make_id("query", batch, number) for number in range(count)]


@functools.cache
def agree(*names: str, queries: int = 10, epsilon: float = 1.0, delta: float = 1e-6) -> Agreement:
    tasks = tuple(
        AgreedTask(task_id=make_id("task", name), noise=PLENTY, queries=queries, classes=2)
        for name in names
    )
    return Agreement(tasks=tasks, epsilon=epsilon, delta=delta)


@contextlib.contextmanager
def empty_store(kind: str, folder: Path) -> Iterator[LedgerStore]:
    if kind == "memory":
        yield MemoryStore()
        return
    store = open_store(write_empty(kind, folder))
    try:
        yield store
    finally:
        store.close()


def write_empty(kind: str, folder: Path) -> Location:
    """A place with tables in which nothing is."""
    location = new_location(kind, folder)
    if isinstance(location, Path):
        write_schema(location)
    else:
        from dppp.service.stores.postgres.ledger import write_tables

        write_tables(location)
    return location


def new_location(kind: str, folder: Path) -> Location:
    """A place where nothing is."""
    if kind == "sqlite":
        return folder / "ledger.db"
    need_module("psycopg", extra="service")
    from tests.postgres import shared_server

    return shared_server().fresh_url()


FILLED = 6
"""The index of the head after `fill`."""


def fill(ledger: Ledger, *, queries: int = 10) -> None:
    """A cap, a task, two batches with ballots, one of them endorsed and answered."""
    ledger.fix_cap(DATA, epsilon=2, delta=1e-5)
    ledger.accept(DATA, agree("first", queries=queries))
    for batch in ("a", "b"):
        answer(ledger, batch)
    ledger.record_endorsement(make_id("batch", "a"), make_id("list"), b"endorsement of a")
    ledger.record_answer(make_id("batch", "a"), make_id("list"), b"answer of a")


def answer(ledger: Ledger, batch: str, *, queries: int = 3, ballot: bytes | None = None) -> bytes:
    """Record the ballot of a batch of the first task."""
    return ledger.record_ballot(
        make_id("task", "first"),
        make_id("batch", batch),
        make_ids(batch, queries),
        f"ballot of {batch}".encode() if ballot is None else ballot,
    )
