"""A gateway over a federation in this process: no broker, the same protocol, the same HTTP."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI

from dppp.federation import Parties
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import BatchStore
from dppp.service.batches.hub import EventHub
from dppp.service.batches.runner import BatchRunner
from dppp.service.gateway.application import make_gateway
from dppp.service.gateway.embedded_channel import EmbeddedChannel
from dppp.service.gateway.jobs import Jobs
from dppp.service.gateway.queriers import Querier


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The application to serve, and the channel on which teachers can be made silent."""

    app: FastAPI
    channel: EmbeddedChannel
    runner: BatchRunner


def embed_gateway(
    parties: Parties,
    *,
    store: BatchStore,
    queriers: Sequence[Querier],
    most_rows: int = 20_000,
    deadline_seconds: int = 600,
    page: bool = False,
    examples: Sequence[Sequence[float]] = (),
    insecure_testing: bool = False,
) -> Embedded:
    """A gateway for a federation made in this process."""
    channel = EmbeddedChannel(parties.teachers)
    runner = BatchRunner(
        aggregator=Aggregator(
            task=parties.task,
            public=parties.key.public,
            signer=parties.aggregator_signer,
            store=store,
        ),
        channel=channel,
        hub=EventHub(),
    )
    channel.answer_to(runner.take, runner.hear)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        signs = asyncio.create_task(channel.give_signs_of_life())
        async with runner:
            await runner.resume()
            yield
        signs.cancel()
        await asyncio.gather(signs, return_exceptions=True)
        await channel.close()

    jobs = Jobs(
        runner=runner,
        store=store,
        allowances={querier.name: querier.queries for querier in queriers},
        deadline_seconds=deadline_seconds,
    )
    app = make_gateway(
        runner=runner,
        jobs=jobs,
        queriers=queriers,
        most_rows=most_rows,
        page=page,
        examples=examples,
        insecure_testing=insecure_testing,
        lifespan=lifespan,
    )
    return Embedded(app=app, channel=channel, runner=runner)
