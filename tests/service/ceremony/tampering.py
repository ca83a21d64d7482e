"""What somebody with a hand on the database can do to a store of either kind."""

# ruff: noqa: S608 - the tests' own names

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from dppp.service.stores.locations import Location


def run_sql(location: Location, *statements: str) -> None:
    """Behind the store's back."""
    if isinstance(location, Path):
        with closing(sqlite3.connect(location, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    from tests.postgres import shared_server

    with shared_server().connect() as connection:
        connection.execute(f"SET search_path = {schema_of(location)}")
        for statement in statements:
            connection.execute(statement)


def schema_of(url: str) -> str:
    return url.rpartition("schema=")[2]


def keep_copy(location: Location) -> Callable[[], None]:
    """Keep the ledger as it is now; what this returns puts it back."""
    if isinstance(location, Path):
        copy = location.with_name("old copy")
        shutil.copy(location, copy)

        def put_back() -> None:
            copy.replace(location)

        return put_back
    later = "position > (SELECT max(position) FROM kept_entries)"
    run_sql(location, "CREATE TABLE kept_entries AS SELECT * FROM entries")
    deletions = [f"DELETE FROM {table} WHERE {later}" for table in ("contents", "entries")]
    return lambda: run_sql(location, *drop_triggers(location), *deletions)


def change_row(location: Location, table: str, change: str, where: str) -> None:
    """Past the triggers."""
    run_sql(location, *drop_triggers(location), f"UPDATE {table} SET {change} WHERE {where}")


def drop_triggers(location: Location) -> list[str]:
    tables = ("entries", "contents")
    if isinstance(location, Path):
        return [f"DROP TRIGGER {table}_{each}" for table in tables for each in ("update", "delete")]
    return [f"DROP TRIGGER refuse_change ON {table}" for table in tables]


def remove(location: Location) -> None:
    if isinstance(location, Path):
        location.unlink()
    else:
        run_sql(location, f"DROP SCHEMA {schema_of(location)} CASCADE")


def set_version(location: Location, version: int) -> None:
    """Say that another dppp wrote this ledger."""
    if isinstance(location, Path):
        run_sql(location, f"PRAGMA user_version = {version}")
    else:
        drop = "DROP TRIGGER refuse_change ON dppp_store"
        run_sql(location, drop, f"UPDATE dppp_store SET version = {version}")


def make_another(location: Location, folder: Path) -> Location:
    """A second place of the same kind."""
    return folder / "another.db" if isinstance(location, Path) else f"{location}_another"
