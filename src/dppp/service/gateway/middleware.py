"""What every request passes through, from the outside in: headers, a token, a limit on its size.

`SafeHeaders`: a browser runs and shows nothing but our own files. `Admission`: who gets in is
decided before anything but the head of a request is read. A stranger's body is never waited for,
and one querier cannot take up all connections, memory or event streams. `BodyLimit`: a limit on
bytes, and on the values of the JSON in them, told by its commas. Two bytes ("1,") become an object
of forty, and are read in the thread that serves everybody: a body of 40 MB of them stopped the
gateway for thirteen seconds and took a gigabyte.
"""

from collections import Counter
from collections.abc import Sequence

from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dppp.protocol.columns import TEXT, Column
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
            detail = "the request has no token that is known here"
            problem = {"detail": detail, "hint": "give your token: Authorization: Bearer …"}
            refusal = JSONResponse(problem, 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
        elif self._under_way[querier.name] >= MOST_AT_ONCE:
            detail = f"you have {MOST_AT_ONCE} requests under way"
            problem = {"detail": detail, "hint": "end some, or ask again later"}
            refusal = JSONResponse(problem, 503, {"Retry-After": RETRY_SECONDS})
            await refusal(scope, receive, send)
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


_MORE_VALUES = 1_000
"""For what is in a request beside its rows: the classes that a querier counts on, mostly."""


_COMMAS_OF_A_TEXT = 50
"""On average; a page of prose has fewer."""


def most_values_of(columns: Sequence[Column], rows: int) -> int:
    """Commas that this many rows can have, also as records, whose names may have commas too."""
    names = "".join(column.name for column in columns).count(",")
    categories = sum(
        max((value.count(",") for value in column.type.values), default=0) for column in columns
    )
    texts = _COMMAS_OF_A_TEXT * sum(column.type.kind == TEXT for column in columns)
    return rows * (len(columns) + names + categories + texts) + _MORE_VALUES


class BodyLimit:
    """ASGI middleware that answers 413 instead of reading on."""

    def __init__(self, app: ASGIApp, most_bytes: int, most_values: int) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._most_values = most_values

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        read = values = 0
        excess: str | None = None

        async def counted() -> Message:
            nonlocal read, values, excess
            message = await receive()
            body = message.get("body", b"")
            read += len(body)
            values += body.count(b",")
            if read > self._most_bytes:
                excess = f"more than {self._most_bytes:,} bytes"
            elif values > self._most_values:
                excess = f"more than {self._most_values:,} values"
            return message if excess is None else {"type": "http.disconnect"}

        async def guarded(message: Message) -> None:
            if excess is None:
                await send(message)

        try:
            await self._app(scope, counted, guarded)
        finally:
            if excess is not None:
                problem = {"detail": excess, "hint": "send fewer rows at once"}
                await JSONResponse(problem, 413)(scope, receive, send)


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

SAFE_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class SafeHeaders:
    """ASGI middleware that adds them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; its answer gets the headers."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SAFE_HEADERS)
            await send(message)

        await self._app(scope, receive, with_headers)
