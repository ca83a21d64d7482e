"""An aggregator's batches in PostgreSQL: each thing is written once and then stays.

For several aggregator workers on several machines. The tables are made where none are: an
aggregator that forgot its batches can release nothing twice, since the teachers remember which
list they served.
"""

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql

from dppp.errors import BatchStoreUnavailable, InputError
from dppp.service.stores.postgres.connection import PostgresDatabase, read_url
from dppp.service.stores.postgres.schema import Layout, mark_of, require_layout, write_layout

DEFAULT_SCHEMA = "dppp_batches"
SCHEMA_VERSION = 1


class PostgresBatchStore:
    """A BatchStore that any number of threads, processes and machines may share."""

    def __init__(self, url: str) -> None:
        self._place = read_url(url, default_schema=DEFAULT_SCHEMA)
        self._kept = _table(self._place.schema)
        self._database = PostgresDatabase(
            self._place, is_read_only=False, translate=self._translate
        )
        try:
            self._prepare()
        except BaseException:
            self._database.close()
            raise

    def put_once(self, key: bytes, kind: str, data: bytes) -> bytes:
        """Keep the first bytes ever put for this key and kind, and return those."""
        put = postgresql.insert(self._kept).values(key=key, kind=kind, data=data)
        with self._database.transaction() as connection:
            connection.execute(put.on_conflict_do_nothing())
            kept = self._read(connection, key, kind)
        assert kept is not None, "it was put just now"
        return kept

    def get(self, key: bytes, kind: str) -> bytes | None:
        """What was put, or None."""
        with self._database.transaction() as connection:
            return self._read(connection, key, kind)

    def having(self, kind: str) -> tuple[bytes, ...]:
        """All keys under which something of this kind was put, in the order of putting."""
        kept = self._kept.c
        question = sql.select(kept.key).where(kept.kind == kind).order_by(kept.position)
        with self._database.transaction() as connection:
            return tuple(connection.execute(question).scalars())

    def put_since(self, kind: str, position: int) -> tuple[tuple[int, bytes], ...]:
        """Position and key of what was put of this kind, from this position on, in order.

        A position is drawn when a row is put, and seen when it is committed: in another order.
        """
        kept = self._kept.c
        question = (
            sql.select(kept.position, kept.key)
            .where(kept.kind == kind, kept.position >= position)
            .order_by(kept.position)
        )
        with self._database.transaction() as connection:
            return tuple((row.position, row.key) for row in connection.execute(question))

    def close(self) -> None:
        """Let go of the connection."""
        self._database.close()

    def _read(self, connection: sql.Connection, key: bytes, kind: str) -> bytes | None:
        kept = self._kept.c
        question = sql.select(kept.data).where(kept.key == key, kept.kind == kind)
        return connection.execute(question).scalar_one_or_none()

    def _prepare(self) -> None:
        layout = Layout(
            kind="batches",
            version=SCHEMA_VERSION,
            tables=(self._kept,),
            refused="UPDATE",
            reason="what a batch came to is written once",
        )
        with self._database.transaction() as connection:
            if mark_of(connection, self._place.schema) is None:
                write_layout(connection, self._place, layout)
            require_layout(connection, self._place, layout, InputError)

    def _translate(self, state: str, words: str) -> BatchStoreUnavailable:
        del state  # each of them is handled alike
        return BatchStoreUnavailable(
            f"cannot use the batch store in {self._place}, so nothing was sent: {words}",
            hint=(
                "look for a server that is down or full, or a right that is missing, and ask again"
            ),
        )


def _table(schema: str) -> sql.Table:
    return sql.Table(
        "kept",
        sql.MetaData(schema=schema),
        sql.Column("position", sql.BigInteger, sql.Identity(always=True), primary_key=True),
        sql.Column("key", sql.LargeBinary, nullable=False),
        sql.Column("kind", sql.Text, nullable=False),
        sql.Column("data", sql.LargeBinary, nullable=False),
        sql.UniqueConstraint("kind", "key"),
    )
