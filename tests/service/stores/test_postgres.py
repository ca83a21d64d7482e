"""Stores in PostgreSQL: rights, locks, limits, settings and a url that stays secret."""

import contextlib
import logging
import os
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.left_out import need_module
from tests.privacy.ledger.ledgers import FILLED, TEACHER, answer, fill
from tests.service.ceremony.tampering import run_sql, schema_of
from tests.service.stores.full_disk import full_disk

need_module("psycopg", extra="service")
import psycopg
from tests.postgres import PASSWORD, PostgresServer, shared_server

from dppp.errors import DpppError, InputError, LedgerUnavailable, NotALedger
from dppp.service.stores.batches import open_batch_store
from dppp.service.stores.ledgers import create_ledger, has_ledger, inspect_ledger, open_ledger
from dppp.service.stores.postgres import connection as postgres
from dppp.service.stores.postgres.ledger import PostgresStore, write_tables


@pytest.fixture
def server() -> PostgresServer:
    return shared_server()


@pytest.fixture
def url(server: PostgresServer) -> str:
    made = server.fresh_url()
    create_ledger(made, teacher=TEACHER)
    with open_ledger(made) as ledger:
        fill(ledger)
    return made


@pytest.mark.parametrize(
    ("default", "used"), [("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")]
)
def test_a_commit_waits_for_the_disk_whatever_the_default_is(
    default: str, used: str, url: str
) -> None:
    store = PostgresStore(f"{url}&options=-csynchronous_commit%3D{default}")
    with store._database.transaction() as connection:
        found = connection.exec_driver_sql("SHOW synchronous_commit").scalar_one()
    store.close()
    assert found == used


@pytest.mark.parametrize("level", ["serializable", "repeatable\\ read"])
def test_the_newest_entries_are_seen_whatever_the_default_isolation_is(
    level: str, url: str
) -> None:
    option = f"&options=-cdefault_transaction_isolation%3D{level.replace(' ', '%20')}"
    with open_ledger(url + option) as ledger, open_ledger(url) as other:
        answer(other, "c")
        assert answer(ledger, "c", ballot=b"x") == b"ballot of c"


def wait_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_SETTINGS", postgres._SETTINGS.bindparams(wait="300ms"))


def test_a_ledger_that_is_held_too_long_is_said_and_charges_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_ledger(url) as ledger:
        with open_ledger(url) as other, other._turn():
            wait_shortly(monkeypatch)
            with pytest.raises(
                LedgerUnavailable, match=r"lock timeout.*\nhint: .*a process that holds"
            ):
                answer(ledger, "c")
        assert ledger.check().index == FILLED
        assert answer(ledger, "c") == b"ballot of c"


def test_who_holds_a_ledger_and_says_no_more_loses_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_shortly(monkeypatch)
    with open_ledger(url) as silent, open_ledger(url) as other:
        with pytest.raises(LedgerUnavailable), silent._turn():
            time.sleep(1)
        assert answer(other, "c") == b"ballot of c"
        assert answer(silent, "c", ballot=b"x") == b"ballot of c"


def test_ledgers_in_one_database_do_not_know_each_other(server: PostgresServer, url: str) -> None:
    second = server.fresh_url()
    create_ledger(second, teacher="hospital-8")
    with open_ledger(url) as ledger, open_ledger(second) as other, ledger._turn():
        assert other.check().index == 0


def test_of_many_who_create_a_ledger_one_does(server: PostgresServer) -> None:
    url = server.fresh_url()

    def try_to_create(number: int) -> bool:
        try:
            create_ledger(url, teacher=f"hospital-{number}")
        except InputError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(try_to_create, range(6))) == 1
    with open_ledger(url) as ledger:
        assert ledger.check().index == 0


def test_tables_without_a_first_entry_are_no_ledger_yet(server: PostgresServer) -> None:
    url = server.fresh_url()
    assert not has_ledger(url)
    write_tables(url)
    assert not has_ledger(url)
    with pytest.raises(InputError, match="create one"):
        open_ledger(url).__enter__()
    create_ledger(url, teacher=TEACHER)
    assert has_ledger(url)
    with open_ledger(url) as ledger:
        assert ledger.check().index == 0


def make_role(server: PostgresServer, url: str, rights: str, option: str = "") -> str:
    """The url of somebody who has these rights on the tables only."""
    role, schema = f"role_{schema_of(url)}", schema_of(url)
    with server.connect() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN {option}")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT {rights} ON ALL TABLES IN SCHEMA {schema} TO {role}")
    return server.url(schema=schema, role=role)


def test_the_rights_to_read_and_to_append_are_enough(server: PostgresServer, url: str) -> None:
    role = make_role(server, url, "SELECT, INSERT")
    with open_ledger(role) as ledger, inspect_ledger(role) as (seen, _):
        assert answer(ledger, "c") == b"ballot of c"
        assert seen.check().index == FILLED + 1


def test_a_right_that_is_missing_is_said(server: PostgresServer, url: str) -> None:
    with (
        open_ledger(make_role(server, url, "SELECT")) as ledger,
        pytest.raises(
            LedgerUnavailable, match=r"permission denied.*\nhint: .*right that is missing"
        ),
    ):
        answer(ledger, "c")


def test_a_server_without_a_free_connection_is_said(server: PostgresServer, url: str) -> None:
    role = make_role(server, url, "SELECT, INSERT", "CONNECTION LIMIT 1")
    with open_ledger(role) as ledger:
        with pytest.raises(LedgerUnavailable, match="too many connections"):
            open_ledger(role).__enter__()
        assert answer(ledger, "c") == b"ballot of c"


def test_a_full_disk_charges_nothing_and_the_ledger_goes_on(
    server: PostgresServer, url: str
) -> None:
    store = PostgresStore(url)
    with contextlib.closing(store), open_ledger(url) as other:
        with store._database.transaction() as connection:
            ask = connection.exec_driver_sql
            pid = ask("SELECT pg_backend_pid()").scalar_one()
            toast = f"SELECT reltoastrelid FROM pg_class WHERE oid = '{schema_of(url)}.contents'::regclass"  # noqa: S608, E501 - a test's name
            path = ask(f"SELECT pg_relation_filepath(({toast}))").scalar_one()
        ledger = type(other).open(store)
        with full_disk(pid, server.data / path):
            with pytest.raises(LedgerUnavailable, match="No space left"):
                answer(ledger, "c", ballot=os.urandom(100_000))
            assert other.check().index == FILLED
        answer(ledger, "c")
        assert ledger.check().index == FILLED + 1


def test_the_past_cannot_be_emptied_by_a_slip_of_the_hand(url: str) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="only ever appended"):
        run_sql(url, "TRUNCATE entries CASCADE")


def test_tables_that_a_crash_would_empty_are_refused(url: str) -> None:
    run_sql(url, "ALTER TABLE contents SET UNLOGGED")
    with pytest.raises(NotALedger, match="SET LOGGED"):
        open_ledger(url).__enter__()


def test_tables_of_another_program_are_left_alone(server: PostgresServer) -> None:
    url = server.fresh_url()
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema_of(url)}")
    run_sql(url, "CREATE TABLE entries (recipe text)")
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        open_ledger(url).__enter__()
    with pytest.raises(LedgerUnavailable, match="already exists"):
        create_ledger(url, teacher=TEACHER)
    run_sql(url, "INSERT INTO entries (recipe) VALUES ('soup')")


WRONG_URLS = {
    "port": f"postgresql://dppp:{PASSWORD}@127.0.0.1:many/postgres",
    "nobody there": f"postgresql://dppp:{PASSWORD}@127.0.0.1:9/postgres",
    "unknown option": f"postgresql://dppp:{PASSWORD}@/postgres?colour=red",
    "no schema": f"postgresql://dppp:{PASSWORD}@/postgres?schema=a;b",
    "two schemas": f"postgresql://dppp:{PASSWORD}@/postgres?schema=a&schema=b",
    "mistyped": f"postgrsql://dppp:{PASSWORD}@127.0.0.1/postgres",
    "no url": f"dppp:{PASSWORD}",
    "password in options": f"postgresql://127.0.0.1:9/postgres?password={PASSWORD}",
}


@pytest.mark.parametrize("what", WRONG_URLS)
def test_a_url_that_leads_nowhere_is_refused_and_its_password_not_told(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for opening in (open_ledger, inspect_ledger, open_batch_store):
        with pytest.raises(DpppError) as caught:
            opening(WRONG_URLS[what]).__enter__()
        assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("db.example.org/x", "verify-full"),
        ("/x?host=db.example.org", "verify-full"),
        ("/x?host=/run/postgresql&host=db.example.org", "verify-full"),
        ("/x?host=/run/postgresql,db.example.org", "verify-full"),
        ("/x?hostaddr=192.0.2.1", "verify-full"),
        ("localhost/x?hostaddr=192.0.2.1", "verify-full"),
        ("/x?service=elsewhere", "verify-full"),
        ("db.example.org/x?sslmode=require", "require"),
        ("127.0.0.1/x", None),
        ("/x", None),
        ("/x?host=/run/postgresql", None),
    ],
)
def test_another_machine_must_show_its_certificate(address: str, expected: str | None) -> None:
    place = postgres.read_url(f"postgresql://dppp:{PASSWORD}@{address}", default_schema="x")
    assert place.url.query.get("sslmode") == expected


@pytest.mark.parametrize("name", ["PGHOST", "PGHOSTADDR", "PGSERVICE"])
def test_also_one_that_the_environment_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "192.0.2.1")
    place = postgres.read_url("postgresql:///x", default_schema="x")
    assert place.url.query.get("sslmode") == "verify-full"


def test_a_database_that_does_not_exist_is_named_without_the_password(url: str) -> None:
    with pytest.raises(LedgerUnavailable, match="database nowhere at /tmp") as caught:
        open_ledger(url.replace("/postgres?", "/nowhere?")).__enter__()
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def test_a_store_prints_without_its_password(url: str) -> None:
    place = postgres.read_url(url, default_schema="x")
    store = PostgresStore(url)
    store.close()
    for text in (
        repr(place),
        str(place),
        repr(store),
        repr(vars(store)),
        repr(vars(store._database)),
    ):
        assert PASSWORD not in text
    assert schema_of(url) in str(place)
