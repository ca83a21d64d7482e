"""A ledger's entries in one SQLite file, durable before a transaction ends.

Used by `dppp teacher` and `dppp ledger`. How the file is held is in connection.py. Triggers keep a
slip of the hand from changing the past; the hash chain is what proves that it was not changed.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dppp.errors import (
    DpppError,
    LedgerDamaged,
    LedgerRolledBack,
    LedgerUnavailable,
    NotALedger,
)
from dppp.privacy.ledger.book import damaged
from dppp.privacy.ledger.chain import Entry
from dppp.privacy.ledger.store import Transaction
from dppp.service.stores.sqlite.connection import SqliteError, SqliteFile, connect, translated

APPLICATION_ID = 0x44505050
"""The letters DPPP, in the header of the file."""

SCHEMA_VERSION = 1

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE entries (
    position INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    payload BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE TABLE contents (
    position INTEGER PRIMARY KEY REFERENCES entries (position),
    content BLOB NOT NULL
) STRICT;
""" + "".join(
    f"""
CREATE TRIGGER {table}_{action} BEFORE {action} ON {table}
BEGIN SELECT raise(ABORT, 'a ledger is only ever appended to'); END;
"""
    for table in ("entries", "contents")
    for action in ("update", "delete")
)

_PAGE_ENTRIES = 64


class SqliteStore:
    """A LedgerStore on an existing file."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self._path = path
        self._identity = _identify(path)
        self._file = SqliteFile(
            path,
            mode="ro" if is_read_only else "rw",
            require=lambda connection: _require_ledger(connection, path),
            translate=lambda error: _translate(error, path),
        )

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Hold the file alone among threads and processes; a reader holds a snapshot instead."""
        with self._file.transaction() as connection:
            self._require_same_file()
            yield _SqliteTransaction(connection)

    def check_file(self) -> None:
        """SQLite's own check of the file's structure."""
        with self._file.transaction() as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        if found != ["ok"]:
            raise LedgerDamaged(
                f"{self._path} is damaged ({' '.join(found[0].split())})",
                hint="answer nothing from it and restore the newest copy",
            )

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _require_same_file(self) -> None:
        if _identify(self._path) != self._identity:
            raise LedgerRolledBack(
                f"{self._path} was replaced by another file while in use",
                hint="stop, restore the newest copy and start again",
            )


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_entries(self, start: int) -> Iterator[Entry]:
        """Page by page, so that no open cursor holds an old snapshot after the transaction."""
        while page := self._read_page(start):
            yield from page
            start = page[-1].index + 1

    def _read_page(self, start: int) -> list[Entry]:
        rows = self._connection.execute(
            "SELECT position, kind, payload, hash FROM entries WHERE position >= ?"
            " ORDER BY position LIMIT ?",
            (start, _PAGE_ENTRIES),
        )
        return [_entry(*row) for row in rows.fetchall()]

    def read_content(self, index: int) -> bytes | None:
        row = self._connection.execute(
            "SELECT content FROM contents WHERE position = ?", (index,)
        ).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def append(self, entry: Entry, content: bytes | None) -> None:
        self._connection.execute(
            "INSERT INTO entries (position, kind, payload, hash) VALUES (?, ?, ?, ?)",
            (entry.index, entry.kind, entry.payload, entry.hash),
        )
        if content is not None:
            self._connection.execute(
                "INSERT INTO contents (position, content) VALUES (?, ?)", (entry.index, content)
            )


def _entry(position: int, kind: object, payload: object, digest: object) -> Entry:
    if not (isinstance(kind, str) and isinstance(payload, bytes) and isinstance(digest, bytes)):
        damaged(position, "no longer holds text and bytes")
    return Entry(index=position, kind=kind, payload=payload, hash=digest)


def write_schema(path: Path) -> None:
    """Make an empty store at a path where nothing is."""
    with translated(lambda error: _translate(error, path)):
        connection = connect(path, mode="rwc")
        try:
            connection.executescript(f"BEGIN EXCLUSIVE; {_SCHEMA} COMMIT;")
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()


def _require_ledger(connection: sqlite3.Connection, path: Path) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise NotALedger(
            f"{path} is empty or belongs to another program, and is not a dppp ledger",
            hint="correct the path, or restore the newest copy if it was one",
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != SCHEMA_VERSION:
        raise NotALedger(
            f"{path} is a ledger of version {version}, and this dppp reads version "
            f"{SCHEMA_VERSION}",
            hint="use the dppp that wrote it",
        )


def _identify(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise LedgerUnavailable(
            f"cannot reach the ledger {path}: {error.strerror}",
            hint=(
                "correct the path, or restore the newest copy (a new ledger would forget what "
                "was spent)"
            ),
        ) from error
    return found.st_dev, found.st_ino


def _translate(error: SqliteError, path: Path) -> DpppError:
    """SQLite's errors as ours."""
    if isinstance(error, sqlite3.ProgrammingError):
        return LedgerUnavailable(
            f"the ledger {path} is closed", hint="look at its disk and start again"
        )
    if isinstance(error, sqlite3.OperationalError):
        return LedgerUnavailable(
            f"cannot use the ledger {path}, so nothing was answered: {error}",
            hint="look for a full or read-only disk, or a process that holds it, and start again",
        )
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
        return NotALedger(f"{path} is not a dppp ledger ({error})", hint="correct the path")
    return LedgerDamaged(
        f"{path} is damaged ({error})", hint="answer nothing from it and restore the newest copy"
    )
