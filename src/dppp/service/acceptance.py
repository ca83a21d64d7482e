"""`dppp teacher accept`: a teacher agrees to the task, and its ledger reserves all its queries.

Doing it again changes nothing. A ledger is made only where neither it nor its head file is: one
that is missing beside a head file was lost, and a new one would forget what was spent.
"""

from dataclasses import dataclass

from dppp.errors import BudgetExceeded, InputError
from dppp.privacy.ledger_agreement import Agreement
from dppp.privacy.ledger_budget import Budget
from dppp.privacy.ledger_summary import DataSummary
from dppp.service.config import TeacherConfig
from dppp.service.federation_file import FederationFile, read_federation, read_hash
from dppp.service.home import Home
from dppp.service.ledger_file import create_ledger, has_ledger, open_ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What was accepted, and what the ledger says of the data now."""

    teacher: str
    index: int
    federation: FederationFile
    data: DataSummary
    is_new_ledger: bool


def accept_task(config: TeacherConfig, *, insecure_testing: bool = False) -> Acceptance:
    """Fix the cap of the data and reserve the task under it."""
    federation = read_federation(
        config.federation, read_hash(config.federation_hash), insecure_testing=insecure_testing
    )
    task, name = federation.task, Home(folder=config.home).request().name
    index = federation.index_of(name)
    if config.data.id != task.data_id:
        raise InputError(
            f"the task is on the data {task.data_id!r}, and the configuration has "
            f"{config.data.id!r}; if that is the same data, correct data.id, else refuse the task"
        )
    _require_within_cap(federation, config)
    location, head = config.ledger.location, config.ledger.head
    is_new = not head.exists() and not has_ledger(location)
    if is_new:
        create_ledger(location, teacher=name, head_path=head)
    with open_ledger(location, teacher=name, head_path=head) as ledger:
        ledger.fix_cap(task.data_id, epsilon=config.data.epsilon, delta=config.data.delta)
        ledger.accept(task.data_id, Agreement.on_one(task.certificate, task_id=task.task_id))
        summary = ledger.summary()
    (data,) = (each for each in summary.data if each.data_id == task.data_id)
    return Acceptance(
        teacher=name, index=index, federation=federation, data=data, is_new_ledger=is_new
    )


def _require_within_cap(federation: FederationFile, config: TeacherConfig) -> None:
    """Before a cap is fixed for good that not even this task would fit."""
    price = Budget.cost(epsilon=federation.task.epsilon, delta=federation.task.delta)
    cap = Budget.cap(epsilon=config.data.epsilon, delta=config.data.delta)
    if not price.fits_within(cap):
        raise BudgetExceeded(
            f"the task costs {price}, and the configuration allows {cap} for this data over all "
            "tasks; refuse the task, or raise the cap in [data] if it was never fixed"
        )
