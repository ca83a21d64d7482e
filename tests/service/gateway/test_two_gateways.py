"""Two gateways on one store, as two aggregator processes have it."""

import asyncio

import pytest
from tests.postgres import shared_server
from tests.protocol.small import rows, small
from tests.small_federation import SmallFederation

from dppp.errors import AllowanceExceeded, JobUnknown
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import Kind, MemoryBatchStore
from dppp.protocol.messages import BatchId
from dppp.protocol.release import Release
from dppp.protocol.wire import encode
from dppp.service.batches.hub import EventHub
from dppp.service.batches.runner import BatchRunner
from dppp.service.gateway.embedded import EmbeddedChannel
from dppp.service.gateway.job import Job, JobId
from dppp.service.gateway.jobs import Jobs
from dppp.service.stores.postgres.batches import DEFAULT_SCHEMA, PostgresBatchStore
from dppp.service.stores.postgres.connection import read_url


class Pair:
    """Two processes' worth of gateway over the same teachers and store."""

    def __init__(self, parties: SmallFederation, allowance: int = 10_000) -> None:
        store = MemoryBatchStore()
        self.channels = [EmbeddedChannel(parties.teachers) for _ in range(2)]
        self.runners = [
            BatchRunner(
                aggregator=Aggregator(
                    task=parties.task,
                    public=parties.key.public,
                    signer=parties.aggregator_signer,
                    store=store,
                ),
                channel=channel,
                hub=EventHub(),
            )
            for channel in self.channels
        ]
        for channel, runner in zip(self.channels, self.runners, strict=True):
            channel.answer_to(runner.take, runner.hear)
        self.jobs = [
            Jobs(runner=runner, store=store, allowances={"a": allowance, "b": allowance})
            for runner in self.runners
        ]

    async def __aenter__(self) -> "Pair":
        for runner in self.runners:
            await runner.__aenter__()
            for teacher in runner.teachers:
                runner.hear(teacher)
        return self

    async def __aexit__(self, *_: object) -> None:
        for runner in self.runners:
            await runner.__aexit__()
        for channel in self.channels:
            await channel.close()


async def finish(jobs: Jobs, job: JobId) -> tuple[Release, ...]:
    for _ in range(600):
        if (await jobs.state("a", job)).stage.is_last:
            return await jobs.answers("a", job)
        await asyncio.sleep(0.05)
    raise AssertionError("the job did not end")


def test_what_one_released_the_other_can_tell_also_from_jobs_that_were_free() -> None:
    async def story() -> None:
        async with Pair(small()) as pair:
            first, second = pair.jobs
            new = await first.submit("a", rows(1, 2), key="new", fresh=False)
            answers = await finish(first, new)
            free = await first.submit("a", rows(1, 2)[::-1], key="free", fresh=False)
            assert await second.answers("a", new) == answers
            assert await second.answers("a", free) == answers[::-1]

    asyncio.run(story())


def test_a_free_job_is_told_by_a_gateway_that_never_heard_of_the_release() -> None:
    async def story() -> None:
        async with Pair(small()) as pair:
            first, second = pair.jobs
            answers = await finish(first, await first.submit("a", rows(1), key="new", fresh=False))
            free = await first.submit("a", rows(1), key="free", fresh=False)
            assert await second.answers("a", free) == answers

    asyncio.run(story())


def test_both_count_together_and_keep_queriers_apart() -> None:
    async def story() -> None:
        async with Pair(small(), allowance=2) as pair:
            first, second = pair.jobs
            job = await first.submit("a", rows(1, 2), key="one", fresh=False)
            with pytest.raises(AllowanceExceeded):
                await second.submit("a", rows(0), key="two", fresh=False)
            with pytest.raises(JobUnknown):
                await second.state("b", job)
            await finish(first, job)

    asyncio.run(story())


def test_whose_batch_it_is_both_know_also_before_they_counted() -> None:
    async def story() -> None:
        async with Pair(small()) as pair:
            first, second = pair.jobs
            job = await first.submit("a", rows(1), key="one", fresh=False)
            shown = (await first.state("a", job)).batch
            assert shown is not None
            batch = BatchId(bytes.fromhex(shown))
            assert set(await first.owners_of(batch)) == set(await second.owners_of(batch)) == {"a"}
            await finish(first, job)
            free = await first.submit("a", rows(1), key="free", fresh=False)
            assert (await first.state("a", free)).batch is None
            assert set(await first.owners_of(batch)) == {"a"}
            assert not await second.owners_of(BatchId(bytes(32)))

    asyncio.run(story())


def test_a_job_that_another_gateway_was_slow_to_commit_is_counted_and_none_twice() -> None:
    """PostgreSQL numbers rows when they are put, and shows them when they are committed."""
    server = shared_server()
    url = server.fresh_url()
    store = PostgresBatchStore(url)
    parties = small()
    runner = BatchRunner(
        aggregator=Aggregator(
            task=parties.task,
            public=parties.key.public,
            signer=parties.aggregator_signer,
            store=store,
        ),
        channel=EmbeddedChannel(parties.teachers),
        hub=EventHub(),
    )
    jobs = Jobs(runner=runner, store=store, allowances={"a": 100, "b": 100})
    table = f"{read_url(url, default_schema=DEFAULT_SCHEMA).schema}.kept"

    async def story() -> None:
        with server.connect() as slow, slow.transaction():
            slow.execute(
                f"INSERT INTO {table} (key, kind, data) VALUES (%s, 'job', %s)",  # noqa: S608
                (bytes(32), encode(job_of("a", charged=7))),
            )
            store.put_once(b"\1" * 32, Kind.JOB, encode(job_of("b", charged=1)))
            assert (await jobs.charged("a"), await jobs.charged("b")) == (0, 1)
        assert (await jobs.charged("a"), await jobs.charged("b")) == (7, 1)

    asyncio.run(story())
    store.close()


def job_of(querier: str, *, charged: int) -> Job:
    return Job(
        querier=querier,
        query_ids=b"".join(place.to_bytes(32, "big") for place in range(charged)),
        positions=tuple(range(charged)),
        deadline=1,
        batch=BatchId(bytes(32)),
    )
