"""Tasks fixed together cost what their loss distributions compose to, and no agreement lies."""

import pytest
from tests.privacy.ledger.ledgers import DATA, TEACHER, make_id

from dppp.errors import InputError, UncertifiedError
from dppp.privacy.accounting import Spending, account
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate
from dppp.privacy.ledger.agreement import AgreedTask, Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import MemoryStore


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return calibrate("skellam", epsilon=1, delta=1e-6, teachers=20, queries=100, classes=2)


def test_one_task_costs_what_its_certificate_promises(certificate: Certificate) -> None:
    ledger = Ledger.create(MemoryStore(), teacher=TEACHER)
    ledger.fix_cap(DATA, epsilon=1, delta=1e-6)
    ledger.accept(DATA, Agreement.on_one(certificate, task_id=make_id("task")))
    (data,) = ledger.summary().data
    assert data.reserved == data.cap
    assert data.tasks[0].queries == 100


def test_tasks_fixed_together_cost_their_composition(certificate: Certificate) -> None:
    tasks = tuple(AgreedTask.certified_by(certificate, task_id=make_id(name)) for name in "ab")
    composed = account([Spending(noise=certificate.noise, queries=200)], 1e-6)
    assert composed < 1.6, "two tasks of ε = 1 would be 2 one after the other"
    Agreement(tasks=tasks, epsilon=composed * (1 + 1e-6), delta=1e-6)
    with pytest.raises(UncertifiedError, match="more than"):
        Agreement(tasks=tasks, epsilon=composed * (1 - 1e-6), delta=1e-6)


def test_an_agreement_that_states_too_little_is_refused(certificate: Certificate) -> None:
    task = AgreedTask.certified_by(certificate, task_id=make_id("task"))
    with pytest.raises(UncertifiedError, match="more than"):
        Agreement(tasks=(task,), epsilon=0.99, delta=1e-6)
    other = AgreedTask.certified_by(certificate, task_id=make_id("other"))
    with pytest.raises(UncertifiedError):
        Agreement(tasks=(task, other), epsilon=1, delta=2e-6)


def test_the_noise_of_the_paper_is_refused_where_it_breaks_its_promise() -> None:
    uncertified = calibrate(
        "discrete-gaussian", epsilon=1, delta=1e-3, teachers=20, calibration="paper"
    )
    assert not uncertified.certified
    with pytest.raises(UncertifiedError):
        Agreement.on_one(uncertified, task_id=make_id("task"))


def test_an_agreement_holds_each_task_once(certificate: Certificate) -> None:
    task = AgreedTask.certified_by(certificate, task_id=make_id("task"))
    for tasks in ((), (task, task)):
        with pytest.raises(InputError, match="each of them once"):
            Agreement(tasks=tasks, epsilon=5, delta=1e-3)
