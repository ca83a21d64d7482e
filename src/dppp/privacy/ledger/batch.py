"""One batch with a charge: what was given in it, attempt by attempt, and what may still be.

    ballot ──► endorsement ──► answer        an answer is final: none of the three below follows it
       │            │
       └────────────┴──► withdrawal          never an answer in this attempt
                    ├──► retry               next attempt: new ballot, no list yet, no new charge
                    └──► refund              the charge is given back; nothing more is given

A retry and a refund are possible with or without a withdrawal of one's own: other teachers'
withdrawals are the evidence for them, and whoever goes on never answers what lies behind it.
"""

from dataclasses import dataclass, field

from dppp.errors import (
    AnswerGiven,
    AttemptOver,
    BallotReused,
    BallotUnknown,
    BatchRefunded,
    ListNotEndorsed,
    SecondList,
    Withdrawn,
)
from dppp.privacy.ledger.records import (
    BatchRecord,
    Digest,
    EndorsedList,
    GivenAnswer,
    Refund,
    Retry,
    ServedList,
    Withdrawal,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Where bytes are kept: beside which entry, with which digest."""

    index: int
    digest: Digest


@dataclass(slots=True, kw_only=True)
class BatchAccount:
    """A batch: ballot, list, endorsement and answer of its current attempt, and how others ended.

    A list without an endorsement was opened by 0.1.0, which knew no endorsements.
    """

    batch_id: bytes
    task_id: bytes
    query_ids: tuple[bytes, ...]
    ballot: Kept
    attempt: int = 1
    list_hash: bytes | None = None
    endorsement: Kept | None = None
    answer: Kept | None = None
    is_refunded: bool = False
    withdrawals: dict[int, Kept] = field(default_factory=dict)
    earlier_ballots: set[Digest] = field(default_factory=set)

    def is_recorded(self, record: BatchRecord) -> bool:
        """Whether the same is recorded already; a refusal when it must never be."""
        match record:
            case EndorsedList():
                return self.is_endorsed(record.list_hash, record.attempt)
            case ServedList():
                return self.is_endorsed(record.list_hash, 1)
            case GivenAnswer():
                return self.is_answered(record.list_hash, record.attempt)
            case Withdrawal():
                return self._is_withdrawn(record.attempt)
            case Retry():
                return self._is_retried(record)
            case Refund():
                self._require_refundable(record.attempt)
                return False

    def take_in(self, record: BatchRecord, index: int) -> None:
        """Change as a record says that was found good."""
        match record:
            case EndorsedList():
                self.list_hash = record.list_hash
                self.endorsement = Kept(index=index, digest=record.endorsement)
            case ServedList():
                self.list_hash = record.list_hash
            case GivenAnswer():
                self.answer = Kept(index=index, digest=record.answer)
            case Withdrawal():
                self.withdrawals[record.attempt] = Kept(index=index, digest=record.message)
            case Retry():
                self._begin_attempt(Kept(index=index, digest=record.ballot))
            case Refund():
                self.is_refunded = True

    def find_ballot(self, attempt: int) -> Kept | None:
        """The ballot of the current attempt; None when a later one is asked for."""
        self._require_charged()
        self._require_not_over(attempt)
        return self.ballot if attempt == self.attempt else None

    def is_endorsed(self, list_hash: bytes, attempt: int) -> bool:
        """Whether this list was endorsed before; a refusal when it may not be."""
        self._require_current(attempt)
        if self.list_hash is None:
            self._require_not_withdrawn()
            return False
        if self.endorsement is None:
            raise SecondList(
                f"list {short(self.list_hash)} of batch {short(self.batch_id)} was opened by an "
                "earlier version, which knew no endorsements, and nothing more is given for that "
                "batch; ask the queries again in a new batch"
            )
        if self.list_hash != list_hash:
            raise SecondList(
                f"list {short(self.list_hash)} was endorsed for {self}, and "
                f"{short(list_hash)} is another one: the difference of two lists would show single "
                "votes; send the first list, or ask the queries again in a new batch"
            )
        return True

    def is_answered(self, list_hash: bytes, attempt: int) -> bool:
        """Whether this list was answered before; a refusal unless it is the endorsed one."""
        self._require_current(attempt)
        self._require_not_withdrawn()
        if not self.is_endorsed(list_hash, attempt):
            raise ListNotEndorsed(
                f"list {short(list_hash)} of {self} was not endorsed by this "
                "teacher, so it gives nothing to open it; send the list itself first"
            )
        return self.answer is not None

    def _is_withdrawn(self, attempt: int) -> bool:
        """Also after a refund: it says only what is true already, and others may need it."""
        if attempt in self.withdrawals:
            return True
        self._require_not_over(attempt)
        self._require_begun(attempt)
        self._require_unanswered()
        return False

    def _is_retried(self, retry: Retry) -> bool:
        self._require_charged()
        self._require_not_over(retry.attempt)
        if retry.attempt == self.attempt:
            return True
        self._require_begun(retry.attempt - 1)
        self._require_unanswered()
        if retry.ballot in self.earlier_ballots | {self.ballot.digest}:
            raise BallotReused(
                f"attempt {retry.attempt} of batch {short(self.batch_id)} has a ballot of an "
                "earlier attempt, so the same ballot would be in two lists",
                hint="make a ballot with new masks and new noise for every attempt",
            )
        return False

    def _begin_attempt(self, ballot: Kept) -> None:
        self.earlier_ballots.add(self.ballot.digest)
        self.attempt += 1
        self.ballot = ballot
        self.list_hash = self.endorsement = self.answer = None

    def _require_refundable(self, attempt: int) -> None:
        self._require_current(attempt)
        self._require_unanswered()

    def _require_current(self, attempt: int) -> None:
        self._require_charged()
        self._require_not_over(attempt)
        self._require_begun(attempt)

    def _require_charged(self) -> None:
        if self.is_refunded:
            raise BatchRefunded(
                f"the charge of batch {short(self.batch_id)} was given back, so nothing more is "
                "given in it",
                hint="ask in a new batch, under new query ids and at a new charge",
            )

    def _require_not_over(self, attempt: int) -> None:
        if attempt < self.attempt:
            raise AttemptOver(
                f"attempt {attempt} of batch {short(self.batch_id)} is over: this teacher is in "
                f"attempt {self.attempt} and gives nothing for an earlier one",
                hint=f"go on with attempt {self.attempt}",
            )

    def _require_begun(self, attempt: int) -> None:
        if attempt > self.attempt:
            raise BallotUnknown(
                f"this teacher cast no ballot in attempt {attempt} of batch "
                f"{short(self.batch_id)}; its last one was in attempt {self.attempt}",
                hint="show it first why the attempts between are over",
            )

    def _require_not_withdrawn(self) -> None:
        if self.attempt in self.withdrawals:
            raise Withdrawn(
                f"this teacher said that it will never answer {self}, and it keeps its word",
                hint="show it the withdrawals of t teachers and go on with the next attempt",
            )

    def _require_unanswered(self) -> None:
        if self.answer is not None or (self.list_hash is not None and self.endorsement is None):
            raise AnswerGiven(
                f"this teacher has answered {self}, so the batch may have been opened: it stays "
                "charged, and there is no further attempt",
                hint="open the list with the answers there are",
            )

    def __str__(self) -> str:
        later = "" if self.attempt == 1 else f"attempt {self.attempt} of "
        return f"{later}batch {short(self.batch_id)}"


def short(identifier: bytes) -> str:
    """Enough of an id to find it."""
    return identifier.hex()[:16]
