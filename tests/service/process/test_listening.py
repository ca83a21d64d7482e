"""Addresses are taken before anything begins, and a gateway serves with TLS where it has keys."""

import ssl
import threading
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from tests.service.process.tls_keys import make_keys

from dppp.errors import InputError, RunnerStopped
from dppp.service.batches.hub import EventHub
from dppp.service.gateway.graceful_server import GracefulServer
from dppp.service.process.listening import listen


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_an_address_is_taken_once(host: str) -> None:
    with listen(f"{host}:0") as first:
        port = first.getsockname()[1]
        with pytest.raises(InputError, match=rf"cannot listen on .*{port}.*in use"):
            listen(f"{host}:{port}")


@pytest.mark.parametrize(
    "address", ["203.0.113.1:9000", "nowhere.invalid:9000", "127.0.0.1", "127.0.0.1:70000"]
)
def test_an_address_that_is_not_ours_is_bad_input(address: str) -> None:
    with pytest.raises(InputError, match="listen on"):
        listen(address)


def test_with_keys_the_gateway_speaks_tls_and_nothing_else(tmp_path: Path) -> None:
    keys = make_keys("localhost")
    (tmp_path / "tls.pem").write_bytes(keys.certificate)
    (tmp_path / "tls.key").write_bytes(keys.key)
    app = FastAPI()
    app.get("/")(lambda: "hello")
    server = GracefulServer(
        app,
        EventHub(),
        tls_certificate=tmp_path / "tls.pem",
        tls_key=tmp_path / "tls.key",
    )
    listening = listen("127.0.0.1:0")
    address = f"localhost:{listening.getsockname()[1]}"
    thread = threading.Thread(target=server.run_until_stopped, args=(listening,))
    thread.start()
    try:
        trusting = ssl.create_default_context(cadata=keys.authority)
        assert httpx.get(f"https://{address}/", verify=trusting, timeout=30).json() == "hello"
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"https://{address}/", timeout=30)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"http://{address}/", timeout=30)
    finally:
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive()


def test_a_gateway_that_cannot_start_is_a_failure() -> None:
    async def fail() -> None:
        raise OSError("no disk")

    app = FastAPI(on_startup=[fail])
    server = GracefulServer(app, EventHub())
    with listen("127.0.0.1:0") as listening, pytest.raises(RunnerStopped, match="not start"):
        server.run_until_stopped(listening)
