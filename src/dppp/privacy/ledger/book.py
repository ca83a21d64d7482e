"""What a chain of entries amounts to, and the rules that every next record must keep.

The book is read from the chain, entry by entry, and never written: whoever holds the entries can
work it out again. The same rules serve twice. Before a record is appended they refuse it with its
own exception; when a stored record breaks them, the ledger is damaged. Those about one batch after
its charge are in batch.py.

    opening       first, once
    cap           one for each data id, for good
    reservation   new tasks; what is reserved on the data id stays within its cap
    succession    one for each task: another takes its place, with no more queries than are left
    charge        task reserved and not succeeded, queries left, query ids in no other batch
    endorsement   one list for each attempt of a batch that has a charge
    answer        one for the endorsed list; never in an attempt that was withdrawn or is over
    withdrawal    one for each attempt, never after an answer
    retry         the next attempt with a new ballot, never after an answer or a refund
    refund        one for each batch, never after an answer; nothing is given after it
    list          what 0.1.0 wrote instead of endorsement and answer; read, never written
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Never

from dppp.errors import (
    BallotUnknown,
    BatchChanged,
    BudgetExceeded,
    CapChanged,
    DataUnknown,
    InputError,
    LedgerDamaged,
    LedgerRolledBack,
    QueriesExhausted,
    QueryReused,
    Refusal,
    TaskChanged,
    TaskSucceeded,
    TaskUnknown,
    WrongTeacher,
    message_of,
)
from dppp.privacy.ledger.batch import BatchAccount, Kept, short
from dppp.privacy.ledger.budget import NOTHING, Budget
from dppp.privacy.ledger.chain import BEGINNING, Entry, Head
from dppp.privacy.ledger.records import (
    BatchRecord,
    Cap,
    Charge,
    LedgerStart,
    Record,
    Refund,
    Reservation,
    ReservedTask,
    Retry,
    Succession,
    decode_record,
)
from dppp.privacy.ledger.store import Transaction


@dataclass(slots=True, kw_only=True)
class TaskAccount:
    """A task, its reservation, and how far it has been answered.

    Of its `batches`, the charge of some was given back and some were tried more than once.
    """

    task: ReservedTask
    reservation: Reservation
    answered: int = 0
    batches: int = 0
    refunded: int = 0
    redone: int = 0
    successor: ReservedTask | None = None

    @property
    def left(self) -> int:
        """Queries that may still be answered; of a task that was succeeded its successor's are."""
        return 0 if self.successor is not None else self.task.queries - self.answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An entry that this process appended: after which head, and the record that it checked."""

    previous: Head
    entry: Entry
    record: Record


class Book:
    """The state of a ledger after the entries up to `head`."""

    def __init__(self) -> None:
        self.head: Head = BEGINNING
        self.teacher: str | None = None
        self.caps: dict[str, Budget] = {}
        self.reserved: dict[str, Budget] = {}
        self.tasks: dict[bytes, TaskAccount] = {}
        self.batches: dict[bytes, BatchAccount] = {}
        self._asked: set[bytes] = set()
        self._written: Written | None = None
        self._fresh: tuple[Head, tuple[bytes, ...]] | None = None

    def catch_up(self, transaction: Transaction) -> None:
        """Read what was appended since, by whomever; notice a past that changed."""
        entries = transaction.read_entries(max(self.head.index, 0))
        if self.head != BEGINNING:
            last = next(iter(entries), None)
            if last is None or last.head != self.head:
                raise LedgerRolledBack(
                    f"the ledger no longer contains {self.head}, which this process has read: it "
                    "was put back to an older copy while in use",
                    hint="restore the newest copy and start again",
                )
        for entry in entries:
            self.apply(entry)

    def remember(self, written: "Written") -> None:
        """What this process just wrote, so that it need not be read and checked once more."""
        self._written = written

    def apply(self, entry: Entry) -> Record:
        """Take in the next entry of the chain."""
        written, self._written = self._written, None
        if written is not None and (written.previous, written.entry) == (self.head, entry):
            record = written.record
        else:
            record = self._read(entry)
        self._take_in(record, entry.index)
        self.head = entry.head
        return record

    def _read(self, entry: Entry) -> Record:
        """The record of an entry, if it may follow."""
        if not entry.follows(self.head):
            damaged(self.head.index + 1, "does not follow from the entry before it")
        try:
            record = decode_record(entry.kind, entry.payload)
            is_repeated = self.is_recorded(record)
        except (KeyError, TypeError, ValueError, InputError, Refusal) as error:
            damaged(entry.index, f"breaks the rules of a ledger ({message_of(error)})")
        if is_repeated:
            damaged(entry.index, "repeats an earlier entry")
        return record

    def is_recorded(self, record: Record) -> bool:
        """Whether the same is recorded already; a refusal when it must never be."""
        if self.teacher is None and not isinstance(record, LedgerStart):
            raise Refusal("a ledger must begin with the name of its teacher")
        match record:
            case LedgerStart():
                return self._is_opened(record)
            case Cap():
                return self._is_capped(record)
            case Reservation():
                return self._is_reserved(record)
            case Succession():
                return self._is_succeeded(record)
            case Charge():
                return self.is_charged(record.task_id, record.batch_id, record.query_ids)
            case _:
                return self.require_batch(record.batch_id).is_recorded(record)

    def is_charged(self, task_id: bytes, batch_id: bytes, query_ids: tuple[bytes, ...]) -> bool:
        """Whether this batch was answered before; a refusal when it may not be."""
        batch = self.batches.get(batch_id)
        if batch is None:
            self._require_queries_left(task_id, len(query_ids))
            self._require_fresh(query_ids)
            return False
        if batch.task_id != task_id or batch.query_ids != query_ids:
            raise BatchChanged(
                f"batch {short(batch_id)} was answered before for another task or other queries",
                hint="make the batch id anew, as the hash of its task and queries",
            )
        batch.find_ballot(1)  # which refuses when the first attempt is over
        return True

    def may_vote_on(self, batch_id: bytes, query_ids: Sequence[bytes]) -> bool:
        """Whether queries are charged to this batch, or it is new and they were never asked."""
        batch = self.batches.get(batch_id)
        if batch is None:
            return self._asked.isdisjoint(query_ids)
        return set(query_ids) <= set(batch.query_ids)

    def require_charged(self, batch_id: bytes, query_ids: Sequence[bytes]) -> None:
        """Refuse queries that were not charged to this batch: a later attempt costs nothing."""
        charged = set(self.require_batch(batch_id).query_ids)
        free = [each for each in query_ids if each not in charged]
        if free:
            raise BatchChanged(
                f"query {short(free[0])} was not charged to batch {short(batch_id)} in its first "
                "attempt, so no vote is cast on it in a later one",
                hint="ask about it in a new batch",
            )

    def require_task(self, task_id: bytes) -> TaskAccount:
        """A task that this teacher has accepted."""
        account = self.tasks.get(task_id)
        if account is None:
            raise TaskUnknown(
                f"task {short(task_id)} was never accepted by this teacher", hint="accept it first"
            )
        return account

    def require_batch(self, batch_id: bytes) -> BatchAccount:
        """A batch in which this teacher has cast a ballot."""
        batch = self.batches.get(batch_id)
        if batch is None:
            raise BallotUnknown(
                f"this teacher cast no ballot in batch {short(batch_id)}, so it takes no part in "
                "opening or ending it",
                hint="ask those who voted",
            )
        return batch

    def refuse_look_alike(self, data_id: str) -> None:
        """Refuse a data id that people would read as one that has a cap: it would get a second.

        The id comes with a task, from others. Asked before a cap is fixed; what is stored stays.
        """
        for known in self.caps:
            if known != data_id and _as_read(known) == _as_read(data_id):
                raise CapChanged(
                    f"the data id {data_id!r} reads like {known!r}, which has a cap of its own, "
                    "but differs in letters, spaces or their encoding: the same data would be "
                    "paid for twice",
                    hint="have the task made with the data id as it was fixed",
                )

    def _is_opened(self, opening: LedgerStart) -> bool:
        if self.teacher not in (None, opening.teacher):
            raise WrongTeacher(
                f"this is the ledger of {self.teacher}, not of {opening.teacher}; every teacher "
                "keeps its own",
                hint=(
                    f"if both are one organisation, join as {self.teacher}. Otherwise give this "
                    "teacher files of its own: path and head under [ledger] in teacher.toml"
                ),
            )
        return self.teacher is not None

    def _is_capped(self, cap: Cap) -> bool:
        fixed = self.caps.get(cap.data_id)
        if fixed not in (None, cap.budget):
            raise CapChanged(
                f"the cap of {cap.data_id} was fixed at {fixed} for good, and {cap.budget} is "
                "another one",
                hint=(
                    "put the first cap back into the configuration. Only data that share no "
                    "record with these may have a new data id and so a new cap"
                ),
            )
        return fixed is not None

    def _is_reserved(self, reservation: Reservation) -> bool:
        known = [
            self.tasks[each.task_id] for each in reservation.tasks if each.task_id in self.tasks
        ]
        if known:
            if any(account.reservation != reservation for account in known):
                raise TaskChanged(
                    f"task {short(known[0].task.task_id)} was accepted before with other content, "
                    "cost or company",
                    hint="a changed task needs a new id, and its own budget",
                )
            return True
        self._require_budget(reservation)
        return False

    def _is_succeeded(self, succession: Succession) -> bool:
        account = self.require_task(succession.task_id)
        successor = succession.successor
        if account.successor is not None:
            if account.successor != successor:
                raise TaskSucceeded(
                    f"task {short(succession.task_id)} was succeeded by task "
                    f"{short(account.successor.task_id)}, and has no second successor",
                    hint="take part in that one, or agree on a new task at a price of its own",
                )
            return True
        if successor.task_id in self.tasks:
            raise TaskChanged(
                f"task {short(successor.task_id)} was accepted before at a price of its own, so "
                "it takes no other's place"
            )
        if _asked(successor) != _asked(account.task):
            raise TaskChanged("a successor has as many classes, and asks as the task before it did")
        if successor.queries > account.left:
            raise QueriesExhausted(
                f"the successor has {successor.queries} queries, but task "
                f"{short(succession.task_id)} has {account.left} left of {account.task.queries}",
                hint=f"have the change made again with --queries {account.left} or fewer",
            )
        return False

    def _require_budget(self, reservation: Reservation) -> None:
        cap = self.caps.get(reservation.data_id)
        if cap is None:
            raise DataUnknown(
                f"no cap was fixed for the data {reservation.data_id!r}",
                hint="name the data and its cap (ε, δ) in the teacher's configuration first",
            )
        reserved = self.reserved[reservation.data_id]
        if not reserved.plus(reservation.budget).fits_within(cap):
            raise BudgetExceeded(
                f"{reservation.budget} more would pass the cap of {reservation.data_id} ({cap}), "
                f"of which {reserved} is reserved",
                hint="accept a cheaper task, or none: budgets do not come back",
            )

    def _require_queries_left(self, task_id: bytes, queries: int) -> None:
        account = self.require_task(task_id)
        if account.successor is not None:
            raise TaskSucceeded(
                f"task {short(task_id)} is over for this teacher, which has accepted task "
                f"{short(account.successor.task_id)} in its place; nothing was charged",
                hint="ask under that task",
            )
        if queries > account.left:
            raise QueriesExhausted(
                f"the batch holds {queries} {'query' if queries == 1 else 'queries'}, but task "
                f"{short(task_id)} has {account.left} left of {account.task.queries}",
                hint="send a smaller batch or agree on a new task",
            )

    def _require_fresh(self, query_ids: tuple[bytes, ...]) -> None:
        if self._fresh is not None and self._fresh[0] == self.head and self._fresh[1] is query_ids:
            return  # found so before the ballot was made, and nothing was written since
        if len(set(query_ids)) < len(query_ids):
            raise QueryReused(
                "a query id occurs twice in the batch", hint="give each query its own"
            )
        if not self._asked.isdisjoint(query_ids):
            self._refuse_reused(next(each for each in query_ids if each in self._asked))
        self._fresh = (self.head, query_ids)

    def _refuse_reused(self, query_id: bytes) -> Never:
        known = next(each for each in self.batches.values() if query_id in each.query_ids)
        again = "" if known.is_refunded else "send that batch again to get the stored answer, or "
        raise QueryReused(
            f"query {short(query_id)} is part of batch {short(known.batch_id)}",
            hint=f"{again}ask under a new query id at a new charge",
        )

    def _take_in(self, record: Record, index: int) -> None:
        match record:
            case LedgerStart():
                self.teacher = record.teacher
            case Cap():
                self.caps[record.data_id] = record.budget
                self.reserved[record.data_id] = NOTHING
            case Reservation():
                so_far = self.reserved[record.data_id]
                self.reserved[record.data_id] = so_far.plus(record.budget)
                for task in record.tasks:
                    self.tasks[task.task_id] = TaskAccount(task=task, reservation=record)
            case Succession():
                account = self.tasks[record.task_id]
                account.successor = record.successor
                self.tasks[record.successor.task_id] = TaskAccount(
                    task=record.successor, reservation=account.reservation
                )
            case Charge():
                self._take_in_charge(record, index)
            case _:
                self._take_in_about_batch(record, index)

    def _take_in_charge(self, charge: Charge, index: int) -> None:
        account = self.tasks[charge.task_id]
        account.answered += len(charge.query_ids)
        account.batches += 1
        self.batches[charge.batch_id] = BatchAccount(
            batch_id=charge.batch_id,
            task_id=charge.task_id,
            query_ids=charge.query_ids,
            ballot=Kept(index=index, digest=charge.ballot),
        )
        self._asked.update(charge.query_ids)
        self._fresh = None

    def _take_in_about_batch(self, record: BatchRecord, index: int) -> None:
        batch = self.batches[record.batch_id]
        batch.take_in(record, index)
        account = self.tasks[batch.task_id]
        match record:
            case Retry(attempt=2):  # a batch counts once, however often it is tried
                account.redone += 1
            case Refund():
                account.answered -= len(batch.query_ids)  # its query ids stay used all the same
                account.refunded += 1


def _asked(task: ReservedTask) -> tuple[int, int, int]:
    """The counts of a query, and what one vote can do to them."""
    return task.classes, task.moved, task.shift


def _as_read(name: str) -> str:
    """Without what the eye passes over: composed or not, capitals, width, spaces."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def damaged(index: int, how: str) -> Never:
    """Say which entry is broken."""
    raise LedgerDamaged(
        f"entry {index} of the ledger {how}: the file was changed or has decayed",
        hint=(
            "answer nothing from it, restore the newest copy and check that with the remembered "
            "head"
        ),
    )
