"""Jobs: what a querier asked for, from rows to labels.

A job is rows under a key that the querier chose: sealed ones, of which the gateway has query ids,
or rows in the clear from its page, which it seals itself. Rows that were released before are
answered from the store, for free; the others go out as one batch. The job is stored before its
batch starts, so that the same rows under the same key, sent again after any crash, are the same job
and are charged once. Allowances here keep queriers apart; the budget itself is the teachers'.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dppp.errors import (
    AllowanceExceeded,
    BatchAborted,
    InputError,
    JobChanged,
    JobUnknown,
    NotReleased,
    TooManyRows,
)
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch import slow_seconds
from dppp.protocol.batch_store import BatchStore, Kind, StoredBatches
from dppp.protocol.events import Abort, Stage
from dppp.protocol.inputs import encode_rows, rows_bytes
from dppp.protocol.messages import (
    MOST_QUERIES,
    BallotList,
    BatchId,
    BatchRequest,
    SealedQueries,
    batch_id,
    require_query_ids,
    split_query_ids,
)
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import Release
from dppp.protocol.rows import require_for_all
from dppp.protocol.wire import decode, encode
from dppp.service.batches.runner import BatchRunner, Clock
from dppp.service.broker import frames
from dppp.service.gateway.gathering import Dispatch, Gatherer
from dppp.service.gateway.job import KNOWN, MOST_RECENT, Job, JobId, job_id
from dppp.service.gateway.page_rows import PageRows
from dppp.service.gateway.places import Places
from dppp.service.gateway.schemas import BatchState

log = logging.getLogger("dppp.aggregator")

_LOOK_BACK = 2_000
"""Things put by others in the time that one may take to commit, a minute at the very most."""

_MORE_REQUEST_BYTES = 2**16
"""Of a request beside its rows: keys, tags, signatures, names; more withdrawals than there are."""

_MOST_READ = 8
"""Batches whose answers are kept as they were read last: they are asked for again and again."""


class Jobs:
    """All jobs of a gateway. Several gateways may share the store."""

    def __init__(
        self,
        *,
        runner: BatchRunner,
        store: BatchStore,
        allowances: Mapping[str, int],
        dispatch: Dispatch | None = None,
        deadline_seconds: int = 600,
        gather_seconds: float = 0,
        apart: Collection[str] = (),
        clock: Clock = time.time,
    ) -> None:
        """`allowances` are the queries that each querier may spend in all.

        Single queries that come within `gather_seconds` share a batch, but for those of the
        queriers `apart`.
        """
        self.task = runner.task
        self._runner = runner
        self._store = store
        self._stored = StoredBatches(store)
        self._allowances = allowances
        self._dispatch = dispatch or runner.submit
        self._places = Places(store, clock)
        self._gatherer = Gatherer(self._places, self._dispatch, seconds=gather_seconds)
        self._apart = frozenset(apart)
        self._deadline_seconds = deadline_seconds
        self._clock = clock
        self._charged: Counter[str] = Counter()
        self._recent: defaultdict[str, deque[JobId]] = defaultdict(
            lambda: deque(maxlen=MOST_RECENT)
        )
        self._counted: set[int] = set()  # positions; of the last ones only
        self._ids_of_row: dict[bytes, bytes] = {}  # of rows from the page, by their digests
        self._turn = asyncio.Lock()
        self._counting = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._read: OrderedDict[BatchId, tuple[Release, ...]] = OrderedDict()

    async def submit(
        self,
        querier: str,
        rows: Any,
        *,
        key: str,
        fresh: bool,
        insist: bool = False,
        share: bool = True,
    ) -> JobId:
        """Take rows in the clear, or find the job under its key; returns when it is under way.

        Unless told to `insist`, no batch is begun while too few teachers are there to release it.
        """
        page = PageRows(
            task_id=self.task.task_id,
            secret=await self._runner.ask(Aggregator.derive_secret, f"rows of {querier}"),
            rows=encode_rows(rows, self.task.columns),
        )
        _require_few(len(page.rows))
        identifier = job_id(querier, key)
        async with self._turn:  # counting and charging belong together
            job = await self._find(identifier) or await self._new_of_page(
                identifier, querier, page, fresh=fresh, insist=insist
            )
        _require_same(job.row_digests, page.digests)
        if not await self._places.has_begun(job):
            sealed = await asyncio.to_thread(page.seal, self.task, identifier, job)
            await self._start(identifier, job, sealed, insist=insist, share=share)
        return identifier

    async def submit_sealed(
        self,
        querier: str,
        query_ids: bytes,
        sealed: SealedQueries | None,
        *,
        key: str,
        insist: bool = False,
        share: bool = True,
    ) -> JobId:
        """Take rows that the querier sealed: the ids of all, and those that are new."""
        _require_few(len(split_query_ids(query_ids)))
        require_query_ids(query_ids)
        identifier = job_id(querier, key)
        async with self._turn:
            job = await self._find(identifier) or await self._new_of_sealed(
                identifier, querier, query_ids, sealed, insist=insist
            )
        _require_same(job.query_ids + job.row_digests, query_ids)
        if not await self._places.has_begun(job):
            if sealed is None or sealed.batch_id != job.batch:
                raise JobChanged(
                    "this key belongs to a job with other new rows", hint="choose a new key"
                )
            await self._start(identifier, job, sealed, insist=insist, share=share)
        return identifier

    async def are_released(self, querier: str, query_ids: bytes) -> list[bool]:
        """Which queries were released before, so that they cost nothing."""
        asked = split_query_ids(query_ids)
        await self._hear_of_ends(querier)
        known = await self._known(asked)
        return [each in known for each in asked]

    async def state(self, querier: str, identifier: JobId) -> BatchState:
        """How far a job of this querier is."""
        job = await self._own(querier, identifier)
        state = BatchState(
            id=identifier.hex(), stage=Stage.VOTES, rows=len(job.positions), charged=job.charged
        )
        if not job.charged:
            return state.model_copy(update={"stage": Stage.RELEASED})
        batch = (await self._places.of(job)).batch
        state = state.model_copy(update={"batch": batch.hex()})
        under_way = await self._runner.ask(Aggregator.status, batch)
        if under_way is not None:
            counted = {
                "stage": under_way.stage,
                "ballots": len(under_way.voters),
                "endorsements": len(under_way.endorsers),
                "answers": len(under_way.answerers),
            }
            return state.model_copy(update=counted)
        return await asyncio.to_thread(self._state_from_store, job, batch, state)

    async def answers(self, querier: str, identifier: JobId) -> tuple[Release, ...]:
        """The answer to each row; raises while there is none, and if there will be none."""
        job = await self._own(querier, identifier)
        new: tuple[Release, ...] = ()
        if job.charged:
            place = await self._places.of(job)
            new = (await self._read_answers(place.batch))[place.first :]
        places = list(zip(job.rows, job.positions, strict=True))
        old = [query_id for query_id, position in places if position == KNOWN]
        known = await self._known(old)
        if len(known) < len(set(old)):  # released by another aggregator, and not heard of here
            await self._runner.ask(Aggregator.unfinished)
            known = await self._known(old)
        return tuple(
            known[query_id] if position == KNOWN else new[position] for query_id, position in places
        )

    async def receipt(self, querier: str, identifier: JobId) -> bytes:
        """The receipt of the batch of this job, as it is in the store."""
        return await self._released(await self._own_batch(querier, identifier))

    async def transcript(self, querier: str, identifier: JobId) -> bytes:
        """The transcript of the batch of this job: its receipt, and all ballots."""
        batch = await self._own_batch(querier, identifier)
        await self._released(batch)
        transcript = await asyncio.to_thread(self._stored.transcript, batch)
        assert transcript is not None, "a batch with a receipt has a list"
        return transcript.to_bytes()

    async def charged(self, querier: str | None = None) -> int:
        """Queries spent by a querier, or by all."""
        await self._catch_up()
        return sum(self._charged.values()) if querier is None else self._charged[querier]

    async def recent(self, querier: str, limit: int) -> list[JobId]:
        """The last jobs of a querier, the newest first."""
        await self._catch_up()
        return list(reversed(self._recent[querier]))[:limit]

    async def owners_of(self, batch: BatchId) -> Collection[str]:
        """The queriers whose job a batch is, also if another gateway took the job."""
        if not self._places.owners_of(batch):
            await self._catch_up()
            await self._places.place_all()
        return self._places.owners_of(batch)

    async def left(self, querier: str) -> int:
        """Queries that this querier may still spend."""
        of_task = self.task.queries - await self.charged()
        return min(of_task, self._allowances[querier] - self._charged[querier])

    async def _new_of_page(
        self, identifier: JobId, querier: str, page: PageRows, *, fresh: bool, insist: bool
    ) -> Job:
        await self._hear_of_ends(querier)
        digests = page.digests
        known = {} if fresh else await self._released_rows(split_query_ids(digests))
        query_ids = page.query_ids(identifier, known)
        released = set(known.values())
        asked = split_query_ids(query_ids)
        new = tuple(dict.fromkeys(each for each in asked if each not in released))
        rows = dict(zip(split_query_ids(query_ids), page.rows, strict=True))
        sealed_bytes = rows_bytes([rows[each] for each in new])
        self._require_carriable(len(new), sealed_bytes)
        await self._require_teachers(len(new), insist=insist)
        return await self._put(
            identifier, querier, query_ids, new, sealed_bytes=sealed_bytes, row_digests=digests
        )

    async def _new_of_sealed(
        self,
        identifier: JobId,
        querier: str,
        query_ids: bytes,
        sealed: SealedQueries | None,
        *,
        insist: bool,
    ) -> Job:
        await self._hear_of_ends(querier)
        asked = set(split_query_ids(query_ids))
        new = () if sealed is None else split_query_ids(sealed.query_ids)
        if sealed is not None:
            self._require_ours(sealed)
        known = await self._known(tuple(asked))
        if asked - known.keys() != set(new):
            raise InputError(
                "the sealed rows are not those of these query ids that are new",
                hint="ask which were released before, and seal the others",
            )
        sealed_bytes = 0 if sealed is None else len(sealed.sealed)
        self._require_carriable(len(new), sealed_bytes)
        await self._require_teachers(len(new), insist=insist)
        return await self._put(identifier, querier, query_ids, new, sealed_bytes=sealed_bytes)

    async def _put(
        self,
        identifier: JobId,
        querier: str,
        query_ids: bytes,
        new: Sequence[bytes],
        *,
        sealed_bytes: int,
        row_digests: bytes = b"",
    ) -> Job:
        """Store a job, if its querier may spend that; another gateway may have been first."""
        await self._require_allowed(querier, len(new))
        places = {each: position for position, each in enumerate(new)}
        job = Job(
            querier=querier,
            query_ids=query_ids,
            positions=tuple(places.get(each, KNOWN) for each in split_query_ids(query_ids)),
            row_digests=row_digests,
            deadline=int(self._clock()) + self._patience_for(len(new), sealed_bytes),
            batch=batch_id(self.task.task_id, b"".join(new)),
        )
        stored = await asyncio.to_thread(self._store.put_once, identifier, Kind.JOB, encode(job))
        job = decode(stored, Job)
        self._places.note_job(job)  # before its batch starts and is told of
        return job

    def _patience_for(self, queries: int, sealed_bytes: int) -> int:
        """Seconds until a batch is given up: more for one that takes long on a slow line."""
        task = self.task
        of_each = sealed_bytes + task.list_bytes(queries) + task.answer_bytes(queries)
        return self._deadline_seconds + slow_seconds(of_each)

    async def _start(
        self, identifier: JobId, job: Job, sealed: SealedQueries, *, insist: bool, share: bool
    ) -> None:
        if self._clock() <= job.deadline:
            await self._require_teachers(job.charged, insist=insist)
            request = BatchRequest(deadline=job.deadline, queries=sealed)
            is_shared = share and job.charged == 1 and job.querier not in self._apart
            await (self._gatherer.send(request) if is_shared else self._dispatch(request))
            batch = (await self._places.of(job)).batch
            extra = {"batch": batch.hex(), "job": identifier.hex(), "querier": job.querier}
            log.info("batch asked for", extra={**extra, "queries": job.charged})

    async def _released_rows(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """The ids under which rows from the page were released before, by their digests."""
        ids = {each: split_query_ids(self._ids_of_row.get(each, b"")) for each in digests}
        known = await self._known([each for found in ids.values() for each in found])
        return {digest: each for digest, found in ids.items() for each in found if each in known}

    async def _hear_of_ends(self, querier: str) -> None:
        """Another aggregator may have released what this querier asked for."""
        await self._catch_up()
        await self._places.place_all()
        under_way = self._places.open[querier]
        under_way -= await self._runner.ask(Aggregator.ended_among, tuple(under_way))

    async def _known(self, query_ids: Sequence[bytes]) -> dict[bytes, Release]:
        """What was released before of these, as far as it was heard of here."""
        return await self._runner.ask(_known_among, query_ids)

    def _require_ours(self, sealed: SealedQueries) -> None:
        if sealed.task_id != self.task.task_id:
            raise InputError(
                "these rows are sealed for another task",
                hint="fetch the terms from /api/task/terms",
            )
        require_for_all(self.task, sealed)

    def _require_carriable(self, queries: int, of_rows: int) -> None:
        """Before anything is charged: a list that cannot be sent would abort the batch."""
        task = self.task
        of_all = task.answer_bytes(queries) * task.trust.teachers
        longest = max(task.list_bytes(queries), of_rows + _MORE_REQUEST_BYTES)
        if queries and longest > frames.MOST_BYTES:
            raise TooManyRows(
                f"{queries:,} new rows would make messages of {longest:,} bytes, and "
                f"{frames.MOST_BYTES:,} can be sent",
                hint="send fewer rows at once",
            )
        if queries and of_all > BallotList.SIZE_LIMIT:
            raise TooManyRows(
                f"the ballots on {queries:,} new rows would be {of_all:,} bytes, and "
                f"{BallotList.SIZE_LIMIT:,} can be kept",
                hint="send fewer rows at once",
            )

    async def _require_teachers(self, queries: int, *, insist: bool) -> None:
        """Before anything is charged, here or by a teacher: could this be released at all?"""
        if queries and not insist:
            await self._runner.require_teachers()

    async def _require_allowed(self, querier: str, wanted: int) -> None:
        left = await self.left(querier)
        if wanted > left:
            raise AllowanceExceeded(
                f"{wanted:,} new queries were asked for and {max(left, 0):,} are left for "
                f"{querier}",
                hint="ask for fewer, or for rows that were released before",
            )

    def _state_from_store(self, job: Job, batch: BatchId, state: BatchState) -> BatchState:
        """Of a batch that ended, that another aggregator runs, or that nobody has started."""
        found = self._stored.receipt_or_abort(batch)
        if isinstance(found, Abort):
            return state.model_copy(update={"stage": Stage.ABORTED, **asdict(found)})
        if found is not None:
            return state.model_copy(update={"stage": Stage.RELEASED})
        if self._stored.has_list(batch):
            return state.model_copy(update={"stage": Stage.ENDORSEMENTS})
        if not self._stored.has_request(batch) and self._clock() > job.deadline:
            reason = "it was not started before its deadline; nothing was charged by any teacher"
            return state.model_copy(update={"stage": Stage.ABORTED, "reason": reason})
        return state

    async def _released(self, batch: BatchId) -> bytes:
        """The receipt as it is in the store."""
        found = await asyncio.to_thread(self._stored.receipt_or_abort, batch)
        if found is None:
            raise NotReleased(
                "this job is still under way", hint="ask for its status, and again later"
            )
        if isinstance(found, Abort):
            raise BatchAborted(found.reason, missing=found.missing, culprits=found.culprits)
        return found

    async def _read_answers(self, batch: BatchId) -> tuple[Release, ...]:
        """One receipt at a time, and not in the aggregator's thread, where batches wait."""
        async with self._reading:
            if batch not in self._read:
                stored = await self._released(batch)
                receipt = await asyncio.to_thread(decode, stored, Receipt)
                await self._runner.ask(Aggregator.learn, receipt)
                self._read[batch] = receipt.answers
                if len(self._read) > _MOST_READ:
                    self._read.popitem(last=False)
            return self._read[batch]

    async def _own(self, querier: str, identifier: JobId) -> Job:
        job = await self._find(identifier)
        if job is None or job.querier != querier:
            raise JobUnknown(
                "there is no such job of yours", hint="look at its id, and at your token"
            )
        return job

    async def _own_batch(self, querier: str, identifier: JobId) -> BatchId:
        job = await self._own(querier, identifier)
        if not job.charged:
            raise NotReleased("all rows of this job were released before, so it has no batch")
        return (await self._places.of(job)).batch

    def _note_rows(self, job: Job) -> None:
        """Under which ids rows from the page were asked about."""
        digests = split_query_ids(job.row_digests)
        for digest, query_id, position in zip(digests, job.rows, job.positions, strict=False):
            ids = self._ids_of_row.get(digest, b"")
            if position != KNOWN and not ids.endswith(query_id):
                self._ids_of_row[digest] = ids + query_id

    async def _find(self, identifier: JobId) -> Job | None:
        stored = await asyncio.to_thread(self._store.get, identifier, Kind.JOB)
        return None if stored is None else decode(stored, Job)

    async def _catch_up(self) -> None:
        """Count the jobs that were stored since last time, by whatever gateway.

        One that was slow to commit appears among those that were counted, so look back a little.
        """
        async with self._counting:
            start = max(0, max(self._counted, default=0) - _LOOK_BACK)
            for position, key in await asyncio.to_thread(self._store.put_since, Kind.JOB, start):
                if position in self._counted:
                    continue
                job = await self._find(JobId(key))
                assert job is not None, "it was put"
                self._charged[job.querier] += job.charged
                self._recent[job.querier].append(JobId(key))
                self._places.note_job(job)
                await self._places.of(job)
                self._note_rows(job)
                self._counted.add(position)
            self._counted = {each for each in self._counted if each >= start}


def _known_among(aggregator: Aggregator, query_ids: Sequence[bytes]) -> dict[bytes, Release]:
    """What was released before of these queries."""
    found = {each: aggregator.known_release(each) for each in query_ids}
    return {each: answer for each, answer in found.items() if answer is not None}


def _require_few(rows: int) -> None:
    if rows > MOST_QUERIES:
        raise TooManyRows(f"{rows:,} rows; a job has {MOST_QUERIES:,} at most", hint="split it")


def _require_same(before: bytes, now: bytes) -> None:
    if before != now:
        raise JobChanged("this key belongs to a job with other rows", hint="choose a new key")
