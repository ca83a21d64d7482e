"""A store that is away: health says so, the log says it once, and a querier is told nothing of it.

With a real PostgreSQL server that is stopped under a real aggregator, whose broker is never there.
"""

import logging
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from tests.left_out import need_module
from tests.postgres import PASSWORD, PostgresServer
from tests.protocol.small import small
from tests.service.gateway.served import serve
from tests.service.gateway.test_application import ALICE, QUERIERS

from dppp.errors import BatchStoreUnavailable
from dppp.protocol.batch_store import Kind, MemoryBatchStore
from dppp.service.batches.store_watch import StoreWatch, WatchedStore
from dppp.service.gateway.embedded import embed_gateway
from dppp.service.stores.batches import open_batch_store

need_module("psycopg", extra="service")


class Away(MemoryBatchStore):
    """A store that can be taken away."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False

    def get(self, key: bytes, kind: Kind) -> bytes | None:
        if self.is_away:
            raise BatchStoreUnavailable("the store on db.intranet is away")
        return super().get(key, kind)


class Story:
    """A watched store, and a clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0
        self.store = Away()
        self.watch = StoreWatch(clock=lambda: self.now)
        self.watched = WatchedStore(self.store, self.watch)

    def fail(self, times: int, *, every_seconds: float) -> None:
        self.store.is_away = True
        for _ in range(times):
            with pytest.raises(BatchStoreUnavailable):
                self.watched.get(b"key", Kind.JOB)
            self.now += every_seconds


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_store_that_stays_away_is_said_once_and_again_after_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Story()
    with caplog.at_level(logging.INFO, "dppp.aggregator"):
        story.fail(48, every_seconds=0.25)
        assert errors(caplog) == ["the store cannot be used"]
        story.fail(10, every_seconds=10)
        assert len(errors(caplog)) == 2
        story.store.is_away = False
        story.watched.get(b"key", Kind.JOB)
        story.watched.get(b"key", Kind.JOB)
    assert [each.message for each in caplog.records][-1] == "the store can be used again"
    assert story.watch.is_usable


def test_it_is_tried_less_and_less_often_and_at_once_when_it_is_back() -> None:
    story = Story()
    assert story.watch.pause_seconds == 0
    pauses = []
    for _ in range(7):
        story.fail(1, every_seconds=0)
        pauses.append(story.watch.pause_seconds)
    assert pauses == [0.5, 1, 2, 4, 8, 8, 8]
    story.store.is_away = False
    story.watched.get(b"key", Kind.JOB)
    assert story.watch.pause_seconds == 0


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


def test_health_covers_the_database_and_a_querier_learns_nothing_of_it(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = server.fresh_url()
    with (
        caplog.at_level(logging.INFO, "dppp.aggregator"),
        open_batch_store(url) as store,
        serve(embed_gateway(small(), store=store, queriers=QUERIERS).app) as address,
        httpx.Client(
            base_url=address, headers={"Authorization": f"Bearer {ALICE}"}, timeout=60
        ) as client,
    ):
        assert client.get("/health").status_code == 200
        server.stop()
        refused = client.post("/api/batches", json={"rows": [[1.0, 2.0]]})
        assert refused.status_code == 503
        assert refused.headers["Retry-After"]
        name = url.rsplit("/", 1)[-1].split("?")[0]
        for secret in (name, PASSWORD, "postgres", "schema", "socket"):
            assert secret not in refused.text.lower(), refused.text
        assert client.get("/health").status_code == 503
        for _ in range(5):
            client.get("/api/budget")
        assert errors(caplog).count("the store cannot be used") == 1
        server.start()
        wait_for(lambda: client.get("/api/budget").status_code == 200)
        assert client.get("/health").status_code == 200
