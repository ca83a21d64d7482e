"""A teacher's ledger, in a file or in PostgreSQL: made once, opened ever after.

Creating and opening are two things on purpose. A ledger that is missing must not be made again in
passing, since a new one has forgotten everything that was spent. Used by `dppp teacher` and
`dppp ledger`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from dppp.errors import InputError, LedgerUnavailable
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import LedgerStore
from dppp.service.stores.head_file import HeadFile
from dppp.service.stores.locations import Location, require_url
from dppp.service.stores.new_files import sync_folder
from dppp.service.stores.sqlite.ledger import SqliteStore, write_schema


class StoredLedger(LedgerStore, Protocol):
    """A LedgerStore that outlives its process."""

    def check_file(self) -> None:
        """What the database can say about the soundness of its own files."""

    def close(self) -> None:
        """Let go of it."""


def create_ledger(location: Location, *, teacher: str, head_path: Path | None = None) -> None:
    """Make the ledger of a teacher where none is; it is there as a whole or not at all."""
    if head_path is not None and head_path.exists():
        raise _there_already("its head file")
    if isinstance(location, Path):
        _create_file(location, teacher)
    else:
        _create_in_postgres(location, teacher)
    with open_ledger(location, teacher=teacher, head_path=head_path):
        pass  # opening remembers the first head


def has_ledger(location: Location) -> bool:
    """Whether there is anything that a new ledger must not replace."""
    if isinstance(location, Path):
        return location.exists()
    require_url(location)
    from dppp.service.stores.postgres.ledger import has_entries  # noqa: PLC0415

    return has_entries(location)


@contextmanager
def open_ledger(
    location: Location, *, teacher: str | None = None, head_path: Path | None = None
) -> Iterator[Ledger]:
    """Open a ledger for work; refused when it lacks the remembered head."""
    store = open_store(location)
    try:
        heads = None if head_path is None else HeadFile(head_path)
        yield Ledger.open(store, teacher=teacher, heads=heads)
    finally:
        store.close()


@contextmanager
def inspect_ledger(location: Location) -> Iterator[tuple[Ledger, StoredLedger]]:
    """Open a ledger to look at it, beside a teacher who may be writing to it."""
    store = open_store(location, is_read_only=True)
    try:
        yield Ledger.open(store), store
    finally:
        store.close()


def open_store(location: Location, *, is_read_only: bool = False) -> StoredLedger:
    """The store at a location; close it when done."""
    if isinstance(location, Path):
        return SqliteStore(location, is_read_only=is_read_only)
    require_url(location)
    from dppp.service.stores.postgres.ledger import PostgresStore  # noqa: PLC0415

    return PostgresStore(location, is_read_only=is_read_only)


def _create_file(path: Path, teacher: str) -> None:
    if path.exists():
        raise _there_already(str(path))
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        unfinished.unlink(missing_ok=True)
        write_schema(unfinished)
        _write_first_entry(unfinished, teacher)
        os.link(unfinished, path)  # unlike a rename, never replaces what another process made
        unfinished.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise LedgerUnavailable(
            f"cannot create the ledger {path}: {error.strerror}",
            hint="make room or choose another place",
        ) from error


def _create_in_postgres(url: str, teacher: str) -> None:
    """Tables without an entry, after a crash in between, are not a ledger yet and are filled."""
    require_url(url)
    from dppp.service.stores.postgres.ledger import write_tables  # noqa: PLC0415

    write_tables(url)
    _write_first_entry(url, teacher)


def _write_first_entry(location: Location, teacher: str) -> None:
    store = open_store(location)
    try:
        Ledger.create(store, teacher=teacher)
    finally:
        store.close()


def _there_already(what: str) -> InputError:
    return InputError(
        f"{what} is there already", hint="open it instead: a new ledger would forget what was spent"
    )
