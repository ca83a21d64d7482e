"""What only some have: a teacher's ledger and model, a store, and the way to the broker."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from dppp.errors import LedgerRolledBack
from dppp.service.broker.connection import BrokerAccess, reach_broker
from dppp.service.doctor.finding import Finding, failed, good, skipped, warning
from dppp.service.doctor.home_checks import Patient, check_disk
from dppp.service.process.config import AggregatorConfig, ChatModel, PickleModel, TeacherConfig
from dppp.service.process.metrics import DEFAULT_DEADLINE_SECONDS
from dppp.service.stores.batches import open_batch_store
from dppp.service.stores.epoch_secrets import check_epoch_secrets
from dppp.service.stores.head_file import HeadFile
from dppp.service.stores.ledgers import inspect_ledger
from dppp.service.teacher.models.configured import load_models
from dppp.service.teacher.models.watching import ModelWatch


def check_broker(patient: Patient) -> Iterator[Finding]:
    """Dial it as this party does, with its certificate and its nkey, and hang up again."""
    assert patient.config is not None, "a broker does not dial itself"
    access = BrokerAccess(
        servers=tuple(patient.config.broker.servers),
        tls=patient.home.tls_context(),
        nats_seed=patient.home.nats_seed(),
        name="doctor",
    )
    reason = asyncio.run(reach_broker(access))
    where = ", ".join(access.servers)
    if reason is None:
        yield good("broker", f"{where} lets this home in")
    else:
        yield failed("broker", f"{where}: {reason}", "look up `broker error` in docs/operations.md")


def check_server(patient: Patient) -> Iterator[Finding]:
    """The broker's own configuration, by the server itself."""
    program = shutil.which(
        "nats-server", path=f"/usr/sbin:/usr/local/sbin:{os.environ.get('PATH', '')}"
    )
    if program is None:
        yield skipped("server", "there is no nats-server here", "apt-get install nats-server")
        return
    done = subprocess.run(  # noqa: S603 - the server that runs this file anyway
        [program, "-c", str(patient.path), "-t"], capture_output=True, text=True, check=False
    )
    said = " ".join((done.stderr or done.stdout).split())
    if done.returncode:
        yield failed("server", said[-300:], "run `dppp setup` again in a home with these keys")
    else:
        yield good("server", f"{program} finds {patient.path} valid")


def check_ledger(patient: Patient) -> Iterator[Finding]:
    """Every entry, the head, and whether this task was accepted."""
    config = patient.config
    assert isinstance(config, TeacherConfig), "only a teacher has a ledger"
    remembered = HeadFile(config.ledger.head).recall()
    with inspect_ledger(config.ledger.location) as (ledger, store):
        store.check_file()
        head = ledger.check()
        if remembered is None:
            raise LedgerRolledBack(
                f"there is no head file {config.ledger.head}",
                hint="find it, or compare the head with your peers and `dppp ledger remember`",
            )
        ledger.require_contains(remembered)
        tasks = [task for data in ledger.summary().data for task in data.tasks]
    yield good("ledger", f"{head.index + 1:,} entries as written, the remembered head among them")
    location, head_file = config.ledger.location, config.ledger.head
    if head_file.stat().st_mode & 0o022:
        yield failed(
            "ledger",
            f"others can write {head_file}, and make a ledger that was put back look new",
            f"compare the head with your peers, and run: chmod 600 {head_file}",
        )
    if isinstance(location, Path):
        if location.stat().st_dev == head_file.stat().st_dev:
            yield warning(
                "ledger",
                "ledger and head file are on one disk, which may be put back as a whole",
                "move the head file to another disk",
            )
        yield from check_disk("ledger", location.parent)
    yield from check_disk("head", head_file.parent)
    own = [task for task in tasks if task.task_id == patient.federation.task.task_id]
    if not own:
        yield failed("task", "it was not accepted yet", "dppp teacher accept")
    elif own[0].successor_id is not None:
        successor = own[0].successor_id.hex()[:16]
        yield warning("task", f"task {successor}… has taken its place", "run the new home")
    elif not own[0].left:
        yield warning("task", "all its queries are used up", "agree on a new task")
    else:
        yield good("task", f"{own[0].left:,} of {own[0].queries:,} queries are left")


def check_secrets(patient: Patient) -> Iterator[Finding]:
    """Under masks: the file with the secrets of epochs can be used."""
    config = patient.config
    assert isinstance(config, TeacherConfig), "only a teacher has secrets of epochs"
    if patient.federation.task.masks is None:
        return
    path = config.epoch_secrets
    if not path.exists():
        yield good("secrets", "there are none yet: the next start makes them")
        return
    check_epoch_secrets(path)
    yield good("secrets", "the secrets of epochs can be read")


def check_model(patient: Patient) -> Iterator[Finding]:
    """Ask each model about one made-up row of the task; nothing is charged and nothing sent."""
    config, federation = patient.config, patient.federation
    assert isinstance(config, TeacherConfig), "only a teacher has a model"
    if isinstance(config.model, PickleModel):
        yield skipped("model", "a pickle is not opened here", "use another kind of model")
        return
    task = federation.task
    index = federation.index_of(patient.home.request().name)
    models = load_models(config, task, index, watch=ModelWatch(lambda: None), allow_pickle=False)
    if isinstance(config.model, ChatModel):
        yield skipped("model", "a language model is not asked here", "look at its server")
        seconds = len(models) * config.model.vote_seconds
        if seconds >= DEFAULT_DEADLINE_SECONDS:
            yield warning(
                "model",
                f"{len(models)} votes of vote_seconds = {config.model.vote_seconds:g} may take "
                f"{seconds:g} seconds of a batch, whose usual deadline is "
                f"{DEFAULT_DEADLINE_SECONDS}; a ballot that is late shows that records made it so",
                "lower vote_seconds, or know that the aggregator's deadline_seconds is longer",
            )
        return
    yield good("model", f"{len(models)} answered made-up rows of the task")


def check_store(patient: Patient) -> Iterator[Finding]:
    """The aggregator's store opens, and belongs to this task."""
    config = patient.config
    assert isinstance(config, AggregatorConfig), "only an aggregator has a store"
    location = config.store.location
    if isinstance(location, Path):
        yield from check_disk("store", location.parent)
        if not location.exists():
            yield good("store", "there is none yet: the first start makes it")
            return
    with open_batch_store(location):
        yield good("store", "it opens")
    if not config.queriers:
        yield warning("queriers", "nobody may ask", "dppp aggregator token")
