"""What a teacher agrees to: tasks that are fixed together, and the (ε, δ) that covers them.

An agreement that exists is covered: the exact δ of all its queries, composed by their loss
distributions at its ε, plus what sampling adds, is within its δ. One task alone is covered by the
promise of its certificate; several that are fixed together cost less than their sum. The ledger
takes agreements and adds them up.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from dppp.errors import InputError, UncertifiedError
from dppp.privacy.accounting import Spending, total_delta
from dppp.privacy.certificate import Certificate
from dppp.privacy.change import ONE_OF_CLASSES, Change
from dppp.privacy.ledger.budget import Budget
from dppp.privacy.ledger.records import Reservation, ReservedTask, canonical_json
from dppp.privacy.noise import Noise, noise_to_parameters
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
