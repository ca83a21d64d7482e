"""One batch at the aggregator, from its request to its outcome: what every cryptosystem shares.

    BALLOTS ──all ballots in, or quorum and patience over──► ENDORSEMENTS ──enough──► ANSWERS
       │                                                        │                        │
       │ deadline, fewer than                 too few in time   │       it opens ──► RELEASED
       │ N - D good ballots                                     ▼                        │
       └───────────────────────────────────────────────────► ABORTED ◄───too few in time─┘

A list is opened only after t teachers have endorsed it. with_masks/batch.py and
with_paillier/batch.py say what ballots, endorsements and answers are, and what happens when a list
does not open. The aggregator owns a batch and gives it the time.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Never

from dppp.errors import BallotFault, InputError, SignatureFault
from dppp.protocol.batch_store import StoredBatches
from dppp.protocol.events import (
    Abort,
    BatchStatus,
    Event,
    Outcome,
    Send,
    Stage,
    TeacherBlamed,
    TeacherRefused,
)
from dppp.protocol.messages import BallotRequest, BatchId, BatchRequest, FromTeacher
from dppp.protocol.refusals import RefusalNotice
from dppp.protocol.rows import ballot_request, wrapped_key_of
from dppp.protocol.shared_batch import shared_ballot_request
from dppp.protocol.signing import Signer, sign, verify_signature
from dppp.protocol.task import Task
from dppp.protocol.wire import Message, encode


class Step(enum.StrEnum):
    """What a teacher is asked for. The last six belong to disputes."""

    KEY = "key"
    BALLOT = "ballot"
    ENDORSEMENT = "endorsement"
    ANSWER = "answer"
    PROOF = "proof"
    COMPLAINT = "complaint"
    WITHDRAWAL = "withdrawal"
    ROOT = "root"
    SECRET_ROWS = "secret rows"  # noqa: S105 - a name
    SEED_ROWS = "seed rows"


Wanted = frozenset[tuple[int, Step]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds to wait for teachers.

    `after_quorum`: for the other ballots once there are enough. `first_shares`: for the teachers
    who are asked first to endorse or to open, before all others are asked too. `opening`: for
    endorsements, and then for answers, at all.
    """

    after_quorum: int = 2
    first_shares: int = 5
    opening: int = 60


LEAST_BYTES_PER_SECOND = 125_000
"""Of each teacher's line, in both directions: 1 Mbit/s. Slower ones are not waited for."""


def slow_seconds(length: int) -> int:
    """How long these many bytes take at the least bandwidth, beside what they take anyway."""
    return length // LEAST_BYTES_PER_SECOND


