"""Events as server-sent events over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi.responses import StreamingResponse

from dppp.service.batches.hub import EventHub, HubEvent

_SIGN_OF_LIFE_SECONDS = 5


async def _never() -> bool:
    return False


def stream_events(
    hub: EventHub,
    *,
    is_wanted: Callable[[HubEvent], bool] = lambda _: True,
    is_over: Callable[[], Awaitable[bool]] = _never,
) -> StreamingResponse:
    """Wanted events from now on, a comment when nothing happens, an `end` when it is over."""

    async def lines() -> AsyncIterator[str]:
        with hub.watch() as events:
            yield ": watching\n\n"
            has_ended = await is_over()
            while not has_ended:
                try:
                    event = await asyncio.wait_for(anext(events), _SIGN_OF_LIFE_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
                    has_ended = await is_over()
                    continue
                except StopAsyncIteration:
                    return  # this process stops; whoever watches connects anew
                if is_wanted(event):
                    yield f"data: {json.dumps(event.to_json())}\n\n"
                    has_ended = event.is_last and await is_over()
        yield "event: end\ndata: {}\n\n"

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(lines(), media_type="text/event-stream", headers=headers)
