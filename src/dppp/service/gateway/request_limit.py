"""A limit on what is sent to the gateway, kept while it is read.

On the bytes, and on the values of the JSON in them, told by its commas: two bytes ("1,") become an
object of forty, and are read in the thread that serves everybody. A body of 40 MB of them stopped
the gateway for thirteen seconds and took a gigabyte.
"""

from collections.abc import Sequence

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MORE_VALUES = 1_000
"""For what is in a request beside its rows: the classes that a querier counts on, mostly."""


def most_values_of(features: Sequence[str], rows: int) -> int:
    """Commas that so many rows can have, also as records, whose names may have commas too."""
    return rows * (len(features) + "".join(features).count(",")) + _MORE_VALUES


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
                detail = f"{excess}; send fewer rows at once"
                await JSONResponse({"detail": detail}, 413)(scope, receive, send)
