"""`dppp teacher run`: a teacher's process, from its configuration to a graceful stop.

Used by the command, by benchmarks with many teachers, and by examples/flower.
"""

import asyncio
import gc
import logging
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from dppp.errors import FederationError
from dppp.paillier.blinding import BlindingTable
from dppp.paillier.blinding_pool import BlindingPool
from dppp.protocol.cryptosystem import TeacherKeys
from dppp.protocol.signing import signer_of
from dppp.protocol.teacher import Teacher
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyTeacher:
    """A teacher with its ledger, keys and models open, and what its operator can watch of it."""

    config: TeacherConfig
    federation: FederationFile
    teacher: Teacher
    metrics: TeacherMetrics
    models: ModelWatch


def run_teachers(configs: Sequence[TeacherConfig], *, allow_pickle: bool = False) -> None:
    """Run until SIGTERM or SIGINT; what is in work then is finished and stored.

    An organisation runs one teacher. A benchmark runs several in one process, which saves memory:
    each has its own keys, ledger and connection all the same.
    """
    with ExitStack() as stack:
        opened = (open_teacher(each, allow_pickle=allow_pickle) for each in configs)
        asyncio.run(_serve_all([stack.enter_context(each) for each in opened]))


@contextmanager
def open_teacher(config: TeacherConfig, *, allow_pickle: bool = False) -> Iterator[ReadyTeacher]:
    """The teacher of a configuration, ready to answer: from its home, model, ledger and secrets."""
    home = Home(folder=config.home)
    name = home.request().name
    federation = read_federation(config.federation, read_hash(config.federation_hash))
    task, index = federation.task, federation.index_of(name)
    metrics = TeacherMetrics(KINDS, task.queries)
    watch = ModelWatch(metrics.model_failures.inc)
    models = load_models(config, task, index, watch=watch, allow_pickle=allow_pickle)
    with (
        open_ledger(config.ledger.location, teacher=name, head_path=config.ledger.head) as ledger,
        _keys(config, home, federation) as keys,
    ):
        accepted = [each.task_id for data in ledger.summary().data for each in data.tasks]
        if task.task_id not in accepted:
            raise FederationError(
                "the ledger has not accepted this task",
                hint="look at its terms with `dppp federation`, then run `dppp teacher accept`",
            )
        teacher = Teacher(
            index=index,
            task=task,
            keys=keys,
            signer=signer_of(home.signing_key()),
            row_key=home.sealing_key(),
            ledger=ledger,
            predict=models,
            note=watch.note,
        )
        yield ReadyTeacher(
            config=config, federation=federation, teacher=teacher, metrics=metrics, models=watch
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


async def _serve_all(ready: Sequence[ReadyTeacher]) -> None:
    stop = stop_event()
    gc.collect()
    gc.freeze()  # libraries and models stay: looking through them again costs a batch a second
    await asyncio.gather(*(_serve(each, stop) for each in ready))


async def _serve(ready: ReadyTeacher, stop: asyncio.Event) -> None:
    config, teacher, metrics = ready.config, ready.teacher, ready.metrics
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
        subjects=Subjects(ready.federation.subject_prefix),
        metrics=metrics,
    )
    checks = {"teacher": lambda: station.is_healthy, "model": lambda: ready.models.is_well}
    monitor = make_monitor(metrics.registry, checks)
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
