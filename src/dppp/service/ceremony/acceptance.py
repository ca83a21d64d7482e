"""`dppp teacher accept`: a teacher agrees to the task, and its ledger reserves all its queries.

Doing it again changes nothing. A ledger is made only where neither it nor its head file is: one
that is missing beside a head file was lost, and a new one would forget what was spent. Data that
the ledger does not know, or a new ledger, needs the operator's word that the data was never used.
"""

from dataclasses import dataclass
from pathlib import Path

from dppp.errors import (
    BudgetExceeded,
    ChangeNotSigned,
    FirstUseUnsaid,
    InputError,
    NoColluders,
)
from dppp.privacy.ledger.agreement import AgreedTask, Agreement
from dppp.privacy.ledger.budget import Budget
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.summary import DataSummary
from dppp.protocol.task import Task
from dppp.service.ceremony.change import CHANGE, Change, read_change
from dppp.service.ceremony.federation_file import (
    FederationFile,
    read_federation,
    read_hash,
    require_hash,
)
from dppp.service.ceremony.home import Home
from dppp.service.process.config import TeacherConfig
from dppp.service.stores.ledgers import create_ledger, has_ledger, open_ledger
from dppp.service.stores.locations import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What was accepted, and what the ledger says of the data now."""

    teacher: str
    index: int
    federation: FederationFile
    data: DataSummary
    is_new_ledger: bool


def accept_task(
    config: TeacherConfig,
    *,
    accept_no_colluders: bool = False,
    is_first_use: bool = False,
    insecure_testing: bool = False,
) -> Acceptance:
    """Fix the cap of the data and reserve the task under it.

    The operator says by `accept_no_colluders` that a task with C = 0 will do, and by `is_first_use`
    that no ledger ever counted this data.
    """
    federation = read_federation(
        config.federation, read_hash(config.federation_hash), insecure_testing=insecure_testing
    )
    task, name = federation.task, Home(folder=config.home).request().name
    index = federation.index_of(name)
    if config.data.id != task.data_id:
        raise InputError(
            f"the task is on the data {task.data_id!r}, and the configuration has "
            f"{config.data.id!r}",
            hint="if that is the same data, correct data.id, else refuse the task",
        )
    _require_colluders(federation, accept_no_colluders=accept_no_colluders)
    _require_within_cap(federation, config)
    location, head = config.ledger.location, config.ledger.head
    is_new = not head.exists() and not has_ledger(location)
    change = _change_of(config, federation)
    if is_new and change is not None:
        _require_newcomer(change, name)
    if is_new:
        _require_first_use(location, is_first_use=is_first_use)
        create_ledger(location, teacher=name, head_path=head)
    with open_ledger(location, teacher=name, head_path=head) as ledger:
        if change is not None and task.data_id not in _known(ledger):
            _require_newcomer(change, name)
        _require_known(ledger, location, task.data_id, is_first_use=is_first_use)
        ledger.fix_cap(task.data_id, epsilon=config.data.epsilon, delta=config.data.delta)
        _reserve(ledger, task)
        summary = ledger.summary()
    (data,) = (each for each in summary.data if each.data_id == task.data_id)
    return Acceptance(
        teacher=name, index=index, federation=federation, data=data, is_new_ledger=is_new
    )


def _reserve(ledger: Ledger, task: Task) -> None:
    """The whole price; of a task that another is to succeed, nothing but what is left of it."""
    tasks = [each.task_id for data in ledger.summary().data for each in data.tasks]
    if task.succeeds is None or task.succeeds not in tasks:
        ledger.accept(task.data_id, Agreement.on_one(task.certificate, task_id=task.task_id))
        return
    successor = AgreedTask.certified_by(task.certificate, task_id=task.task_id)
    ledger.succeed(task.succeeds, successor)


def _change_of(config: TeacherConfig, federation: FederationFile) -> Change | None:
    """The change that brought this federation, signed by t teachers of the old one."""
    if federation.task.succeeds is None:
        return None
    path = config.home / CHANGE
    if not path.exists():
        raise ChangeNotSigned(
            "this task takes the place of another, and the change that its teachers signed is not "
            f"in {config.home}",
            hint="set the home up with `dppp change install`",
        )
    change = read_change(path)
    require_hash(change.new, federation.hash)
    change.require_signed()
    return change


def _require_newcomer(change: Change, name: str) -> None:
    """One who was there before has a ledger that knows the data, and may not begin another."""
    if name in [each.name for each in change.old.teachers]:
        raise FirstUseUnsaid(
            f"{name} was a teacher of the task before this one, and the ledger of [ledger] does "
            "not know the data",
            hint=(
                "set path and head under [ledger] in teacher.toml to the ledger that counted the "
                "old task; if that is lost, this data must not be used again"
            ),
        )


def _known(ledger: Ledger) -> list[str]:
    return [data.data_id for data in ledger.summary().data]


def _require_colluders(federation: FederationFile, *, accept_no_colluders: bool) -> None:
    if federation.task.colluders == 0 and not accept_no_colluders:
        raise NoColluders(
            "the task counts on no colluders: a teacher who also runs the aggregator, or reads "
            "along with it, knows its own noise, and the promise does not hold against it",
            hint=(
                "have the task made with --colluders 1 or more, or, if the promise need not hold "
                "against any teacher, say --accept-no-colluders"
            ),
        )


def _require_first_use(location: Location, *, is_first_use: bool) -> None:
    if not is_first_use:
        raise FirstUseUnsaid(
            f"there is no ledger {_where(location)} yet, and a new one begins with nothing spent",
            hint=(
                "if this data was used in another federation, set path and head under [ledger] "
                "in teacher.toml to that ledger; if it never was, say --first-use-of-this-data"
            ),
        )


def _require_known(ledger: Ledger, location: Location, data_id: str, *, is_first_use: bool) -> None:
    """A name that the ledger does not know gets a cap of its own: it must be other data."""
    known = _known(ledger)
    if data_id in known or is_first_use:
        return
    names = ", ".join(map(repr, known)) or "none yet"
    raise FirstUseUnsaid(
        f"the ledger {_where(location)} does not know the data {data_id!r}, which would get a cap "
        f"of its own (the data it knows: {names})",
        hint=(
            "if yours is one of these, have the task made with that data id; if it is counted in "
            "another ledger, set path and head under [ledger] in teacher.toml to that one; if it "
            "was never used, say --first-use-of-this-data"
        ),
    )


def _where(location: Location) -> str:
    """A url holds a password."""
    return f"at {location}" if isinstance(location, Path) else "in the database of [ledger]"


def _require_within_cap(federation: FederationFile, config: TeacherConfig) -> None:
    """Before a cap is fixed for good that not even this task would fit."""
    price = Budget.cost(epsilon=federation.task.epsilon, delta=federation.task.delta)
    cap = Budget.cap(epsilon=config.data.epsilon, delta=config.data.delta)
    if not price.fits_within(cap):
        raise BudgetExceeded(
            f"the task costs {price}, and the configuration allows {cap} for this data over all "
            "tasks",
            hint="refuse the task, or raise the cap in [data] if it was never fixed",
        )