class Batch(ABC):
    """The state of one batch. Each cryptosystem adds its own."""

    kinds: ClassVar[Mapping[str, type[Message]]]
    """The messages of teachers that are about one batch."""

    def __init__(
        self, task: Task, request: BatchRequest, patience: Patience, signer: Signer
    ) -> None:
        self.request = request
        self.query_ids = request.query_ids
        self.batch_id: BatchId = request.batch_id
        self.stage = Stage.BALLOTS
        self.faults: dict[int, str] = {}
        self._refusals: dict[int, str] = {}
        self.outcome: Outcome | None = None
        self._task = task
        # A list goes out and answers come back, however slow the line.
        list_seconds = slow_seconds(task.list_bytes(len(self.query_ids)))
        self._patience = replace(patience, opening=patience.opening + list_seconds)
        self._signer = signer
        self._quorum_since: int | None = None
        self._stage_since = 0
        self._is_asking_all = False
        self._news: list[Event] = []
        self._asked: BallotRequest | None = None

    @property
    @abstractmethod
    def status(self) -> BatchStatus:
        """How far it is."""

    @abstractmethod
    def wanted(self) -> Wanted:
        """What is still to be had, and from whom."""

    @abstractmethod
    def message(self, teacher: int, step: Step) -> bytes:
        """What a teacher is sent who is asked for this; signed by the aggregator."""

    def messages(self, teacher: int, step: Step) -> tuple[bytes, ...]:
        """What a teacher is sent when it is asked first: that, and what must come before it."""
        return (self.message(teacher, step),)

    def reminders(self, teacher: int, step: Step) -> tuple[bytes, ...]:
        """What a teacher is sent that has not answered, and may have forgotten what came before."""
        return (self.message(teacher, step),)

    @abstractmethod
    def take(self, message: Message, teacher: int, data: bytes, *, now: int) -> None:
        """Take a message of one of the kinds that the channel says is from this teacher.

        `data` are the bytes that it was read from.
        """

    @abstractmethod
    def advance(self, store: StoredBatches, *, now: int) -> None:
        """Make the transitions whose time has come; what must survive is stored first."""

    @abstractmethod
    def restore(self, store: StoredBatches, *, now: int) -> None:
        """Go on from what the store has of this batch."""

    def farewell(self) -> tuple[Send, ...]:
        """What teachers are told when the batch has ended; nobody answers it."""
        return ()

    def take_news(self) -> tuple[Event, ...]:
        """What happened since this was last asked."""
        news = tuple(self._news)
        self._news.clear()
        return news

    def blame(self, teacher: int, reason: str) -> None:
        """Leave a teacher out of this batch from now on, and remember why."""
        if teacher not in self.faults:
            self.faults[teacher] = reason
            self._news.append(TeacherBlamed(batch=self.batch_id, teacher=teacher, reason=reason))

    def is_about(self, subject: bytes) -> bool:
        """Whether a refusal with this subject is one of this batch."""
        return subject == self.batch_id

    def note_refusal(self, notice: RefusalNotice, *, now: int) -> None:
        """A teacher says that it refused, and is still waited for: it may think better of it."""
        teacher = notice.teacher
        if self.stage.is_last or teacher not in {each for each, _ in self.wanted()}:
            return
        words = notice.words(now)
        is_new = notice.rule not in self._refusals.get(teacher, "")
        self._refusals[teacher] = words
        if is_new:
            ahead = notice.at - now
            self._news.append(
                TeacherRefused(
                    batch=self.batch_id,
                    teacher=teacher,
                    rule=notice.rule,
                    clock_ahead_seconds=ahead,
                )
            )

    def leave_out(self, faults: Mapping[int, str]) -> None:
        """Begin without these, who were at fault before."""
        self.faults |= faults

    def ask_all_in_time(self, now: int) -> None:
        """When those who were asked first have had their time, ask every voter."""
        if now >= self._stage_since + self._patience.first_shares:
            self._is_asking_all = True

    def abort(self, reason: str, *, answered: set[int], is_refunded: bool = False) -> None:
        """End without a release, saying who was missing and who was at fault."""
        missing = set(range(1, self._task.trust.teachers + 1)) - answered - set(self.faults)
        refused = sorted(missing & self._refusals.keys())
        reason += "".join(f"; teacher {each} refused ({self._refusals[each]})" for each in refused)
        self.end_with(
            Abort(
                reason=reason,
                missing=tuple(sorted(missing - set(refused))),
                culprits=tuple(sorted(self.faults)),
                is_refunded=is_refunded,
            )
        )

    def end_with(self, outcome: Outcome) -> None:
        """It ended: here, or at another aggregator that was first."""
        self.outcome = outcome
        self.stage = Stage.ABORTED if isinstance(outcome, Abort) else Stage.RELEASED

    def _follow_clock_back(self, now: int) -> None:
        """When the clock was put back, wait from now on, and not until it is where it was."""
        self._stage_since = min(self._stage_since, now)
        if self._quorum_since is not None:
            self._quorum_since = min(self._quorum_since, now)

    def _has_waited_for_ballots(self, ballots: int, now: int) -> bool:
        """Whether there is nothing more to wait for."""
        if ballots + len(self.faults) >= self._task.trust.teachers or now >= self.request.deadline:
            return True
        since = self._quorum_since
        return since is not None and now >= since + self._patience.after_quorum

    def _note_quorum(self, ballots: int, now: int) -> None:
        if ballots >= self._task.trust.ballots_needed and self._quorum_since is None:
            self._quorum_since = now

    def _enter(self, stage: Stage, now: int) -> None:
        self.stage = stage
        self._stage_since = now
        self._is_asking_all = False

    def _ballot_request(self, teacher: int) -> bytes:
        """The sealed rows for one teacher; the signature is mostly the same for all of them."""
        if self.request.others:
            return encode(sign(shared_ballot_request(self.request, teacher), self._signer))
        if self._asked is None:
            self._asked = sign(ballot_request(self.request), self._signer)
        wrapped_key = wrapped_key_of(self.request.queries, teacher)
        return encode(replace(self._asked, wrapped_key=wrapped_key))

    def _require_signed(self, message: FromTeacher, teacher: int) -> None:
        """Before anything in it is held against a teacher: only what it signed is its fault."""
        if message.teacher != teacher:
            raise SignatureFault(f"a {message.KIND} of another came from teacher {teacher}")
        verify_signature(self._task, message)

    @staticmethod
    def _refuse_other(teacher: int) -> Never:
        raise BallotFault(
            f"teacher {teacher} answered about another list, or without a ballot",
            culprits=(teacher,),
        )


class BatchMaker(ABC):
    """What an aggregator has of a cryptosystem: makes batches, takes what is about none of them."""

    batch_kinds: Mapping[str, type[Message]]

    @abstractmethod
    def make(self, request: BatchRequest) -> Batch:
        """A batch for this request."""

    def take(self, kind: str, teacher: int, data: bytes) -> None:  # noqa: ARG002
        """A message that is about no batch."""
        raise InputError(f"an aggregator has no use for a {kind}")
