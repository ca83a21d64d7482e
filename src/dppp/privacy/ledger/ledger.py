"""The privacy ledger of one teacher: nothing is answered that is not written down and paid for.

A teacher fixes a cap (ε, δ) for each of its data ids, reserves the whole cost of tasks when it
accepts them, and charges each batch of queries as it answers. A charge is stored together with its
ballot before the ballot leaves, so a repeated batch gets the stored bytes and costs nothing. The
ballot list that a teacher endorsed is kept in the same place, one for each attempt, ever; so is the
answer by which it helped to open that list, or its word that it never will. A batch that t teachers
will never open is tried again without a new charge, or its charge is given back.

Storage is handed in (store.py). Every call is one exclusive transaction in which the book
(book.py) first reads what others appended, so any number of threads and processes may share
a store. Where a head memory is given, no bytes leave before the head that covers them is
remembered; so a store that was put back to an older copy is noticed when it is opened.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dppp.errors import InputError, LedgerRolledBack
from dppp.privacy.ledger.batch import Kept
from dppp.privacy.ledger.book import Book, Written, damaged
from dppp.privacy.ledger.budget import Budget
from dppp.privacy.ledger.chain import BEGINNING, Head, chain_record
from dppp.privacy.ledger.records import (
    Cap,
    Charge,
    Digest,
    EndorsedList,
    GivenAnswer,
    LedgerStart,
    Record,
    Refund,
    Retry,
    Withdrawal,
    content_digest,
)
from dppp.privacy.ledger.store import HeadMemory, LedgerStore, Transaction
from dppp.privacy.ledger.summary import Summary, summarize

if TYPE_CHECKING:  # an agreement brings the accounting with it, which takes a second to load
    from dppp.privacy.ledger.agreement import AgreedTask, Agreement


class Ledger:
    """A teacher's ledger on a store; made by `create` or `open`."""

    def __init__(self, store: LedgerStore, heads: HeadMemory | None) -> None:
        self._store = store
        self._heads = heads
        self._book = Book()
        self._last_head = BEGINNING
        self._remembered_index = BEGINNING.index

    @classmethod
    def create(
        cls, store: LedgerStore, *, teacher: str, heads: HeadMemory | None = None
    ) -> "Ledger":
        """A new ledger on an empty store."""
        ledger = cls(store, heads)
        opening = LedgerStart(teacher=teacher)
        with ledger._turn() as turn:
            if turn.head != BEGINNING or (heads is not None and heads.recall() is not None):
                raise InputError(
                    "there is a ledger or a remembered head already",
                    hint="open it instead: a new ledger would forget what was spent",
                )
            turn.append(opening)
        return ledger

    @classmethod
    def open(
        cls, store: LedgerStore, *, teacher: str | None = None, heads: HeadMemory | None = None
    ) -> "Ledger":
        """The ledger on a store, its whole chain checked, and held against the remembered head."""
        ledger = cls(store, heads)
        remembered = None if heads is None else heads.recall()
        with ledger._turn() as turn:
            if remembered is not None:
                turn.require_contains(remembered)
            elif heads is not None and turn.head.index > 0:
                raise LedgerRolledBack(
                    f"the ledger is at {turn.head}, but no head is remembered, so nobody can tell "
                    "whether it went back in time",
                    hint=(
                        "find the head file, or compare the head with your peers and then run "
                        "`dppp ledger remember`"
                    ),
                )
            if turn.head == BEGINNING:
                raise InputError("this store holds no ledger yet", hint="create one")
            if teacher is not None:
                turn.book.is_recorded(LedgerStart(teacher=teacher))
        return ledger

    @property
    def head(self) -> Head:
        """The newest entry: what an operator compares with peers."""
        with self._turn() as turn:
            return turn.head

    def fix_cap(self, data_id: str, *, epsilon: float, delta: float) -> None:
        """Fix the most that may ever be spent on a data id; the same cap again changes nothing."""
        cap = Cap(data_id=data_id, budget=Budget.cap(epsilon=epsilon, delta=delta))
        with self._turn() as turn:
            turn.book.refuse_look_alike(data_id)
            turn.append_once(cap)

    def accept(self, data_id: str, agreement: "Agreement") -> None:
        """Reserve all queries of an agreement; the same agreement again changes nothing."""
        reservation = agreement.reservation(data_id)
        with self._turn() as turn:
            turn.append_once(reservation)

    def succeed(self, task_id: bytes, successor: "AgreedTask") -> None:
        """Let another task answer what is left of this one, at no new price; again: no change.

        From then on nothing is charged to the task. What was charged to it may still be opened.
        """
        from dppp.privacy.ledger.agreement import succession  # noqa: PLC0415

        with self._turn() as turn:
            account = turn.book.require_task(task_id)
            record = succession(account.task, account.reservation, successor)
            turn.append_once(record)

    def check_can_answer(self, task_id: bytes, batch_id: bytes, query_ids: Sequence[bytes]) -> None:
        """Raise the refusal that `record_ballot` would raise, before anything is computed."""
        charge = _charge(task_id, batch_id, query_ids, b"")
        with self._turn() as turn:
            turn.book.is_recorded(charge)

    def check_can_retry(self, batch_id: bytes, query_ids: Sequence[bytes]) -> None:
        """Refuse to vote in a later attempt on queries that were not charged in the first."""
        with self._turn() as turn:
            turn.book.require_charged(batch_id, query_ids)

    def may_vote_on(self, batch_id: bytes, query_ids: Sequence[bytes]) -> bool:
        """Whether queries are charged to this batch, or are new to it and to this ledger."""
        with self._turn() as turn:
            return turn.book.may_vote_on(batch_id, query_ids)

    def record_ballot(
        self, task_id: bytes, batch_id: bytes, query_ids: Sequence[bytes], ballot: bytes
    ) -> bytes:
        """Charge a batch and keep its ballot; returns the bytes to send, the first ones for ever.

        Of many who race with the same batch one is charged, and all get that one's ballot.
        """
        charge = _charge(task_id, batch_id, query_ids, ballot)
        with self._turn() as turn:
            if turn.append_once(charge, ballot):
                return ballot
            return turn.read(turn.book.batches[batch_id].ballot)

    def find_ballot(self, batch_id: bytes, attempt: int = 1) -> bytes | None:
        """The ballot that was stored for an attempt of a batch; None when there is none yet.

        An attempt that is over, or a batch whose charge was given back, is refused.
        """
        with self._turn() as turn:
            batch = turn.book.batches.get(batch_id)
            ballot = None if batch is None else batch.find_ballot(attempt)
            return None if ballot is None else turn.read(ballot)

    def current_attempt(self, batch_id: bytes) -> int:
        """The attempt in which the newest ballot of a batch was cast; 0 when there is no ballot."""
        with self._turn() as turn:
            batch = turn.book.batches.get(batch_id)
            return 0 if batch is None else batch.attempt

    def record_endorsement(
        self, batch_id: bytes, list_hash: bytes, endorsement: bytes, *, attempt: int = 1
    ) -> bytes:
        """Keep the one list of an attempt and the endorsement of it; returns the stored one."""
        record = EndorsedList(
            batch_id=batch_id,
            list_hash=list_hash,
            endorsement=Digest.of(endorsement),
            attempt=attempt,
        )
        with self._turn() as turn:
            if turn.append_once(record, endorsement):
                return endorsement
            return turn.read(turn.book.batches[batch_id].endorsement)

    def find_endorsement(
        self, batch_id: bytes, list_hash: bytes, *, attempt: int = 1
    ) -> bytes | None:
        """The endorsement of this list; None when no list of the attempt was endorsed.

        Another list, another attempt than the current one, a batch without a ballot of this
        teacher, and what it has withdrawn from without an endorsement are refused.
        """
        with self._turn() as turn:
            batch = turn.book.require_batch(batch_id)
            if not batch.is_endorsed(list_hash, attempt):
                return None
            return turn.read(batch.endorsement)

    def record_answer(
        self, batch_id: bytes, list_hash: bytes, answer: bytes, *, attempt: int = 1
    ) -> bytes:
        """Keep what is given to open the endorsed list; returns the stored answer.

        Of an answer and a withdrawal of the same attempt the first one is kept, the other refused.
        """
        record = GivenAnswer(
            batch_id=batch_id, list_hash=list_hash, answer=Digest.of(answer), attempt=attempt
        )
        with self._turn() as turn:
            if turn.append_once(record, answer):
                return answer
            return turn.read(turn.book.batches[batch_id].answer)

    def find_answer(self, batch_id: bytes, list_hash: bytes, *, attempt: int = 1) -> bytes | None:
        """The answer given for this list; None when there is none yet.

        A list that was not endorsed and an attempt that was withdrawn are refused as in
        `record_answer`.
        """
        with self._turn() as turn:
            batch = turn.book.require_batch(batch_id)
            if not batch.is_answered(list_hash, attempt):
                return None
            return turn.read(batch.answer)

    def record_withdrawal(self, batch_id: bytes, attempt: int, message: bytes) -> bytes:
        """Keep the word never to answer this attempt; returns the stored one.

        Refused after an answer. A stored one is returned also when the attempt is over.
        """
        record = Withdrawal(batch_id=batch_id, attempt=attempt, message=Digest.of(message))
        with self._turn() as turn:
            if turn.append_once(record, message):
                return message
            return turn.read(turn.book.batches[batch_id].withdrawals[attempt])

    def find_withdrawal(self, batch_id: bytes, attempt: int) -> bytes | None:
        """The withdrawal from any attempt of a batch; None when there is none."""
        with self._turn() as turn:
            batch = turn.book.batches.get(batch_id)
            kept = None if batch is None else batch.withdrawals.get(attempt)
            return None if kept is None else turn.read(kept)

    def record_retry(
        self, batch_id: bytes, attempt: int, ballot: bytes, *, evidence: bytes
    ) -> bytes:
        """Go on to the next attempt with a new ballot, at no charge; returns the stored ballot.

        `evidence` is the hash of the withdrawals that ended the attempt before, which the caller
        has checked. Nothing is given for an earlier attempt any more.
        """
        record = Retry(
            batch_id=batch_id, attempt=attempt, ballot=Digest.of(ballot), evidence=evidence
        )
        with self._turn() as turn:
            if turn.append_once(record, ballot):
                return ballot
            return turn.read(turn.book.batches[batch_id].ballot)

    def record_refund(self, batch_id: bytes, *, evidence: bytes, attempt: int = 1) -> None:
        """Give the charge of a batch back, once; nothing more is given in the batch.

        `evidence` is the hash of the withdrawals that ended this attempt, which the caller has
        checked. An attempt that is not the current one is refused: its withdrawals say nothing
        about a ballot that was cast since.
        """
        with self._turn() as turn:
            turn.append_once(Refund(batch_id=batch_id, attempt=attempt, evidence=evidence))

    def summary(self) -> Summary:
        """What was reserved and answered, for `dppp ledger show`."""
        with self._turn() as turn:
            return summarize(turn.book)

    def require_contains(self, head: Head) -> None:
        """Refuse when this ledger never had, or no longer has, a head that somebody remembers."""
        with self._turn() as turn:
            turn.require_contains(head)

    def check(self) -> Head:
        """Walk the whole chain and all stored bytes again; names the first broken entry."""
        with self._turn() as turn:
            book = Book()
            for entry in turn.transaction.read_entries(0):
                digest = content_digest(book.apply(entry))
                if digest is not None:
                    turn.read(Kept(index=entry.index, digest=digest))
            return book.head

    @contextmanager
    def _turn(self) -> Iterator["_Turn"]:
        """One exclusive transaction; when it is durable, and before anything is returned, the head.

        Also after a turn that appended nothing: another process may have died between storing a
        ballot and remembering it, and this turn may be about to send that ballot.
        """
        with self._store.transaction() as transaction:
            self._book.catch_up(transaction)
            turn = _Turn(transaction, self._book)
            if self._last_head != BEGINNING:  # what was there in the last turn must still be there
                turn.require_contains(self._last_head)
            yield turn
        if turn.head.index > self._last_head.index:
            self._last_head = turn.head
        if self._heads is not None and turn.head.index > self._remembered_index:
            self._heads.remember(turn.head)
            self._require_same_ledger(self._heads.recall(), turn.head)
            self._remembered_index = max(turn.head.index, self._remembered_index)

    def _require_same_ledger(self, remembered: Head | None, own: Head) -> None:
        """A later head may be by another process on this ledger, or by one on a copy of it."""
        if remembered is not None and remembered.index > own.index:
            with self._store.transaction() as transaction:
                _Turn(transaction, self._book).require_contains(remembered)


