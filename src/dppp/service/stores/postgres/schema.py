"""Tables of a store in a schema of their own, with a mark that says what they are.

Used by ledger.py and batches.py beside it. A schema may be made beforehand by whoever
administers the database; tables are made only where none of ours are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sql

from dppp.errors import DpppError
from dppp.service.stores.postgres.connection import Place, hold

MARK = "dppp_store"
"""The table that says which store of which version this is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a kind of store keeps, and what a trigger refuses to do with it, for which reason."""

    kind: str
    version: int
    tables: Sequence[sql.Table]
    refused: str
    reason: str


def mark_of(connection: sql.Connection, schema: str) -> tuple[str, int] | None:
    """Kind and version of the store in a schema; None where there is none."""
    if not sql.inspect(connection).has_table(MARK, schema=schema):
        return None
    found = connection.execute(sql.text(f"SELECT kind, version FROM {schema}.{MARK}"))  # noqa: S608 - a checked name
    row = found.one_or_none()
    return ("nothing", 0) if row is None else (str(row.kind), int(row.version))


def require_layout(
    connection: sql.Connection,
    place: Place,
    layout: Layout,
    refuse: Callable[[str], DpppError],
) -> None:
    """Refuse a store of another kind or version, and tables that a crash would empty."""
    found = mark_of(connection, place.schema)
    if found != (layout.kind, layout.version):
        kind, version = found or ("nothing", 0)
        raise refuse(
            f"{place} holds {kind} of version {version}, and this dppp expects {layout.kind} of "
            f"version {layout.version}; correct the url, or use the dppp that wrote it"
        )
    persistence = connection.execute(
        sql.text(
            "SELECT relname FROM pg_class WHERE relnamespace = CAST(:schema AS regnamespace)"
            " AND relkind = 'r' AND relpersistence <> 'p'"
        ),
        {"schema": place.schema},
    )
    for (name,) in persistence:
        raise refuse(f"{place}: a crash would empty the table {name}; ALTER TABLE … SET LOGGED")


def write_layout(connection: sql.Connection, place: Place, layout: Layout) -> None:
    """Make the tables unless they are there already."""
    hold(connection, f"dppp tables in {place.schema}")
    if mark_of(connection, place.schema) is not None:
        return
    if not sql.inspect(connection).has_schema(place.schema):
        connection.execute(sql.schema.CreateSchema(place.schema))
    mark = sql.Table(
        MARK,
        sql.MetaData(schema=place.schema),
        sql.Column("kind", sql.Text, nullable=False),
        sql.Column("version", sql.Integer, nullable=False),
    )
    for table in (mark, *layout.tables):
        connection.execute(sql.schema.CreateTable(table))
        for statement in _guard(table, layout):
            connection.execute(statement)
    connection.execute(sql.insert(mark).values(kind=layout.kind, version=layout.version))


def _guard(table: sql.Table, layout: Layout) -> list[sql.TextClause]:
    """Statements that keep a slip of the hand from changing a table."""
    name = f"{table.schema}.{table.name}"
    function = f"{table.schema}.refuse_change_of_{table.name}"
    return [
        sql.text(
            f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{layout.reason}'; END $$"
        ),
        sql.text(
            f"CREATE TRIGGER refuse_change BEFORE {layout.refused} ON {name} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
        ),
    ]
