"""A teacher's ledger as files: made once, opened ever after.

Creating and opening are two things on purpose. A ledger that is missing must not be made anew in
passing, since a new one has forgotten everything that was spent.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dppp.errors import InputError, LedgerUnavailable
from dppp.privacy.ledger import Ledger
from dppp.service.head_file import HeadFile, sync_folder
from dppp.service.sqlite_store import SqliteStore, write_schema


def create_ledger(path: Path, *, teacher: str, head_path: Path | None = None) -> None:
    """Make the ledger of a teacher where none is; it is there as a whole or not at all."""
    if path.exists() or (head_path is not None and head_path.exists()):
        raise InputError(
            f"{path} or its head file is there already; open it instead: a new ledger would forget "
            "what was spent"
        )
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        unfinished.unlink(missing_ok=True)
        _write_first_entry(unfinished, teacher)
        os.link(unfinished, path)  # unlike a rename, never replaces what another process made
        unfinished.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise LedgerUnavailable(f"cannot create the ledger {path}: {error.strerror}") from error
    with open_ledger(path, teacher=teacher, head_path=head_path):
        pass  # opening remembers the first head


@contextmanager
def open_ledger(
    path: Path, *, teacher: str | None = None, head_path: Path | None = None
) -> Iterator[Ledger]:
    """Open a ledger for work; refused when it lacks the remembered head."""
    store = SqliteStore(path)
    try:
        heads = None if head_path is None else HeadFile(head_path)
        yield Ledger.open(store, teacher=teacher, heads=heads)
    finally:
        store.close()


@contextmanager
def inspect_ledger(path: Path) -> Iterator[tuple[Ledger, SqliteStore]]:
    """Open a ledger to look at it, beside a teacher who may be writing to it."""
    store = SqliteStore(path, is_read_only=True)
    try:
        yield Ledger.open(store), store
    finally:
        store.close()


def _write_first_entry(path: Path, teacher: str) -> None:
    write_schema(path)
    store = SqliteStore(path)
    try:
        Ledger.create(store, teacher=teacher)
    finally:
        store.close()
