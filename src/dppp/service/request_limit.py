"""A limit on the size of what is sent to the gateway, kept while it is read."""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """ASGI middleware that answers 413 instead of reading on."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        read = 0
        is_too_long = False

        async def counted() -> Message:
            nonlocal read, is_too_long
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._most_bytes:
                is_too_long = True
                return {"type": "http.disconnect"}
            return message

        async def guarded(message: Message) -> None:
            if not is_too_long:
                await send(message)

        try:
            await self._app(scope, counted, guarded)
        finally:
            if is_too_long:
                detail = f"more than {self._most_bytes:,} bytes; send fewer rows at once"
                await JSONResponse({"detail": detail}, 413)(scope, receive, send)
