"""A server whose streams of events end when it stops, so that nobody who watches holds it up."""

import socket
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from dppp.errors import RunnerStopped
from dppp.service.batches.hub import EventHub

_STOP_SECONDS = 5


class GracefulServer(uvicorn.Server):
    """Serves one application on a socket that listens already, with TLS where there are keys."""

    def __init__(
        self,
        app: FastAPI,
        hub: EventHub,
        *,
        tls_certificate: Path | None = None,
        tls_key: Path | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            ssl_certfile=tls_certificate,
            ssl_keyfile=tls_key,
            log_config=None,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        super().__init__(config)
        self._hub = hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal stops the server in order, within seconds; the next add nothing to it.

        For uvicorn a second Ctrl-C means to leave at once, and it logs what it left as a traceback.
        """
        if not self.should_exit:
            super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then stop as uvicorn does."""
        self._hub.end()
        await super().shutdown(sockets)

    def run_until_stopped(self, listening: socket.socket) -> None:
        """Until SIGTERM or Ctrl-C, which is how one leaves and no failure."""
        try:
            self.run([listening])
        except KeyboardInterrupt:
            return
        except SystemExit as failure:  # uvicorn's own way to give up
            raise RunnerStopped("the gateway could not start; the log says why") from failure
