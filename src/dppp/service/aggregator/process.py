"""`dppp aggregator run`: an aggregator's process, from its configuration to a graceful stop."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import BatchStore, claim_store
from dppp.protocol.signing import signer_of
from dppp.service.aggregator.metrics import AggregatorMetrics
from dppp.service.aggregator.station import AggregatorStation
from dppp.service.batches.hub import EventHub
from dppp.service.batches.runner import BatchRunner
from dppp.service.batches.store_watch import StoreWatch, WatchedStore
from dppp.service.broker.connection import Broker, BrokerAccess, Subjects
from dppp.service.ceremony.federation_file import FederationFile, read_federation, read_hash
from dppp.service.ceremony.home import Home
from dppp.service.gateway.application import make_gateway
from dppp.service.gateway.graceful_server import GracefulServer
from dppp.service.gateway.jobs import Jobs
from dppp.service.gateway.queriers import Querier
from dppp.service.process.config import AggregatorConfig
from dppp.service.process.listening import listen
from dppp.service.process.monitoring import Monitor, make_monitor
from dppp.service.process.tls_certificate_watch import TlsCertificateWatch
from dppp.service.stores.batches import open_batch_store

log = logging.getLogger("dppp.aggregator")


def run_aggregator(config: AggregatorConfig) -> None:
    """Run until SIGTERM or SIGINT. A batch under way is gone on with after the next start."""
    federation = read_federation(config.federation, read_hash(config.federation_hash))
    hub = EventHub()
    with (
        open_batch_store(config.store.location) as store,
        listen(config.gateway.listen) as listening,
    ):
        claim_store(store, federation.task.task_id)
        watch = StoreWatch()
        server = GracefulServer(
            make_application(config, federation, WatchedStore(store, watch), hub, watch),
            hub,
            tls_certificate=config.gateway.tls_certificate,
            tls_key=config.gateway.tls_key,
        )
        server.run_until_stopped(listening)


def make_application(
    config: AggregatorConfig,
    federation: FederationFile,
    store: BatchStore,
    hub: EventHub,
    store_watch: StoreWatch,
) -> FastAPI:
    """The gateway with runner, broker and monitor, which live as long as it is served."""
    home = Home(folder=config.home)
    station = _make_station(config, home, federation, store)
    aggregator = Aggregator(
        task=federation.task,
        public=federation.public,
        signer=signer_of(home.signing_key()),
        store=store,
        patience=config.patience.to_patience(),
    )
    runner = BatchRunner(aggregator=aggregator, channel=station, hub=hub, store_watch=store_watch)
    station.carry_for(runner)
    queriers = [Querier(**querier.model_dump()) for querier in config.queriers]
    jobs = Jobs(
        runner=runner,
        store=store,
        allowances={querier.name: querier.queries for querier in queriers},
        dispatch=station.dispatch,
        deadline_seconds=config.deadline_seconds,
        gather_seconds=config.gateway.gather_milliseconds / 1_000,
        apart=[querier.name for querier in queriers if not querier.share],
    )
    metrics = AggregatorMetrics(runner, jobs, config.deadline_seconds)
    station.on_slow = metrics.note_slow
    watch = TlsCertificateWatch(home.tls_certificate(), log)
    watch.show_in(metrics.registry)
    checks = {
        "runner": lambda: runner.is_alive,
        "broker": lambda: station.is_healthy,
        "store": lambda: store_watch.is_usable,
    }
    monitor = Monitor(make_monitor(metrics.registry, checks), config.monitoring.listen)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with monitor, runner:
            await runner.ask(Aggregator.unfinished)  # what was released before is known again
            await metrics.count_left()
            loops = [asyncio.create_task(each) for each in (_run(station, metrics), watch.run())]
            yield
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            log.info("aggregator stopped")

    return make_gateway(
        runner=runner,
        jobs=jobs,
        queriers=queriers,
        most_rows=config.gateway.most_rows,
        page=config.gateway.page,
        lifespan=lifespan,
    )


def _make_station(
    config: AggregatorConfig, home: Home, federation: FederationFile, store: BatchStore
) -> AggregatorStation:
    """The aggregator's place on the broker, with the keys of its home."""
    access = BrokerAccess(
        servers=tuple(config.broker.servers),
        tls=home.tls_context(),
        nats_seed=home.nats_seed(),
        name="aggregator",
    )
    return AggregatorStation(
        broker=Broker(access), subjects=Subjects(federation.subject_prefix), store=store
    )


async def _run(station: AggregatorStation, metrics: AggregatorMetrics) -> None:
    """The gateway answers also while the broker is out of reach; its health says so."""
    async with station:
        log.info("aggregator ready", extra={"worker": station.worker})
        await metrics.count()
