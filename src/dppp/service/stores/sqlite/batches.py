"""An aggregator's batches in one SQLite file: each thing is written once and then stays.

The file may be made again when it is missing: an aggregator that forgot its batches can release
nothing twice, since the teachers remember which list they served. Used by `dppp aggregator run`.
"""

import sqlite3
from pathlib import Path

from dppp.errors import BatchStoreUnavailable, DpppError, InputError
from dppp.service.stores.sqlite.connection import SqliteError, SqliteFile

APPLICATION_ID = 0x44505042
"""The letters DPPB, in the header of the file."""

SCHEMA_VERSION = 1

_SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
    """
    CREATE TABLE kept (
        position INTEGER PRIMARY KEY,
        key BLOB NOT NULL,
        kind TEXT NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (kind, key)
    ) STRICT
    """,
    """
    CREATE TRIGGER kept_update BEFORE UPDATE ON kept
    BEGIN SELECT raise(ABORT, 'what a batch came to is written once'); END
    """,
)


class SqliteBatchStore:
    """A BatchStore that any number of threads and processes may share."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = SqliteFile(
            path, mode="rwc", require=self._require_ours, translate=self._translate
        )
        try:
            self._make_tables()
        except BaseException:
            self._file.close()
            raise

    def put_once(self, key: bytes, kind: str, data: bytes) -> bytes:
        """Keep the first bytes ever put for this key and kind, and return those."""
        with self._file.transaction() as connection:
            connection.execute(
                "INSERT INTO kept (key, kind, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (key, kind, data),
            )
            kept = _read(connection, key, kind)
        assert kept is not None, "it was put just now"
        return kept

    def get(self, key: bytes, kind: str) -> bytes | None:
        """What was put, or None."""
        with self._file.transaction() as connection:
            return _read(connection, key, kind)

    def having(self, kind: str) -> tuple[bytes, ...]:
        """All keys under which something of this kind was put, in the order of putting."""
        with self._file.transaction() as connection:
            rows = connection.execute(
                "SELECT key FROM kept WHERE kind = ? ORDER BY position", (kind,)
            ).fetchall()
        return tuple(key for (key,) in rows)

    def put_since(self, kind: str, position: int) -> tuple[tuple[int, bytes], ...]:
        """Position and key of what was put of this kind, from this position on, in order."""
        with self._file.transaction() as connection:
            rows = connection.execute(
                "SELECT position, key FROM kept WHERE kind = ? AND position >= ? ORDER BY position",
                (kind, position),
            ).fetchall()
        return tuple(rows)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _require_ours(self, connection: sqlite3.Connection) -> None:
        if not _is_new(connection) and _marks(connection) != (APPLICATION_ID, SCHEMA_VERSION):
            raise InputError(
                f"{self._path} is not a batch store of version {SCHEMA_VERSION}",
                hint="correct the path, or use the dppp that wrote it",
            )

    def _make_tables(self) -> None:
        with self._file.transaction() as connection:
            if _is_new(connection):
                for statement in _SCHEMA:
                    connection.execute(statement)

    def _translate(self, error: SqliteError) -> DpppError:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            return InputError(
                f"{self._path} is not a batch store ({error})", hint="correct the path"
            )
        return BatchStoreUnavailable(
            f"cannot use the batch store {self._path}, so nothing was sent: {error}",
            hint=(
                "look for a full or read-only disk, a process that holds it, or a damaged file, "
                "and start again"
            ),
        )


def _read(connection: sqlite3.Connection, key: bytes, kind: str) -> bytes | None:
    row = connection.execute(
        "SELECT data FROM kept WHERE key = ? AND kind = ?", (key, kind)
    ).fetchone()
    return None if row is None else bytes(row[0])


def _is_new(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return tables == 0 and _marks(connection) == (0, 0)


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    """What SQLite's header says that the file is."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application_id, version
