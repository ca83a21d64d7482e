"""Jobs that outlive their gateway: failing writes, restarts, two gateways on one store."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.protocol.small import small
from tests.service.gateway.served import serve
from tests.service.gateway.test_application import ALICE, BOB, QUERIERS, ask, wait_for_end

from dppp.errors import BatchStoreUnavailable
from dppp.federation import Parties
from dppp.protocol.batch_store import BatchStore, Kind
from dppp.protocol.receipt import Receipt
from dppp.protocol.wire import decode
from dppp.service.batches import runner as batch_runner
from dppp.service.gateway.embedded import Embedded, embed_gateway
from dppp.service.stores.sqlite.batches import SqliteBatchStore


class Failing:
    """A store that fails when something of this kind is put, as often as it is told."""

    def __init__(self, store: BatchStore, kind: Kind, failures: int) -> None:
        self._store = store
        self._kind = kind
        self.failures = failures

    def put_once(self, key: bytes, kind: Kind, data: bytes) -> bytes:
        if kind == self._kind and self.failures:
            self.failures -= 1
            raise BatchStoreUnavailable("the disk is full")
        return self._store.put_once(key, kind, data)

    def get(self, key: bytes, kind: Kind) -> bytes | None:
        return self._store.get(key, kind)

    def having(self, kind: Kind) -> tuple[bytes, ...]:
        return self._store.having(kind)

    def put_since(self, kind: Kind, position: int) -> tuple[tuple[int, bytes], ...]:
        return self._store.put_since(kind, position)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteBatchStore]:
    store = SqliteBatchStore(tmp_path / "batches.db")
    yield store
    store.close()


@contextmanager
def gateway(
    parties: Parties, store: BatchStore, token: str = ALICE, **settings: Any
) -> Iterator[tuple[httpx.Client, Embedded]]:
    """A gateway in front of a store, and a querier's connection to it."""
    embedded = embed_gateway(parties, store=store, queriers=QUERIERS, **settings)
    headers = {"Authorization": f"Bearer {token}"}
    with (
        serve(embedded.app) as address,
        httpx.Client(base_url=address, headers=headers, timeout=30) as client,
    ):
        yield client, embedded


def post(client: httpx.Client, rows: list[list[float]], key: str) -> httpx.Response:
    headers = {"Idempotency-Key": key}
    return client.post("/api/batches", json={"rows": rows}, headers=headers)


ROWS = [[1.0, 1.0], [2.0, 1.0]]


@pytest.mark.parametrize("kind", [Kind.JOB, Kind.REQUEST])
def test_a_job_whose_start_failed_is_started_by_the_same_key_and_charged_once(
    store: SqliteBatchStore, kind: Kind
) -> None:
    with gateway(small(), Failing(store, kind, failures=1)) as (client, _):
        failed = post(client, ROWS, "monday")
        assert failed.status_code == 503
        assert "cannot be used now" in failed.json()["detail"]
        assert "disk" not in failed.text  # that is the operator's business
        assert store.having(Kind.REQUEST) == ()
        state = ask(client, ROWS, key="monday")
        assert state["stage"] == "released"
        assert client.get("/api/budget").json()["charged"] == len(ROWS)


