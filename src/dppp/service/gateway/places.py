"""Whose batch is whose: in which batch each job is answered, and which queriers a batch belongs to.

A job of several new queries is a batch of its own. A single query may be in a batch that several
queriers share (gathering.py); that is found in the store, also where another gateway put it there.
Used by jobs.py.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection

from dppp.protocol.batch_store import BatchStore, Kind, StoredBatches
from dppp.protocol.messages import BatchId, BatchRequest
from dppp.protocol.wire import decode, encode
from dppp.service.batches.runner import Clock
from dppp.service.gateway.job import Job, Place


class Places:
    """The batches of jobs and the queriers of batches, as far as they are known here."""

    def __init__(self, store: BatchStore, clock: Clock) -> None:
        self.open: defaultdict[str, set[BatchId]] = defaultdict(set)
        """Of each querier: batches whose end was not heard of yet."""
        self._store = store
        self._stored = StoredBatches(store)
        self._clock = clock
        self._found: dict[BatchId, Place] = {}  # these two: no more than the task has queries
        self._owners: dict[BatchId, set[str]] = {}
        self._waiting: dict[BatchId, Job] = {}  # single queries that are not in any batch yet

    def note_job(self, job: Job) -> None:
        """A job was stored; one that costs nothing has no batch, and the same id as all such."""
        if not job.charged:
            return
        self._owners.setdefault(job.batch, set()).add(job.querier)
        self.open[job.querier].add(job.batch)
        if job.charged == 1 and self._clock() <= job.deadline:
            self._waiting[job.batch] = job

    def put(self, shared: BatchRequest) -> None:
        """The answer to each part of this batch is there, unless that has a place already."""
        for first, each in enumerate(shared.parts):
            place = Place(batch=shared.batch_id, first=first)
            self._store.put_once(each.batch_id, Kind.PLACE, encode(place))

    async def of(self, job: Job) -> Place:
        """Where the answers to a job are."""
        shared = await asyncio.to_thread(self.find, job.batch) if job.charged == 1 else None
        if shared is None:
            return Place(batch=job.batch, first=0)
        owners = self._owners.setdefault(shared.batch, set())
        if job.querier not in owners:
            owners.add(job.querier)
            self.open[job.querier].add(shared.batch)
        self.open[job.querier].discard(job.batch)
        self._waiting.pop(job.batch, None)
        return shared

    async def has_begun(self, job: Job) -> bool:
        """Whether there is nothing to start: its batch is in the store, or it needs none."""
        if not job.charged:
            return True
        place = await self.of(job)
        return await asyncio.to_thread(self._stored.has_request, place.batch)

    def has_ended(self, batch: BatchId) -> bool:
        """Whether a batch has an outcome in the store."""
        return self._store.get(batch, Kind.OUTCOME) is not None

    async def place_all(self) -> None:
        """Find the batches of single queries that waited for one when they were last looked at."""
        for own, job in tuple(self._waiting.items()):
            if await self.has_begun(job) or self._clock() > job.deadline:
                self._waiting.pop(own, None)

    def owners_of(self, batch: BatchId) -> Collection[str]:
        """The queriers whose batch this is, as far as is known."""
        return frozenset(self._owners.get(batch, ()))

    def find(self, own: BatchId) -> Place | None:
        """The shared place of a single query, by the batch that it would make by itself."""
        if own not in self._found:
            stored = self._store.get(own, Kind.PLACE)
            if stored is None:
                return None
            self._found[own] = decode(stored, Place)
        return self._found[own]
