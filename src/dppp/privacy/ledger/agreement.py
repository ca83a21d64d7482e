"""What a teacher agrees to: tasks that are fixed together, and the (ε, δ) that covers them.

An agreement that exists is covered: the exact δ of all its queries, composed by their loss
distributions at its ε, plus what sampling adds, is within its δ. One task alone is covered by the
promise of its certificate; several that are fixed together cost less than their sum. The ledger
takes agreements and adds them up.

A successor is no agreement of its own. It answers at most what is left of a task, with noise that
holds all of that task's and may hold more. So each query of the reservation, by whichever of the
two it is answered, tells no more than one that was paid for, whenever the change comes. A refund
would not do: how much of a promise is used up after a queries is known, but the moment of stopping
may depend on what was answered, and the sum over a stopping time is not what composition promises.
"""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass

from dppp.errors import InputError, TaskChanged, UncertifiedError
from dppp.privacy.accounting import Spending, total_delta
from dppp.privacy.certificate import Certificate
from dppp.privacy.change import ONE_OF_CLASSES, Change
from dppp.privacy.ledger.budget import Budget
from dppp.privacy.ledger.records import (
    Reservation,
    ReservedTask,
    Succession,
    canonical_json,
)
from dppp.privacy.noise import Noise, has_no_less, noise_from_parameters, noise_to_parameters
from dppp.privacy.sampling import sampling_delta
from dppp.whole_numbers import keep_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedTask:
    """A task as far as the ledger is concerned: the noise of its honest shares, and its size."""

    task_id: bytes
    noise: Noise
    queries: int
    classes: int
    change: Change = ONE_OF_CLASSES

    def __post_init__(self) -> None:
        keep_whole(self, "queries")

    @classmethod
    def certified_by(cls, certificate: Certificate, *, task_id: bytes) -> "AgreedTask":
        """The task that uses the noise of a certificate."""
        return cls(
            task_id=task_id,
            noise=certificate.noise,
            queries=certificate.promise.queries,
            classes=certificate.promise.classes,
            change=certificate.promise.change,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Tasks that are fixed together, before any of them is answered."""

    tasks: tuple[AgreedTask, ...]
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        ids = [task.task_id for task in self.tasks]
        if not ids or len(set(ids)) < len(ids):
            raise InputError("an agreement must hold at least one task, each of them once")
        needed = needed_delta(self.tasks, self.epsilon)
        if needed > self.delta:
            raise UncertifiedError(
                f"the tasks agreed on need delta = {needed:.10g} at epsilon = {self.epsilon:g}, "
                f"more than the {self.delta:g} that was stated",
                hint="state what they cost (`dppp account`), or use more noise",
            )

    @classmethod
    def on_one(cls, certificate: Certificate, *, task_id: bytes) -> "Agreement":
        """One task, at the cost that its certificate promises."""
        task = AgreedTask.certified_by(certificate, task_id=task_id)
        promise = certificate.promise
        return cls(tasks=(task,), epsilon=promise.epsilon, delta=promise.delta)

    def reservation(self, data_id: str) -> Reservation:
        """What the ledger writes down."""
        return Reservation(
            data_id=data_id,
            budget=Budget.cost(epsilon=self.epsilon, delta=self.delta),
            tasks=tuple(_reserved(task) for task in self.tasks),
        )


def needed_delta(tasks: Sequence[AgreedTask], epsilon: float) -> float:
    """δ of all queries of all tasks together at this ε, sampling included, rounded up."""
    parts = tuple(
        (Spending(noise=task.noise, queries=task.queries, change=task.change), task.classes)
        for task in tasks
    )
    return _needed_delta(parts, epsilon)


@functools.lru_cache(maxsize=256)
def _needed_delta(parts: tuple[tuple[Spending, int], ...], epsilon: float) -> float:
    """Remembered, since all teachers of an embedded federation ask the same."""
    spendings = [spending for spending, _ in parts]
    sampling = [
        sampling_delta(each.noise, epsilon=epsilon, queries=each.queries, classes=classes)
        for each, classes in parts
    ]
    return min(1.0, total_delta(spendings, epsilon) + sum(sampling))


def succession(task: ReservedTask, reservation: Reservation, successor: AgreedTask) -> Succession:
    """What the ledger writes down when another task takes the place of one; refuses less noise."""
    if not has_no_less(successor.noise, _noise_of(task)):
        raise TaskChanged(
            "the successor's noise does not hold all of the noise that was paid for, so what is "
            "left of the reservation does not cover it",
            hint="have the change made again by `dppp change propose`",
        )
    _require_sampling_covered(reservation, successor)
    return Succession(task_id=task.task_id, successor=_reserved(successor))


def _require_sampling_covered(reservation: Reservation, successor: AgreedTask) -> None:
    """More teachers draw more shares, each a little off: as if they had drawn all of them."""
    epsilon = reservation.budget.epsilon
    spendings = [_spending_of(task) for task in reservation.tasks]
    needed = total_delta(spendings, epsilon)
    for task, spending in zip(reservation.tasks, spendings, strict=True):
        sampled = (
            sampling_delta(each, epsilon=epsilon, queries=task.queries, classes=task.classes)
            for each in (spending.noise, successor.noise)
        )
        needed += max(sampled)
    if needed > reservation.budget.delta:
        raise UncertifiedError(
            f"with the successor's shares the reservation would need delta = {needed:.10g}, more "
            f"than the {reservation.budget.delta:g} that was reserved",
            hint="have fewer teachers, or agree on a new task at a price of its own",
        )


def _spending_of(task: ReservedTask) -> Spending:
    change = Change(moved=task.moved, shift=task.shift)
    return Spending(noise=_noise_of(task), queries=task.queries, change=change)


def _noise_of(task: ReservedTask) -> Noise:
    return noise_from_parameters(json.loads(task.noise))


def _reserved(task: AgreedTask) -> ReservedTask:
    noise = canonical_json(noise_to_parameters(task.noise)).decode("ascii")
    return ReservedTask(
        task_id=task.task_id,
        queries=task.queries,
        classes=task.classes,
        noise=noise,
        moved=task.change.moved,
        shift=task.change.shift,
    )
