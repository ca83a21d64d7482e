"""A ledger's entries in PostgreSQL, durable before a transaction ends.

For teachers whose organisation keeps its data there. How the database is held is in connection.py.
Triggers keep a slip of the hand from changing the past; the hash chain is what proves that it was
not changed. A role that may only SELECT and INSERT is enough after the ledger was created.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sql

from dppp.errors import DpppError, LedgerDamaged, LedgerUnavailable, NotALedger
from dppp.privacy.ledger.chain import Entry
from dppp.privacy.ledger.store import Transaction
from dppp.service.stores.postgres.connection import Place, PostgresDatabase, hold, read_url
from dppp.service.stores.postgres.schema import Layout, mark_of, require_layout, write_layout

DEFAULT_SCHEMA = "dppp_ledger"
SCHEMA_VERSION = 1

_PAGE_ENTRIES = 64
_DAMAGE = ("XX001", "XX002")
"""SQLSTATE of damaged data and of a damaged index."""


class PostgresStore:
    """A LedgerStore on tables that exist."""

    def __init__(self, url: str, *, is_read_only: bool = False) -> None:
        self._place = read_url(url, default_schema=DEFAULT_SCHEMA)
        self._is_read_only = is_read_only
        self._tables = _Tables(self._place)
        self._database = _open_database(self._place, is_read_only=is_read_only)
        try:
            with self._database.transaction() as connection:
                _require_there(connection, self._place)
                require_layout(connection, self._place, self._tables.layout, NotALedger)
        except BaseException:
            self._database.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Hold the ledger alone among threads and processes; a reader holds a snapshot instead."""
        with self._database.transaction() as connection:
            if not self._is_read_only:
                hold(connection, f"dppp ledger in {self._place.schema}")
            yield _PostgresTransaction(connection, self._tables)

    def check_file(self) -> None:
        """Nothing: PostgreSQL checks its own pages when it reads them, and the ledger reads all."""

    def close(self) -> None:
        """Let go of the connection."""
        self._database.close()


class _Tables:
    """The tables of the ledger in one schema."""

    def __init__(self, place: Place) -> None:
        names = sql.MetaData(schema=place.schema)
        self.entries = sql.Table(
            "entries",
            names,
            sql.Column("position", sql.BigInteger, primary_key=True, autoincrement=False),
            sql.Column("kind", sql.Text, nullable=False),
            sql.Column("payload", sql.LargeBinary, nullable=False),
            sql.Column("hash", sql.LargeBinary, nullable=False),
        )
        self.contents = sql.Table(
            "contents",
            names,
            sql.Column("position", sql.ForeignKey(self.entries.c.position), primary_key=True),
            sql.Column("content", sql.LargeBinary, nullable=False),
        )
        self.layout = Layout(
            kind="ledger",
            version=SCHEMA_VERSION,
            tables=(self.entries, self.contents),
            refused="UPDATE OR DELETE OR TRUNCATE",
            reason="a ledger is only ever appended to",
        )


class _PostgresTransaction:
    def __init__(self, connection: sql.Connection, tables: _Tables) -> None:
        self._connection = connection
        self._tables = tables

    def read_entries(self, start: int) -> Iterator[Entry]:
        while page := self._read_page(start):
            yield from page
            start = page[-1].index + 1

    def _read_page(self, start: int) -> list[Entry]:
        entries = self._tables.entries
        rows = self._connection.execute(
            sql.select(entries)
            .where(entries.c.position >= start)
            .order_by(entries.c.position)
            .limit(_PAGE_ENTRIES)
        )
        return [
            Entry(index=row.position, kind=row.kind, payload=row.payload, hash=row.hash)
            for row in rows.all()
        ]

    def read_content(self, index: int) -> bytes | None:
        contents = self._tables.contents
        question = sql.select(contents.c.content).where(contents.c.position == index)
        return self._connection.execute(question).scalar_one_or_none()

    def append(self, entry: Entry, content: bytes | None) -> None:
        self._connection.execute(
            sql.insert(self._tables.entries).values(
                position=entry.index, kind=entry.kind, payload=entry.payload, hash=entry.hash
            )
        )
        if content is not None:
            self._connection.execute(
                sql.insert(self._tables.contents).values(position=entry.index, content=content)
            )


def write_tables(url: str) -> None:
    """Make the tables of a ledger unless they are there already."""
    with _connected(url) as (connection, place):
        write_layout(connection, place, _Tables(place).layout)


def has_entries(url: str) -> bool:
    """Whether there is a ledger, or a store of another kind or version."""
    with _connected(url) as (connection, place):
        tables, mark = _Tables(place), mark_of(connection, place.schema)
        if mark != (tables.layout.kind, tables.layout.version):
            return mark is not None
        first = connection.execute(sql.select(tables.entries.c.position).limit(1)).first()
        return first is not None


@contextmanager
def _connected(url: str) -> Iterator[tuple[sql.Connection, Place]]:
    """One transaction on a connection of its own."""
    place = read_url(url, default_schema=DEFAULT_SCHEMA)
    database = _open_database(place, is_read_only=False)
    try:
        with database.transaction() as connection:
            yield connection, place
    finally:
        database.close()


def _open_database(place: Place, *, is_read_only: bool) -> PostgresDatabase:
    return PostgresDatabase(
        place,
        is_read_only=is_read_only,
        translate=lambda state, words: _translate(place, state, words),
    )


def _require_there(connection: sql.Connection, place: Place) -> None:
    if mark_of(connection, place.schema) is None:
        raise LedgerUnavailable(
            f"there is no ledger in {place}",
            hint=(
                "correct the url, or restore the newest copy (a new ledger would forget what was "
                "spent)"
            ),
        )


def _translate(place: Place, state: str, words: str) -> DpppError:
    """PostgreSQL's errors as ours."""
    if state in _DAMAGE:
        return LedgerDamaged(
            f"{place} is damaged ({words})",
            hint="answer nothing from it and restore the newest copy",
        )
    return LedgerUnavailable(
        f"cannot use the ledger in {place}, so nothing was answered: {words}",
        hint=(
            "look for a server that is down or full, a process that holds the ledger, or a right "
            "that is missing, and ask again"
        ),
    )
