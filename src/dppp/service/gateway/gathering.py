"""Single queries that come within a moment go out as one batch, which their queriers share.

A batch costs much the same whether it holds one query or fifty, so this is what makes many small
askers affordable. The moment lasts a few milliseconds; while the batch before is under way it lasts
until that one has ended, but two seconds at most. So batches grow with the load, and one that does
not end holds nobody up for long. Those who had their answers from it mostly ask again at once, but
not in the same moment. So it lasts a little longer, until as many have come as shared that batch,
beside those who came while it was under way. Who is alone waits for nobody.

Jobs (jobs.py) sends every single query through here. Where each job's answer is (`Place`) is stored
before the shared batch is: after a crash between the two the batch was never begun, nothing was
charged by any teacher, and the jobs end at their deadline.

Nobody is asked here whether the parts of the others are sound. A teacher answers those that it can
read, so a part of garbage harms its own querier only (protocol/shared_batch.py).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dppp.protocol.messages import BatchId, BatchRequest
from dppp.service.gateway.places import Places

Dispatch = Callable[[BatchRequest], Awaitable[object]]
"""Stores the request of a batch and starts it; whatever fails before that stores nothing."""

MOST_PARTS = 64
"""In one batch; who comes after them waits for the next one."""
_LONGEST_WAIT_SECONDS = 2.0
_LEAST_PAUSE_SECONDS = 0.01
_MOST_FOR_RETURN_SECONDS = 0.5
_PART_FOR_RETURN = 1 / 4
"""How long to wait for those of the batch before to come again, of the time since it was sent."""
_LONGEST_PART = 2**16
"""Bytes of sealed rows: a longer part goes alone, so that the others do not wait for it."""
_DEADLINES_APART_SECONDS = 30
"""The earliest deadline is that of all: a job that is gone on with late gets no company."""


@dataclass(slots=True)
class _Group:
    """What came within one moment, and the task that sends it."""

    requests: list[BatchRequest]
    sending: asyncio.Task[None] | None = None

    def has_room_for(self, request: BatchRequest) -> bool:
        """Whether there are few enough, and none would cut the time of the others short."""
        apart = abs(request.deadline - self.requests[0].deadline)
        return len(self.requests) < MOST_PARTS and apart <= _DEADLINES_APART_SECONDS


class Gatherer:
    """Sends single queries, those of one moment together."""

    def __init__(self, places: Places, dispatch: Dispatch, *, seconds: float) -> None:
        """`seconds` is the moment; without any each query is sent by itself, at once."""
        self._places = places
        self._dispatch = dispatch
        self._seconds = seconds
        self._group: _Group | None = None
        self._sending: dict[BatchId, asyncio.Task[None]] = {}
        self._last: BatchId | None = None
        self._last_parts = 1
        self._last_sent_at = 0.0
        self._unsent: dict[BatchId, BatchRequest] = {}  # placed, and then its start failed

    async def send(self, request: BatchRequest) -> None:
        """Returns when the batch that holds this single query is stored."""
        own = request.batch_id
        if not self._seconds or len(request.queries.sealed) > _LONGEST_PART:
            await self._dispatch(request)
            return
        place = await asyncio.to_thread(self._places.find, own)
        if own not in self._sending:
            if place is not None:
                await self._send_again(place.batch)
                return
            self._sending[own] = self._join(request)
        await asyncio.shield(self._sending[own])  # who goes away leaves the others waiting

    def _join(self, request: BatchRequest) -> asyncio.Task[None]:
        if self._group is None or not self._group.has_room_for(request):
            self._group = _Group(requests=[request])
            self._group.sending = asyncio.create_task(self._close(self._group))
        else:
            self._group.requests.append(request)
        assert self._group.sending is not None, "it was made with the group"
        return self._group.sending

    async def _close(self, group: _Group) -> None:
        try:
            await asyncio.sleep(self._seconds)
            others = len(group.requests) if await self._wait_for_last() else 0
            await self._wait_for_return(group, self._last_parts + others)
            self._leave(group)
            await self._send(group.requests)
        finally:
            self._leave(group)
            for each in group.requests:
                del self._sending[each.batch_id]

    def _leave(self, group: _Group) -> None:
        """Who comes from now on is in another group."""
        if self._group is group:
            self._group = None

    async def _wait_for_last(self) -> bool:
        """Whether there was something to wait for: then nobody of that batch is in this group."""
        now = asyncio.get_running_loop().time
        until = now() + _LONGEST_WAIT_SECONDS
        has_waited = False
        while self._last is not None and now() < until:
            if await asyncio.to_thread(self._places.has_ended, self._last):
                break
            has_waited = True
            await asyncio.sleep(max(self._seconds, _LEAST_PAUSE_SECONDS))
        return has_waited

    async def _wait_for_return(self, group: _Group, expected: int) -> None:
        """For a part of the time that they waited, so that nobody waits much longer than before."""
        now = asyncio.get_running_loop().time
        until = now() + min(
            _PART_FOR_RETURN * (now() - self._last_sent_at), _MOST_FOR_RETURN_SECONDS
        )
        while len(group.requests) < min(expected, MOST_PARTS) and now() < until:
            await asyncio.sleep(_LEAST_PAUSE_SECONDS)

    async def _send(self, requests: Sequence[BatchRequest]) -> None:
        if len(requests) == 1:
            await self._dispatch(requests[0])
            self._note_sent(requests[0].batch_id, parts=1)
            return
        shared = BatchRequest(
            deadline=min(each.deadline for each in requests),
            queries=requests[0].queries,
            others=tuple(each.queries for each in requests[1:]),
        )
        await asyncio.to_thread(self._places.put, shared)
        await self._places.place_all()  # before anything is told of the batch
        self._unsent[shared.batch_id] = shared
        await self._send_again(shared.batch_id)

    async def _send_again(self, batch: BatchId) -> None:
        """A batch that could not be started before; one of another process is left to it."""
        if batch in self._unsent:
            await self._dispatch(self._unsent[batch])
            sent = self._unsent.pop(batch, None)
            self._note_sent(batch, parts=1 if sent is None else 1 + len(sent.others))

    def _note_sent(self, batch: BatchId, *, parts: int) -> None:
        self._last, self._last_parts = batch, parts
        self._last_sent_at = asyncio.get_running_loop().time()
