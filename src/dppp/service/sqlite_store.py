"""A ledger's entries in one SQLite file, durable before a transaction ends.

Used by `dppp teacher` and `dppp ledger`. Write-ahead log with synchronous=FULL: a commit returns
after the log is on disk, and nobody sees an entry before that. BEGIN IMMEDIATE makes a transaction
exclusive among processes, a lock makes it exclusive among the threads of this one (so threads queue
instead of polling SQLite, and share one connection). Triggers keep a slip of the hand from changing
the past; the hash chain is what proves that it was not changed.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from dppp.errors import (
    InputError,
    LedgerDamaged,
    LedgerRolledBack,
    LedgerUnavailable,
    NotALedger,
)
from dppp.privacy.ledger_book import damaged
from dppp.privacy.ledger_chain import Entry
from dppp.privacy.ledger_store import Transaction

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

_WAIT_SECONDS = 60.0
"""How long a transaction waits for other processes."""

_PAGE_ENTRIES = 64


class SqliteStore:
    """A LedgerStore on an existing file."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._begin = "BEGIN" if is_read_only else "BEGIN IMMEDIATE"
        self._file = _identify(path)
        with _translated_errors(path):
            self._connection = _connect(path, mode="ro" if is_read_only else "rw")
            try:
                _require_ledger(self._connection, path)
                _prepare(self._connection, is_read_only=is_read_only)
            except BaseException:
                self._connection.close()
                raise

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Hold the file alone among threads and processes; a reader holds a snapshot instead."""
        self._require_same_process()
        with self._lock, _translated_errors(self._path):
            self._require_same_file()
            self._connection.execute(self._begin)
            try:
                yield _SqliteTransaction(self._connection)
            except BaseException:
                if self._connection.in_transaction:  # a full disk has ended it already
                    self._connection.execute("ROLLBACK")
                raise
            self._commit()

    def check_file(self) -> None:
        """SQLite's own check of the file's structure."""
        with self._lock, _translated_errors(self._path):
            found = [row[0] for row in self._connection.execute("PRAGMA integrity_check")]
        if found != ["ok"]:
            raise LedgerDamaged(
                f"{self._path} is damaged ({found[0]}); answer nothing from it and restore the "
                "newest copy"
            )

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _commit(self) -> None:
        """After a failed commit nobody knows what reached the disk, so the store ends here."""
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._connection.close()
            raise

    def _require_same_process(self) -> None:
        if os.getpid() != self._process:
            raise InputError(
                f"{self._path} was opened by another process (a fork copies the connection, and "
                "SQLite forbids to use it); open the ledger in each process anew"
            )

    def _require_same_file(self) -> None:
        if _identify(self._path) != self._file:
            raise LedgerRolledBack(
                f"{self._path} was replaced by another file while in use; stop, restore the newest "
                "copy and start again"
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
        damaged(position, "holds no text or bytes any more")
    return Entry(index=position, kind=kind, payload=payload, hash=digest)


def write_schema(path: Path) -> None:
    """Make an empty store at a path where nothing is."""
    with _translated_errors(path):
        connection = _connect(path, mode="rwc")
        try:
            connection.executescript(f"BEGIN EXCLUSIVE; {_SCHEMA} COMMIT;")
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()


def _connect(path: Path, *, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=_WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return connection


def _prepare(connection: sqlite3.Connection, *, is_read_only: bool) -> None:
    for setting in ("foreign_keys = ON", "trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {setting}")
    if not is_read_only:
        (journal,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if journal != "wal":
            raise LedgerUnavailable(
                f"SQLite keeps a {journal} journal here instead of a write-ahead log; put the "
                "ledger on a local disk"
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")


def _require_ledger(connection: sqlite3.Connection, path: Path) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise NotALedger(
            f"{path} is empty or belongs to another program, and is no dppp ledger; correct the "
            "path, or restore the newest copy if it was one"
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != SCHEMA_VERSION:
        raise NotALedger(
            f"{path} is a ledger of version {version}, and this dppp reads version "
            f"{SCHEMA_VERSION}; use the dppp that wrote it"
        )


def _identify(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise LedgerUnavailable(
            f"cannot reach the ledger {path}: {error.strerror}; correct the path, or restore the "
            "newest copy (a new ledger would forget what was spent)"
        ) from error
    return found.st_dev, found.st_ino


@contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise LedgerUnavailable(f"the ledger {path} is closed; open it again") from error
    except sqlite3.OperationalError as error:
        raise LedgerUnavailable(
            f"cannot use the ledger {path}: {error}; nothing was answered. Look for a full or "
            "read-only disk, or a process that holds it, and start again"
        ) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # a decayed message of SQLite's
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise NotALedger(f"{path} is no dppp ledger ({error}); correct the path") from error
        raise LedgerDamaged(
            f"{path} is damaged ({error}); answer nothing from it and restore the newest copy"
        ) from error
