"""What each querier may watch: its own batches, and which teachers are online.

The hub of a process (events.py) tells of everybody's batches, also of those that other aggregator
processes run. Here every querier has a hub of its own. An event of a batch goes to the querier
whose batch it is, and to nobody if that cannot be found out. Others' events never enter a querier's
queue, so neither a pause nor a loss in its stream says how busy others are.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from dppp.errors import DpppError
from dppp.protocol.messages import BatchId
from dppp.service.batches.hub import BatchEvent, EventHub, HubEvent
from dppp.service.gateway.attendance import Attendance

log = logging.getLogger("dppp.gateway")

OwnerOf = Callable[[BatchId], Awaitable[str | None]]
"""The querier whose batch this is; None for a batch that is in no job."""


class OwnView:
    """What one querier sees."""

    def __init__(self, teachers: Iterable[int]) -> None:
        self.hub = EventHub()
        self.attendance = Attendance(teachers)

    def take(self, event: HubEvent) -> None:
        """An event that this querier may see."""
        if isinstance(event, BatchEvent):
            self.attendance.note(event)
        self.hub.tell(event)


class OwnViews:
    """Passes the events of a process on to queriers. Use it in an ``async with`` block."""

    def __init__(
        self,
        hub: EventHub,
        *,
        owner_of: OwnerOf,
        queriers: Iterable[str],
        teachers: Iterable[int],
    ) -> None:
        indexes = tuple(teachers)
        self._hub = hub
        self._owner_of = owner_of
        self._views = {name: OwnView(indexes) for name in queriers}
        self._loop: asyncio.Task[None] | None = None

    def of(self, querier: str) -> OwnView:
        """The view of one querier."""
        return self._views[querier]

    @property
    def is_alive(self) -> bool:
        """Whether events are passed on."""
        return self._loop is not None and not self._loop.done()

    async def __aenter__(self) -> "OwnViews":
        self._loop = asyncio.create_task(self._pass_on(), name="own views")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._loop is not None, "it was entered"
        self._loop.cancel()
        await asyncio.gather(self._loop, return_exceptions=True)

    async def _pass_on(self) -> None:
        while True:
            with self._hub.watch() as events:
                async for event in events:
                    await self._take(event)
            for view in self._views.values():
                view.hub.end()

    async def _take(self, event: HubEvent) -> None:
        try:
            for view in await self._who_may_see(event):
                view.take(event)
        except DpppError as error:  # the store is away: better nobody than somebody else
            log.warning("event dropped", extra={"reason": str(error)})
        except Exception:
            log.exception("event dropped")

    async def _who_may_see(self, event: HubEvent) -> list[OwnView]:
        if not isinstance(event, BatchEvent):
            return list(self._views.values())
        owner = await self._owner_of(BatchId(bytes.fromhex(event.batch)))
        return [self._views[owner]] if owner in self._views else []
