"""Serve an application on loopback in a thread of its own, for real HTTP in tests."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp


@contextmanager
def serve(app: ASGIApp, *, tls: Path | None = None) -> Iterator[str]:
    """The address at which the application answers; `tls` is a file of certificate and key."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", lifespan="on", ssl_certfile=tls)
    )
    server.config.timeout_graceful_shutdown = 2
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    assert server.started, "the gateway did not start"
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the gateway did not stop"
