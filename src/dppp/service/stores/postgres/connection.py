"""One PostgreSQL database held by the rules that keep our promises; the stores beside this use it.

A transaction waits for the disk whatever the server's default is, and a server that runs without
fsync is refused. All settings belong to the transaction and not to the session, so that they hold
behind a pooler too. A connection that broke is made again by the next transaction; what the broken
one wrote was kept as a whole or not at all, and who asks again finds out which.

A url holds a password: nothing here shows more of it than host, database and schema, and to another
machine it goes by TLS, with the server's certificate checked, unless the url itself has another
sslmode.
"""

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import sqlalchemy as sql

from dppp.errors import DpppError, InputError

WAIT_SECONDS = 60
"""How long a transaction waits for others, and the server for a client that says no more."""

Translate = Callable[[str, str], DpppError]
"""PostgreSQL's errors as ours: from SQLSTATE (empty if there is none) and words."""

_CLIENT = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": str(1_000 * WAIT_SECONDS),
    "application_name": "dppp",
}
"""What libpq gets unless the url says otherwise: a server that vanished is noticed."""

_ELSEWHERE = {"hostaddr", "service"}
"""Other words, in a url or the environment, by which libpq is told where the server is."""

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")

_SETTINGS = sql.text(
    """
    SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
               WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true),
           set_config('lock_timeout', :wait, true),
           set_config('idle_in_transaction_session_timeout', :wait, true),
           current_setting('fsync')
    """
).bindparams(wait=f"{WAIT_SECONDS}s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a store is: a database, and a schema in it; prints without name and password."""

    url: sql.URL = field(repr=False)
    schema: str

    def __str__(self) -> str:
        host = self.url.host or self.url.query.get("host") or "this machine"
        return f"the schema {self.schema} of the database {self.url.database} at {host}"


def read_url(url: str, *, default_schema: str) -> Place:
    """The place that a url names; `schema` in its query tells several stores apart."""
    try:
        parsed = sql.make_url(url)
    except (sql.exc.ArgumentError, ValueError):
        raise InputError(
            "the url of a store must look like postgresql://name:password@host/database?schema="
            + default_schema
        ) from None  # the cause repeats the url
    schema = parsed.query.get("schema", default_schema)
    if not isinstance(schema, str) or not re.fullmatch("[a-z_][a-z0-9_]{0,62}", schema):
        raise InputError(
            "the schema of a store must be one name of small letters, digits and _, 63 at most"
        )
    options = {**_CLIENT, **parsed.difference_update_query(["schema"]).query}
    if not _is_local(parsed):
        options.setdefault("sslmode", "verify-full")
    return Place(url=parsed.set(drivername="postgresql+psycopg", query=options), schema=schema)


def _is_local(url: sql.URL) -> bool:
    """Whether a password and what is stored stay on this machine, as libpq would connect."""
    if _ELSEWHERE & url.query.keys() or any(
        f"PG{name.upper()}" in os.environ for name in _ELSEWHERE
    ):
        return False
    said = url.host or url.query.get("host") or os.environ.get("PGHOST") or "/"
    hosts = said.split(",") if isinstance(said, str) else said
    return all(host.startswith("/") or host in _LOCAL_HOSTS for host in hosts)


class PostgresDatabase:
    """One connection at a time, for all threads of one process."""

    def __init__(self, place: Place, *, is_read_only: bool, translate: Translate) -> None:
        self._place = place
        self._translate = translate
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._is_closed = False
        self._engine = sql.create_engine(
            place.url,
            isolation_level="REPEATABLE READ" if is_read_only else "READ COMMITTED",
            execution_options={"postgresql_readonly": is_read_only},
            pool_size=1,
            max_overflow=0,
            pool_pre_ping=True,
            hide_parameters=True,
            use_native_hstore=False,  # or each new connection asks for a type that is not used
            connect_args={"prepare_threshold": None},
        )

    @contextmanager
    def transaction(self) -> Iterator[sql.Connection]:
        """What was written is durable when this ends without an exception."""
        if os.getpid() != self._process:
            raise InputError(
                f"{self._place} was opened by another process (a fork copies the connection, and "
                "two may not talk on it)",
                hint="open it again in each process",
            )
        with self._lock, self._translated():
            if self._is_closed:
                raise self._translate("", "it is closed")
            with self._engine.begin() as connection:
                *_, fsync = connection.execute(_SETTINGS).one()
                if fsync != "on":
                    raise self._translate("", f"the server runs with fsync {fsync}, and so forgets")
                yield connection

    def close(self) -> None:
        """Let go of the connection; in a forked process, without a word to the server."""
        with self._lock:
            self._is_closed = True
            self._engine.dispose(close=os.getpid() == self._process)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sql.exc.SQLAlchemyError, psycopg.Error) as error:
            raise self._translate(*_explain(error)) from error


def hold(connection: sql.Connection, name: str) -> None:
    """Wait until nobody else holds this name, and hold it until the transaction ends.

    Unlike a lock on a table it takes no right to change that table. What others committed before
    is seen by the statements after this one, not by this one itself.
    """
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    connection.execute(sql.select(sql.func.pg_advisory_xact_lock(sql.cast(key, sql.BigInteger))))


def _explain(error: Exception) -> tuple[str, str]:
    """SQLSTATE and the first line of what the server or the driver says, without any data."""
    original = getattr(error, "orig", None) or error
    words = str(original).strip().splitlines() or [type(original).__name__]
    if isinstance(original, psycopg.Error):
        return original.sqlstate or "", original.diag.message_primary or words[0]
    return "", words[0]
