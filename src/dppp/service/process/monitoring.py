"""Health and metrics over HTTP, for an operator's own monitoring, on a separate address.

Used by teacher and aggregator.
"""

import asyncio
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dppp.service.process.listening import listen


def make_monitor(
    registry: CollectorRegistry, checks: Mapping[str, Callable[[], bool]]
) -> Starlette:
    """/health (200, or 503 and what fails) and /metrics in Prometheus' format."""
    health_of = Gauge("dppp_health", "1 while this works", ["check"], registry=registry)
    for name, is_well in checks.items():
        health_of.labels(name).set_function(functools.partial(_one_or_zero, is_well))

    async def health(_: Request) -> JSONResponse:
        failing = [name for name, is_well in checks.items() if not is_well()]
        if failing:
            return JSONResponse({"status": "failing", "failing": failing}, 503)
        return JSONResponse({"status": "ok"})

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route("/health", health), Route("/metrics", metrics)])


def _one_or_zero(is_well: Callable[[], bool]) -> float:
    return float(is_well())


class _QuietServer(uvicorn.Server):
    """Leaves signals to whoever runs the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Monitor:
    """Serves a monitor while in its ``async with`` block; nothing without an address."""

    def __init__(self, app: Starlette, address: str | None) -> None:
        self._server = _QuietServer(uvicorn.Config(app, log_config=None, lifespan="off"))
        self._listening = None if address is None else listen(address)
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Monitor":
        if self._listening is not None:
            self._serving = asyncio.create_task(self._server.serve([self._listening]))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving
