"""Work that takes seconds, for whoever asks: one piece at a time, a short queue, old answers kept.

The gateway works out plans and checks transcripts so; no querier can keep the machine busy with
more than one of each.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from dppp.errors import Abandoned, Busy

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
IsGone = Callable[[], Awaitable[bool]]
"""Whether nobody waits for the answer any more."""

_LOOK_SECONDS = 0.2


class SingleFlight(Generic[Key, Value]):
    """Does pieces of work in a thread, each once as long as its answer is remembered."""

    def __init__(self, *, most_waiting: int, most_kept: int) -> None:
        self._most_waiting = most_waiting
        self._most_kept = most_kept
        self._kept: OrderedDict[Key, Value] = OrderedDict()
        self._waiting = 0
        self._turn = asyncio.Lock()

    async def find(self, key: Key, work: Callable[[], Value], is_gone: IsGone) -> Value:
        """The answer; raises `Busy` when too many wait, `Abandoned` when nobody does any more."""
        if key in self._kept:
            return self._kept[key]
        if self._waiting >= self._most_waiting:
            raise Busy("too many ask for this at once", hint="ask again in some seconds")
        self._waiting += 1
        try:
            await self._wait_for_turn(is_gone)
            try:
                return await self._work_out(key, work)
            finally:
                self._turn.release()
        finally:
            self._waiting -= 1

    async def _wait_for_turn(self, is_gone: IsGone) -> None:
        """Who has gone makes room for others at once, and not when it would be its turn."""
        while True:
            try:
                await asyncio.wait_for(self._turn.acquire(), _LOOK_SECONDS)
            except TimeoutError:
                if await is_gone():
                    raise _abandoned() from None
                continue
            if await is_gone():
                self._turn.release()
                raise _abandoned()
            return

    async def _work_out(self, key: Key, work: Callable[[], Value]) -> Value:
        if key not in self._kept:
            self._kept[key] = await asyncio.to_thread(work)
            if len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
        return self._kept[key]


def _abandoned() -> Abandoned:
    return Abandoned("whoever asked has gone; nothing was worked out")
