"""What each querier may watch: its own batches, and which teachers are online.

The hub of a process (batches/hub.py) tells of everybody's batches, also of those that other
aggregator processes run. Here every querier has a hub of its own. An event of a batch goes to the
querier whose batch it is, to all who share it, and to nobody if that cannot be found out. Others'
events never enter a querier's queue, so neither a pause nor a loss in its stream says how busy
others are.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, replace

from dppp.errors import DpppError
from dppp.protocol.events import Stage
from dppp.protocol.messages import BatchId
from dppp.service.batches.hub import BatchEvent, EventHub, HubEvent

log = logging.getLogger("dppp.gateway")

MOST_UNDER_WAY = 256
"""Batches whose end is waited for; the oldest is forgotten, should its end never be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TookPart:
    """What one teacher did in these batches."""

    answered_at: float | None = None
    ballots: int = 0
    missed: int = 0
    has_missed_last: bool = False


class Attendance:
    """How teachers took part in one querier's batches, since this process started.

    Over all queriers these numbers would say when others ask, and how often. Two processes may run
    one batch; it counts once.
    """

    def __init__(self, teachers: Iterable[int]) -> None:
        self._of = {index: TookPart() for index in teachers}
        self._voters: OrderedDict[str, set[int]] = OrderedDict()

    def of(self, teacher: int) -> TookPart:
        """What this teacher did."""
        return self._of[teacher]

    def note(self, event: BatchEvent) -> None:
        """A batch got further. One whose beginning was not told is left out."""
        if event.stage is Stage.VOTES:
            self._voters.setdefault(event.batch, set())
            if len(self._voters) > MOST_UNDER_WAY:
                self._voters.popitem(last=False)
        voters = self._voters.get(event.batch)
        if voters is None:
            return
        if event.stage is Stage.BALLOTS and event.teacher in self._of:
            self._note_ballot(event.teacher, voters, event.at)
        elif event.is_last:
            del self._voters[event.batch]
            self._note_end(voters)

    def _note_ballot(self, teacher: int, voters: set[int], at: float) -> None:
        if teacher not in voters:
            voters.add(teacher)
            seen = self._of[teacher]
            self._of[teacher] = replace(seen, ballots=seen.ballots + 1, answered_at=at)

    def _note_end(self, voters: set[int]) -> None:
        for teacher, seen in self._of.items():
            has_missed = teacher not in voters
            self._of[teacher] = replace(
                seen, missed=seen.missed + has_missed, has_missed_last=has_missed
            )


OwnersOf = Callable[[BatchId], Awaitable[Collection[str]]]
"""The queriers whose batch this is: nobody's if it is in no job, several's if they share it."""


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
        owners_of: OwnersOf,
        queriers: Iterable[str],
        teachers: Iterable[int],
    ) -> None:
        indexes = tuple(teachers)
        self._hub = hub
        self._owners_of = owners_of
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
            log.warning("event dropped", extra={"reason": error.one_line})
        except Exception:
            log.exception("event dropped")

    async def _who_may_see(self, event: HubEvent) -> list[OwnView]:
        if not isinstance(event, BatchEvent):
            return list(self._views.values())
        owners = await self._owners_of(BatchId(bytes.fromhex(event.batch)))
        return [self._views[each] for each in owners if each in self._views]
