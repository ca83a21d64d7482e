"""Who gets in at the gateway, decided before anything but the head of a request is read.

A stranger's body is never waited for, and one querier cannot take up all connections, memory or
event streams: it has so many requests under way at once, and the next one is told to come later.
"""

from collections import Counter
from collections.abc import Sequence

from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dppp.service.gateway.queriers import Querier, find_querier

MOST_AT_ONCE = 32
"""Requests of one querier under way, event streams included; a page takes about six."""

RETRY_SECONDS = "30"
QUERIER = "dppp.querier"
"""Where in the scope of a request the querier is, once let in."""


class Admission:
    """ASGI middleware: what is under /api needs a token, and room."""

    def __init__(self, app: ASGIApp, queriers: Sequence[Querier]) -> None:
        self._app = app
        self._queriers = queriers
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with its querier, or refuse it."""
        if scope["type"] != "http" or not scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        querier = find_querier(self._queriers, _token(scope))
        if querier is None:
            detail = "give your token: Authorization: Bearer …"
            refusal = JSONResponse({"detail": detail}, 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
        elif self._under_way[querier.name] >= MOST_AT_ONCE:
            detail = f"you have {MOST_AT_ONCE} requests under way; end some, or ask again later"
            await JSONResponse({"detail": detail}, 503, {"Retry-After": RETRY_SECONDS})(
                scope, receive, send
            )
        else:
            self._under_way[querier.name] += 1
            try:
                await self._app({**scope, QUERIER: querier}, receive, send)
            finally:
                self._under_way[querier.name] -= 1


def _token(scope: Scope) -> str:
    """What stands behind "Bearer"; nothing is nobody's token."""
    scheme, token = get_authorization_scheme_param(Headers(scope=scope).get("Authorization"))
    return token if scheme.lower() == "bearer" else ""
