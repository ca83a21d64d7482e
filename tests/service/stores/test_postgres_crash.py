"""A PostgreSQL server that is killed, restarted or damaged while a teacher's ledger is in it."""

import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.left_out import need_module
from tests.privacy.ledger.ledgers import DATA, FILLED, TEACHER, agree, answer, fill
from tests.service.ceremony.tampering import schema_of
from tests.service.stores.ledger_files import make_files
from tests.service.stores.test_ledger_kill import assert_nothing_was_lost

from dppp.protocol.batch_store import Kind

need_module("psycopg", extra="service")
from tests.postgres import PASSWORD, PostgresServer

from dppp.errors import BatchStoreUnavailable, LedgerDamaged, LedgerUnavailable
from dppp.privacy.ledger.ledger import Ledger
from dppp.service.stores.batches import open_batch_store
from dppp.service.stores.ledgers import create_ledger, open_ledger

CRASHES = (signal.SIGKILL, signal.SIGQUIT)
"""The first leaves the server's children to find out; the second is its immediate shutdown."""


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """One that a test may stop and start as it likes."""
    running = PostgresServer()
    yield running
    running.remove()


@pytest.fixture
def server(own_server: PostgresServer) -> Iterator[PostgresServer]:
    own_server.start()
    yield own_server
    own_server.stop()


@pytest.fixture
def url(server: PostgresServer) -> str:
    """A ledger with two answered batches."""
    made = server.fresh_url()
    create_ledger(made, teacher=TEACHER)
    with open_ledger(made) as ledger:
        fill(ledger, queries=5_000)
    return made


@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_of_the_server_loses_nothing_that_was_sent(
    crash: signal.Signals, server: PostgresServer, tmp_path: Path
) -> None:
    files = make_files(tmp_path, location=server.fresh_url())
    moments = random.Random(20261115)  # noqa: S311 - a test's seed
    said: list[str] = []
    for run in range(2):
        process = files.start(files.command(name="a", first=1000 * run, count=1000, size=20_000))
        assert process.stdout is not None
        said += [process.stdout.readline().strip() for _ in range(moments.randrange(1, 20))]
        server.stop(crash)
        rest, error = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "LedgerUnavailable: cannot use the ledger" in error
        assert PASSWORD not in error
        said += rest.splitlines()
        server.start()
        assert_nothing_was_lost(files, said)


@pytest.mark.parametrize("crash", CRASHES)
def test_who_asks_again_after_a_crash_is_charged_once(
    crash: signal.Signals, server: PostgresServer, url: str
) -> None:
    is_over = threading.Event()

    def keep_asking(ledger: Ledger) -> tuple[dict[str, bytes], int]:
        sent: dict[str, bytes] = {}
        refused = 0
        while not is_over.is_set():
            batch = f"batch {len(sent)}"
            sent[batch], attempts = insist(ledger, batch)
            refused += attempts
        return sent, refused

    with open_ledger(url) as ledger, ThreadPoolExecutor(1) as pool:
        asking = pool.submit(keep_asking, ledger)
        for _ in range(3):
            time.sleep(0.3)
            server.stop(crash)
            server.start()
        is_over.set()
        sent, refused = asking.result(60)
        assert refused
        assert ledger.check() == ledger.head
        assert ledger.summary().data[0].tasks[0].answered == 3 * (2 + len(sent))
        for batch, ballot in sent.items():
            assert answer(ledger, batch, ballot=b"late") == ballot


def insist(ledger: Ledger, batch: str) -> tuple[bytes, int]:
    """The ballot, and how often the ledger could not be used before that."""
    for attempt in range(1_000):
        try:
            return answer(ledger, batch, ballot=f"attempt {attempt}".encode()), attempt
        except LedgerUnavailable:
            time.sleep(0.01)
    raise AssertionError("the server never came back")


def test_a_server_that_was_restarted_in_between_is_found_again(
    server: PostgresServer, url: str
) -> None:
    with open_ledger(url) as ledger, open_batch_store(server.fresh_url()) as batches:
        batches.put_once(b"key", Kind.JOB, b"data")
        server.stop()
        with pytest.raises(LedgerUnavailable, match="nothing was answered"):
            answer(ledger, "c")
        with pytest.raises(BatchStoreUnavailable, match="nothing was sent"):
            batches.put_once(b"key", Kind.JOB, b"other")
        server.start()
        assert answer(ledger, "c") == b"ballot of c"
        assert batches.put_once(b"key", Kind.JOB, b"other") == b"data"
        server.stop()
        server.start()
        assert answer(ledger, "c", ballot=b"x") == b"ballot of c"
        assert ledger.check().index == FILLED + 1


def test_a_connection_that_ends_in_mid_transaction_charges_nothing(
    server: PostgresServer, url: str
) -> None:
    with open_ledger(url) as ledger:
        with pytest.raises(LedgerUnavailable, match="terminating connection"), ledger._turn():
            end_other_connections(server)
        assert ledger.check().index == FILLED
        assert answer(ledger, "c") == b"ballot of c"
        assert ledger.summary().data[0].tasks[0].answered == 9


def end_other_connections(server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'dppp' AND pid <> pg_backend_pid()"
        )


def test_a_server_that_does_not_wait_for_the_disk_is_refused(
    server: PostgresServer, url: str
) -> None:
    server.stop()
    server.start("fsync=off")
    with pytest.raises(LedgerUnavailable, match="fsync off"):
        open_ledger(url).__enter__()
    with pytest.raises(BatchStoreUnavailable, match="fsync off"):
        open_batch_store(server.fresh_url()).__enter__()


@pytest.mark.parametrize("table", ["entries", "contents"])
def test_a_page_that_has_decayed_is_noticed(table: str, server: PostgresServer, url: str) -> None:
    with server.connect() as connection:
        name = f"{schema_of(url)}.{table}"
        ((path,),) = connection.execute("SELECT pg_relation_filepath(%s)", [name]).fetchall()
    server.stop()
    with (server.data / path).open("r+b") as file:
        file.seek(8_000)
        file.write(b"decay")
    server.start()
    with pytest.raises(LedgerDamaged, match="invalid page"), open_ledger(url) as ledger:
        ledger.check()


def test_a_new_task_is_agreed_once_although_the_server_crashed(
    server: PostgresServer, url: str
) -> None:
    with open_ledger(url) as ledger:
        server.stop(signal.SIGKILL)
        with pytest.raises(LedgerUnavailable):
            ledger.accept(DATA, agree("second", queries=5_000))
        server.start()
        for _ in range(2):
            ledger.accept(DATA, agree("second", queries=5_000))
        assert len(ledger.summary().data[0].tasks) == 2
