"""The secrets of a teacher's epochs in one SQLite file: kept before use, and gone when forgotten.

What was put is on disk before `put_once` returns. What was forgotten is overwritten in the file,
and its journal is cut to nothing: whoever takes the file later opens nothing of the past. What a
disk keeps of blocks that no file has any more, and what a backup copied before, is not in our
hands. A file that was lost is made again: then the teacher is missing until the next epoch, and
nothing is told. Used by `dppp teacher run`, and by `dppp teacher forget` when a teacher stops for
good: what no process looks after is not forgotten by itself.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dppp.errors import DpppError, EpochSecretsUnavailable, InputError, KeyMaterialError
from dppp.service.stores.sqlite.connection import SqliteError, SqliteFile

APPLICATION_ID = 0x44505045
"""The letters DPPE, in the header of the file."""

SCHEMA_VERSION = 1

_SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
    """
    CREATE TABLE epoch_secret (
        task_id BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        secret BLOB NOT NULL,
        PRIMARY KEY (task_id, epoch)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TRIGGER epoch_secret_update BEFORE UPDATE ON epoch_secret
    BEGIN SELECT raise(ABORT, 'the secret of an epoch is written once'); END
    """,
)


_DAMAGED = "If it is damaged, remove it: this teacher then takes no part until the next epoch"


class SqliteEpochSecrets:
    """EpochSecrets that any number of threads and processes may share."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self._path = path
        self._require_private()
        self._file = SqliteFile(
            path,
            mode="ro" if is_read_only else "rwc",
            require=self._require_ours,
            translate=self._translate,
            forgets=True,
        )
        try:
            if not is_read_only:
                self._make_table()
        except BaseException:
            self._file.close()
            raise

    def put_once(self, task_id: bytes, epoch: int, secret: bytes) -> bytes:
        """Keep the first secret ever put for this epoch, durably, and return that one."""
        with self._file.transaction() as connection:
            connection.execute(
                "INSERT INTO epoch_secret VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (task_id, epoch, secret),
            )
            kept = _read(connection, task_id, epoch)
        assert kept is not None, "it was put just now"
        return kept

    def get(self, task_id: bytes, epoch: int) -> bytes | None:
        """The secret of an epoch, or None."""
        with self._file.transaction() as connection:
            return _read(connection, task_id, epoch)

    def forget_before(self, task_id: bytes, epoch: int) -> None:
        """Delete the secrets of all epochs before this one; nothing is written where none are."""
        with self._file.transaction() as connection:
            connection.execute(
                "DELETE FROM epoch_secret WHERE task_id = ? AND epoch < ?", (task_id, epoch)
            )

    def check(self) -> None:
        """Refuse a file that has decayed."""
        with self._file.transaction() as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise EpochSecretsUnavailable(f"{self._path} is damaged: {found}", hint=_DAMAGED)

    def forget_all(self) -> int:
        """Delete every secret there is; how many there were."""
        with self._file.transaction() as connection:
            return connection.execute("DELETE FROM epoch_secret").rowcount

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _require_private(self) -> None:
        if self._path.exists() and self._path.stat().st_mode & 0o077:
            raise KeyMaterialError(
                f"{self._path} can be read by others on this machine",
                hint=f"run: chmod 600 {self._path}",
            )

    def _require_ours(self, connection: sqlite3.Connection) -> None:
        if not _is_new(connection) and _marks(connection) != (APPLICATION_ID, SCHEMA_VERSION):
            raise InputError(
                f"{self._path} does not hold the secrets of epochs in version {SCHEMA_VERSION}",
                hint="correct the path, or use the dppp that wrote it",
            )

    def _make_table(self) -> None:
        with self._file.transaction() as connection:
            if _is_new(connection):
                for statement in _SCHEMA:
                    connection.execute(statement)

    def _translate(self, error: SqliteError) -> DpppError:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            return InputError(
                f"{self._path} does not hold the secrets of epochs ({error})",
                hint=f"correct the path. {_DAMAGED}",
            )
        return EpochSecretsUnavailable(
            f"cannot use the secrets of the epochs in {self._path}, so nothing was sent: {error}",
            hint=(
                "look for a full or read-only disk, a process that holds it, or a damaged file, "
                "and start again"
            ),
        )


@contextmanager
def open_epoch_secrets(path: Path) -> Iterator[SqliteEpochSecrets]:
    """The secrets in this file, which is made where it is missing."""
    secrets = SqliteEpochSecrets(path)
    try:
        yield secrets
    finally:
        secrets.close()


def check_epoch_secrets(path: Path) -> None:
    """Refuse a file that a teacher could not use, and change nothing. For `dppp doctor`."""
    secrets = SqliteEpochSecrets(path, is_read_only=True)
    try:
        secrets.check()
    finally:
        secrets.close()


def _read(connection: sqlite3.Connection, task_id: bytes, epoch: int) -> bytes | None:
    row = connection.execute(
        "SELECT secret FROM epoch_secret WHERE task_id = ? AND epoch = ?", (task_id, epoch)
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
