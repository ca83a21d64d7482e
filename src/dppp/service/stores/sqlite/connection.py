"""One SQLite file held by the rules that keep our promises, whatever is in it.

Used by the stores beside this file. Write-ahead log with synchronous=FULL: a commit returns after
the log is on disk, and nobody sees what it wrote before that. BEGIN IMMEDIATE makes a transaction
exclusive among processes, a lock makes it exclusive among the threads of this one.

A file that has to forget keeps a rollback journal instead, which is cut to nothing at every commit:
a write-ahead log would hold what was deleted until somebody overwrites it.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from dppp.errors import DpppError, InputError

WAIT_SECONDS = 60.0
"""How long a transaction waits for other processes."""

SqliteError = sqlite3.Error | UnicodeDecodeError
"""In a damaged file even the message of an error may not be text any more."""

Translate = Callable[[SqliteError], DpppError]
"""SQLite's errors as ours, saying what to do."""


class SqliteFile:
    """A connection that outlives neither its process nor a failed commit.

    After a failed commit the next transaction opens the file again, and so reads what is in it.
    """

    def __init__(
        self,
        path: Path,
        *,
        mode: str,
        require: Callable[[sqlite3.Connection], None],
        translate: Translate,
        forgets: bool = False,
    ) -> None:
        """Open in SQLite's mode ro, rw or rwc; `require` refuses a file of somebody else's.

        It is asked before anything is changed. Where a file `forgets`, what is deleted is
        overwritten, and is in no file beside it.
        """
        self._path = path
        self._translate = translate
        self._require = require
        self._is_read_only = mode == "ro"
        self._forgets = forgets
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._begin = "BEGIN" if self._is_read_only else "BEGIN IMMEDIATE"
        self._has_failed = False
        with translated(translate):
            self.connection = self._open(mode)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the file alone among threads and processes; a reader holds a snapshot instead.

        When this ends without an exception, what was written is durable.
        """
        if os.getpid() != self._process:
            raise InputError(
                f"{self._path} was opened by another process (a fork copies the connection, and "
                "SQLite forbids to use it)",
                hint="open it again in each process",
            )
        with self._lock, translated(self._translate):
            if self._has_failed:
                self.connection = self._open("rw")
                self._has_failed = False
            self.connection.execute(self._begin)
            try:
                yield self.connection
            except BaseException:
                if self.connection.in_transaction:  # a full disk has ended it already
                    self.connection.execute("ROLLBACK")
                raise
            self._commit()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._has_failed = False
            self.connection.close()

    def _open(self, mode: str) -> sqlite3.Connection:
        connection = connect(self._path, mode=mode)
        try:
            self._require(connection)
            _prepare(connection)
            if not self._is_read_only:
                _make_durable(connection, forgets=self._forgets)
        except BaseException:
            connection.close()
            raise
        return connection

    def _commit(self) -> None:
        """After a failed commit nobody knows what reached the disk, so the connection ends here."""
        try:
            self.connection.execute("COMMIT")
        except sqlite3.Error:
            self._has_failed = True
            self.connection.close()
            raise


def connect(path: Path, *, mode: str) -> sqlite3.Connection:
    """A connection on which transactions are begun and ended by hand.

    A new file is for its owner's eyes: an aggregator's holds what queriers asked. SQLite gives the
    files beside it the same mode.
    """
    if mode == "rwc":
        with suppress(OSError):  # it is there already, or SQLite will say what is wrong
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    for setting in ("foreign_keys = ON", "trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {setting}")


def _make_durable(connection: sqlite3.Connection, *, forgets: bool) -> None:
    wanted = "truncate" if forgets else "wal"
    (journal,) = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
    if journal != wanted:
        raise sqlite3.OperationalError(
            f"SQLite keeps a {journal} journal here instead of "
            f"{'one that forgets' if forgets else 'a write-ahead log'}; put the file on a local "
            "disk"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    if forgets:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA temp_store = MEMORY")


@contextmanager
def translated(translate: Translate) -> Iterator[None]:
    """Raise SQLite's errors as ours."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise translate(error) from error
