"""One SQLite file held by the rules that keep our promises, whatever is in it.

Used by the stores beside this file. Write-ahead log with synchronous=FULL: a commit returns after
the log is on disk, and nobody sees what it wrote before that. BEGIN IMMEDIATE makes a transaction
exclusive among processes, a lock makes it exclusive among the threads of this one.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from dppp.errors import DpppError, InputError

WAIT_SECONDS = 60.0
"""How long a transaction waits for other processes."""

Translate = Callable[[sqlite3.Error], DpppError]
"""SQLite's errors as ours, saying what to do."""


class SqliteFile:
    """A connection that outlives neither its process nor a failed commit."""

    def __init__(self, path: Path, *, translate: Translate) -> None:
        self._path = path
        self._translate = translate
        self._lock = threading.Lock()
        self._process = os.getpid()
        with translated(translate):
            self._connection = connect(path, mode="rwc")
            try:
                make_durable(self._connection)
            except BaseException:
                self._connection.close()
                raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the file alone; when this ends without an exception, what was written is durable."""
        if os.getpid() != self._process:
            raise InputError(
                f"{self._path} was opened by another process (a fork copies the connection, and "
                "SQLite forbids to use it); open it in each process anew"
            )
        with self._lock, translated(self._translate):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                if self._connection.in_transaction:  # a full disk has ended it already
                    self._connection.execute("ROLLBACK")
                raise
            self._commit()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _commit(self) -> None:
        """After a failed commit nobody knows what reached the disk, so the connection ends here."""
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._connection.close()
            raise


def connect(path: Path, *, mode: str) -> sqlite3.Connection:
    """A connection on which transactions are begun and ended by hand."""
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def make_durable(connection: sqlite3.Connection) -> None:
    """A commit is on disk when it returns."""
    for setting in ("trusted_schema = OFF", "cell_size_check = ON", "synchronous = FULL"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("PRAGMA fullfsync = ON")
    (journal,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if journal != "wal":
        raise sqlite3.OperationalError(
            f"it keeps a {journal} journal here instead of a write-ahead log; use a local disk"
        )


@contextmanager
def translated(translate: Translate) -> Iterator[None]:
    """Raise SQLite's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error) from error
