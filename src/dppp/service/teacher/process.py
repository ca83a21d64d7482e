"""`dppp teacher run`: a teacher's process, from its configuration to a graceful stop."""

import asyncio
import logging
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dppp.errors import FederationError
from dppp.paillier.blinding import BlindingTable
from dppp.paillier.blinding_pool import BlindingPool
from dppp.protocol.cryptosystem import TeacherKeys
from dppp.protocol.signing import signer_of
from dppp.protocol.teacher import Teacher
from dppp.protocol.votes import Predict
from dppp.protocol.with_masks.teacher import MaskKeys
from dppp.protocol.with_paillier.teacher import PaillierKeys
from dppp.service.broker.connection import Broker, BrokerAccess, Subjects
from dppp.service.ceremony.federation_file import FederationFile, read_federation, read_hash
from dppp.service.ceremony.home import Home
from dppp.service.process.config import TeacherConfig
from dppp.service.process.monitoring import Monitor, make_monitor
from dppp.service.process.tls_certificate_watch import TlsCertificateWatch
from dppp.service.stores.epoch_secrets import open_epoch_secrets
from dppp.service.stores.ledgers import open_ledger
from dppp.service.teacher.metrics import TeacherMetrics
from dppp.service.teacher.models.configured import load_models
from dppp.service.teacher.models.watching import ModelWatch
from dppp.service.teacher.station import KINDS, TeacherStation

log = logging.getLogger("dppp.teacher")

_READY_BLINDINGS = 64


def run_teacher(config: TeacherConfig, *, allow_pickle: bool = False) -> None:
    """Run until SIGTERM or SIGINT; what is in work then is finished and stored."""
    home = Home(folder=config.home)
    federation = read_federation(config.federation, read_hash(config.federation_hash))
    index = federation.index_of(home.request().name)
    metrics = TeacherMetrics(KINDS, federation.task.queries)
    watch = ModelWatch(metrics.model_failures.inc)
    models = load_models(config, federation.task, index, watch=watch, allow_pickle=allow_pickle)
    with _teacher(config, home, federation, models, watch) as teacher:
        asyncio.run(_serve(config, federation, teacher, metrics, watch))


@contextmanager
def _teacher(
    config: TeacherConfig,
    home: Home,
    federation: FederationFile,
    models: Sequence[Predict],
    watch: ModelWatch,
) -> Iterator[Teacher]:
    name = home.request().name
    index = federation.index_of(name)
    with (
        open_ledger(config.ledger.location, teacher=name, head_path=config.ledger.head) as ledger,
        _keys(config, home, federation) as keys,
    ):
        accepted = [task.task_id for data in ledger.summary().data for task in data.tasks]
        if federation.task.task_id not in accepted:
            raise FederationError(
                "the ledger has not accepted this task",
                hint="look at its terms with `dppp federation`, then run `dppp teacher accept`",
            )
        yield Teacher(
            index=index,
            task=federation.task,
            keys=keys,
            signer=signer_of(home.signing_key()),
            row_key=home.sealing_key(),
            ledger=ledger,
            predict=models,
            note=watch.note,
        )


@contextmanager
def _keys(config: TeacherConfig, home: Home, federation: FederationFile) -> Iterator[TeacherKeys]:
    """What a teacher has of its cryptosystem, as long as it runs."""
    if federation.public is None:
        with open_epoch_secrets(config.epoch_secrets) as secrets:
            yield MaskKeys(secrets=secrets)
        return
    share = home.unsealed_share(federation)
    with BlindingPool(BlindingTable(federation.public), capacity=_READY_BLINDINGS) as pool:
        yield PaillierKeys(public=federation.public, key_share=share, draw_blinding=pool.take)


async def _serve(
    config: TeacherConfig,
    federation: FederationFile,
    teacher: Teacher,
    metrics: TeacherMetrics,
    models: ModelWatch,
) -> None:
    home = Home(folder=config.home)
    access = BrokerAccess(
        servers=tuple(config.broker.servers),
        tls=home.tls_context(),
        nats_seed=home.nats_seed(),
        name=f"teacher {teacher.index}",
    )
    metrics.queries_left.set(teacher.queries_left)
    watch = TlsCertificateWatch(home.tls_certificate(), log)
    watch.show_in(metrics.registry)
    station = TeacherStation(
        teacher=teacher,
        broker=Broker(access),
        subjects=Subjects(federation.subject_prefix),
        metrics=metrics,
    )
    checks = {"teacher": lambda: station.is_healthy, "model": lambda: models.is_well}
    monitor = make_monitor(metrics.registry, checks)
    stop = stop_event()
    async with Monitor(monitor, config.monitoring.listen):
        watching = asyncio.create_task(watch.run())
        running = asyncio.create_task(_run_until(station, stop))
        waiting = asyncio.create_task(stop.wait())
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not station.is_started:  # still looking for the broker
            running.cancel()
        await asyncio.gather(running, return_exceptions=not station.is_started)
        waiting.cancel()
        watching.cancel()


async def _run_until(station: TeacherStation, stop: asyncio.Event) -> None:
    async with station:
        await stop.wait()


def stop_event() -> asyncio.Event:
    """Set by SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
