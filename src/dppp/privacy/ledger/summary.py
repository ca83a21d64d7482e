"""A ledger at a glance: what `dppp ledger show` prints."""

from dataclasses import dataclass

from dppp.privacy.ledger.book import Book, TaskAccount
from dppp.privacy.ledger.budget import Budget
from dppp.privacy.ledger.chain import Head


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSummary:
    """How far a task has been answered, and the budget that it and its company reserved.

    Of its `batches`, the charges of `refunded` were given back: their queries do not count as
    answered. `redone` were tried more than once, at one charge.
    """

    task_id: bytes
    queries: int
    answered: int
    batches: int
    refunded: int
    redone: int
    budget: Budget
    fixed_together: int
    successor_id: bytes | None = None
    """The task that took the place of this one, on the same reservation."""

    @property
    def left(self) -> int:
        """Queries that may still be answered."""
        return 0 if self.successor_id is not None else self.queries - self.answered

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {
            "task_id": self.task_id.hex(),
            "queries": self.queries,
            "answered": self.answered,
            "left": self.left,
            "batches": self.batches,
            "refunded": self.refunded,
            "redone": self.redone,
            **self.budget.to_json(),
            "fixed_together": self.fixed_together,
            "succeeded_by": None if self.successor_id is None else self.successor_id.hex(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSummary:
    """A data id: its cap, what is reserved of it, and for which tasks."""

    data_id: str
    cap: Budget
    reserved: Budget
    tasks: tuple[TaskSummary, ...]

    @property
    def left(self) -> Budget:
        """What may still be reserved."""
        return self.cap.minus(self.reserved)

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {
            "data_id": self.data_id,
            "cap": self.cap.to_json(),
            "reserved": self.reserved.to_json(),
            "left": self.left.to_json(),
            "tasks": [task.to_json() for task in self.tasks],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The whole ledger."""

    teacher: str
    head: Head
    data: tuple[DataSummary, ...]

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {
            "teacher": self.teacher,
            "head": {"index": self.head.index, "hash": self.head.hash.hex()},
            "data": [data.to_json() for data in self.data],
        }


def summarize(book: Book) -> Summary:
    """The book in numbers, data ids and tasks in the order in which they came."""
    assert book.teacher is not None
    data = tuple(
        DataSummary(
            data_id=data_id,
            cap=cap,
            reserved=book.reserved[data_id],
            tasks=tuple(
                _task_summary(account)
                for account in book.tasks.values()
                if account.reservation.data_id == data_id
            ),
        )
        for data_id, cap in book.caps.items()
    )
    return Summary(teacher=book.teacher, head=book.head, data=data)


def _task_summary(account: TaskAccount) -> TaskSummary:
    return TaskSummary(
        task_id=account.task.task_id,
        queries=account.task.queries,
        answered=account.answered,
        batches=account.batches,
        refunded=account.refunded,
        redone=account.redone,
        budget=account.reservation.budget,
        fixed_together=len(account.reservation.tasks),
        successor_id=None if account.successor is None else account.successor.task_id,
    )