class _Turn:
    """What a ledger does while it holds its store.

    The book does not take in what is appended here: it reads that from the store in the next turn,
    so it never holds an entry that was not kept after all.
    """

    def __init__(self, transaction: Transaction, book: Book) -> None:
        self.transaction = transaction
        self.book = book
        self.head = book.head

    def append_once(self, record: Record, content: bytes | None = None) -> bool:
        """Append what is not recorded yet; whether it was appended."""
        if self.book.is_recorded(record):
            return False
        self.append(record, content)
        return True

    def append(self, record: Record, content: bytes | None = None) -> None:
        entry = chain_record(self.head, record)
        self.transaction.append(entry, content)
        self.book.remember(Written(previous=self.head, entry=entry, record=record))
        self.head = entry.head

    def read(self, kept: Kept | None) -> bytes:
        assert kept is not None
        content = self.transaction.read_content(kept.index)
        if content is None or Digest.of(content) != kept.digest:
            damaged(kept.index, "has lost or changed the bytes that were stored beside it")
        return content

    def require_contains(self, head: Head) -> None:
        found = next(self.transaction.read_entries(max(head.index, 0)), None)
        if found is None:
            raise LedgerRolledBack(
                f"{head} is remembered, but the ledger ends at {self.head}: it is an older copy, "
                "and answering from it would spend the same budget twice",
                hint="restore the newest copy. If there is none, this data must not be used again",
            )
        if found.head != head:
            raise LedgerRolledBack(
                f"{head} is remembered, but entry {found.index} here has the hash "
                f"{found.hash.hex()}: this is another ledger, or one that was put back and "
                "written to since",
                hint="restore the copy that contains the remembered head",
            )


def _charge(task_id: bytes, batch_id: bytes, query_ids: Sequence[bytes], ballot: bytes) -> Charge:
    return Charge(
        task_id=task_id,
        batch_id=batch_id,
        query_ids=tuple(query_ids),
        ballot=Digest.of(ballot),
    )
