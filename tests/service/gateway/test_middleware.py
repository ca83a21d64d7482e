"""Strangers and greedy queriers at the gateway, over real sockets."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from tests.service.gateway.test_application import (
    ALICE,
    BOB,
    MOST_ROWS,
    Served,
    ask,
    serve_embedded,
)

from dppp.service.gateway.middleware import MOST_AT_ONCE


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_embedded(most_rows=MOST_ROWS) as served:
        yield served


@pytest.mark.parametrize(
    "authorization",
    [None, "Bearer x", "Bearer", "Basic x", pytest.param(f"Basic {ALICE}", id="another scheme")],
)
def test_a_strangers_body_is_not_waited_for(served: Served, authorization: str | None) -> None:
    host, port = served.address.removeprefix("http://").split(":")
    head = "POST /api/batches HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n"
    if authorization is not None:
        head += f"Authorization: {authorization}\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"{head}\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_one_querier_cannot_take_up_the_gateway(served: Served) -> None:
    alice, bob = served.client(ALICE), served.client(BOB)
    with ExitStack() as streams:
        for _ in range(MOST_AT_ONCE):
            watching = httpx.Client(
                base_url=served.address, headers={"Authorization": f"Bearer {ALICE}"}
            )
            streams.enter_context(watching)
            assert streams.enter_context(watching.stream("GET", "/api/events")).status_code == 200
        refused = alice.get("/api/task")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "30")
        assert "under way" in refused.json()["detail"]
        assert bob.get("/api/task").status_code == 200
    until = time.monotonic() + 20
    while alice.get("/api/task").status_code != 200 and time.monotonic() < until:
        time.sleep(0.1)
    assert ask(alice, [[1.0, 2.0]])["stage"] == "released"


def test_more_values_than_rows_can_have_are_not_parsed(served: Served) -> None:
    body = b'{"rows":[[' + b"1," * 2_000_000 + b"1]]}"
    headers = {"Content-Type": "application/json"}
    refused = served.client().post("/api/batches", content=body, headers=headers)
    assert refused.status_code == 413
    assert "values" in refused.json()["detail"]