def test_a_job_that_came_while_too_many_were_under_way_is_started_by_the_same_key(
    store: SqliteBatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(small(), store) as (client, _):
        monkeypatch.setattr(batch_runner, "MOST_OPEN_BATCHES", 0)
        busy = post(client, ROWS, "monday")
        assert busy.status_code == 503
        assert busy.headers["Retry-After"]
        monkeypatch.undo()
        assert ask(client, ROWS, key="monday")["stage"] == "released"
        assert client.get("/api/budget").json()["charged"] == len(ROWS)


def test_a_job_that_was_never_started_is_over_after_its_deadline_without_a_charge_by_teachers(
    store: SqliteBatchStore,
) -> None:
    parties = small()
    failing = Failing(store, Kind.REQUEST, failures=10**6)
    with gateway(parties, failing, deadline_seconds=4) as (client, _):
        assert post(client, ROWS, "monday").status_code == 503
        time.sleep(5.1)
        failing.failures = 0
        late = post(client, ROWS, "monday")  # too late to be started
        assert late.status_code == 202
        assert late.json()["stage"] == "aborted"
        assert "not started before its deadline" in late.json()["reason"]
    for ledger in parties.ledgers.values():
        assert [task.answered for data in ledger.summary().data for task in data.tasks] == [0]


def test_after_a_restart_labels_allowances_and_known_answers_are_still_there(
    store: SqliteBatchStore,
) -> None:
    parties = small()
    with gateway(parties, store, BOB) as (bob, _):
        before = ask(bob, ROWS, key="monday")
        labels = bob.get(f"/api/batches/{before['id']}/labels").json()
        transcript = bob.get(f"/api/batches/{before['id']}/transcript").content
    with gateway(parties, store, BOB) as (bob, _):
        assert wait_for_end(bob, before["id"]) == before
        assert bob.get(f"/api/batches/{before['id']}/labels").json() == labels
        assert bob.get(f"/api/batches/{before['id']}/transcript").content == transcript
        refused = post(bob, [[0.0, 2.0], [0.0, 3.0]], "tuesday")
        assert refused.status_code == 403  # 3 in all, 2 of them spent before the restart
        known = ask(bob, [ROWS[1], ROWS[0]], key="wednesday")
        assert known["charged"] == 0
        found = bob.get(f"/api/batches/{known['id']}/labels").json()["labels"]
        assert found == labels["labels"][::-1]


def test_two_gateways_on_one_store_count_together_and_find_each_others_jobs(
    store: SqliteBatchStore, tmp_path: Path
) -> None:
    parties = small()
    other_store = SqliteBatchStore(tmp_path / "batches.db")
    with gateway(parties, store, BOB) as (one, _), gateway(parties, other_store, BOB) as (two, _):
        first = ask(one, ROWS, key="monday")
        refused = post(two, [[0.0, 2.0], [0.0, 3.0]], "tuesday")
        assert refused.status_code == 403
        assert "1 are left for bob" in refused.json()["detail"]
        assert post(two, ROWS, "monday").json()["id"] == first["id"]
        labels = [each.get(f"/api/batches/{first['id']}/labels").json() for each in (one, two)]
        assert labels[0] == labels[1]
        assert ask(two, [[0.0, 2.0]], key="tuesday")["stage"] == "released"
        budgets = [each.get("/api/budget").json() for each in (one, two)]
        assert [(each["charged"], each["left_to_you"]) for each in budgets] == [(3, 0), (3, 0)]
    other_store.close()


def test_a_gateway_whose_store_is_held_by_somebody_else_says_so_and_goes_on_afterwards(
    store: SqliteBatchStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(small(), store) as (client, _):
        store._file.connection.execute("PRAGMA busy_timeout = 100")
        holder = sqlite3.connect(tmp_path / "batches.db", isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        refused = post(client, ROWS, "monday")
        assert refused.status_code == 503
        assert "store cannot be used" in refused.json()["detail"]
        holder.execute("ROLLBACK")
        holder.close()
        state: dict[str, Any] = ask(client, ROWS, key="monday")
        assert state["stage"] == "released"


def test_a_release_that_is_looked_at_again_and_again_is_read_once_and_not_where_batches_wait(
    store: SqliteBatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long receipt takes seconds to read; whoever asked for it often held up all others."""
    with gateway(small(), store) as (client, _):
        own = f"/api/batches/{ask(client, [[1, 2], [0, 5]])['id']}"
        threads: list[str] = []

        def noting(data: bytes, expected: Any) -> Any:
            if expected is Receipt:
                threads.append(threading.current_thread().name)
            return decode(data, expected)

        monkeypatch.setattr("dppp.service.gateway.jobs.decode", noting)
        monkeypatch.setattr("dppp.protocol.aggregator.decode", noting)
        for _ in range(5):
            assert client.get(own).json()["stage"] == "released"
            assert len(client.get(f"{own}/labels").json()["labels"]) == 2
            for file in ("receipt", "transcript"):
                assert client.get(f"{own}/{file}").status_code == 200
        assert len(threads) == 1
        assert not threads[0].startswith("aggregator")


def test_what_was_counted_is_not_read_again_and_again(
    store: SqliteBatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that cost nothing are kept too, so there may be any number of them."""
    monkeypatch.setattr("dppp.service.gateway.jobs._LOOK_BACK", 5)
    read: list[int] = []
    put_since = store.put_since

    def noting(kind: Kind, position: int) -> tuple[tuple[int, bytes], ...]:
        found = put_since(kind, position)
        read.append(len(found))
        return found

    monkeypatch.setattr(store, "put_since", noting)
    with gateway(small(), store) as (client, _):
        for _ in range(30):
            assert ask(client, [[1, 2]])["stage"] == "released"
        assert client.get("/api/budget").json()["charged"] == 1
    assert len(read) > 30
    assert max(read) <= 7


def test_a_batch_whose_ballots_no_broker_could_carry_is_refused_before_it_is_charged(
    store: SqliteBatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    parties = small()
    three = parties.task.answer_bytes(3) * parties.task.trust.teachers
    monkeypatch.setattr("dppp.service.broker.frames.MOST_BYTES", three)
    with gateway(parties, store) as (client, _):
        many = [[1.0, float(place)] for place in range(30)]
        refused = client.post("/api/batches", json={"rows": many})
        assert refused.status_code == 413
        assert "fewer rows" in refused.json()["hint"]
        assert client.get("/api/budget").json()["charged"] == 0
        assert ask(client, many[:3])["stage"] == "released"
