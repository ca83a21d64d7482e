"""What the aggregator returns: messages to send, and what happened to its batches.

Nobody has to compare a batch before and after to find out what happened: each step says so. An
event holds numbers and names of teachers, and at the end the outcome; never a vote or a key.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from dppp.protocol.messages import BatchId
from dppp.protocol.receipt import Receipt


class Stage(StrEnum):
    """How far a batch is, as everybody says it: the protocol, the gateway and the page.

    A batch is in `BALLOTS`, `ENDORSEMENTS` or `ANSWERS` while it waits for these, in `DISPUTE`
    while it is found out who broke the rules, and then in one of the last two. `VOTES` and `TALLY`
    are moments: the request is out, and the list is closed.
    """

    VOTES = "votes"
    BALLOTS = "ballots"
    TALLY = "tally"
    ENDORSEMENTS = "endorsements"
    ANSWERS = "answers"
    DISPUTE = "dispute"
    RELEASED = "released"
    ABORTED = "aborted"

    @property
    def is_last(self) -> bool:
        """Whether the batch has ended."""
        return self in (Stage.RELEASED, Stage.ABORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """Why a batch has no release, and who was missing or at fault.

    Refunded: t teachers said that they will never open it, so its charge is given back.
    """

    KIND: ClassVar[str] = "abort"
    SIZE_LIMIT: ClassVar[int] = 2**20
    reason: str
    missing: tuple[int, ...] = ()
    culprits: tuple[int, ...] = ()
    is_refunded: bool = False


Outcome = Receipt | Abort


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """How far a batch is: whose ballots, endorsements and answers have been counted."""

    stage: Stage
    voters: tuple[int, ...]
    endorsers: tuple[int, ...]
    answerers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A batch is under way here: it was asked for, or taken over."""

    stage: ClassVar[Stage] = Stage.VOTES
    batch: BatchId
    queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BallotCounted:
    """A teacher's ballot is good; it is number `count`, and has this size, sealed and signed."""

    stage: ClassVar[Stage] = Stage.BALLOTS
    batch: BatchId
    teacher: int
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListClosed:
    """The list of ballots is stored, and no other will be."""

    stage: ClassVar[Stage] = Stage.TALLY
    batch: BatchId
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndorsementCounted:
    """A teacher endorsed the list."""

    stage: ClassVar[Stage] = Stage.ENDORSEMENTS
    batch: BatchId
    teacher: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCounted:
    """A teacher gave its answer to the certified list."""

    stage: ClassVar[Stage] = Stage.ANSWERS
    batch: BatchId
    teacher: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherBlamed:
    """A teacher broke the protocol and is left out of this batch from now on."""

    batch: BatchId
    teacher: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherRefused:
    """A teacher says that it refused what it was asked, by which rule; not held against it."""

    batch: BatchId
    teacher: int
    rule: str
    clock_ahead_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The batch has a receipt, and the store has it."""

    stage: ClassVar[Stage] = Stage.RELEASED
    batch: BatchId
    receipt: Receipt = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """The batch ended without a release; who was missing or at fault is named."""

    stage: ClassVar[Stage] = Stage.ABORTED
    batch: BatchId
    abort: Abort


@dataclass(frozen=True, slots=True, kw_only=True)
class Disputed:
    """A list does not open, or not in time: the teachers are asked what they know."""

    stage: ClassVar[Stage] = Stage.DISPUTE
    batch: BatchId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redone:
    """The batch begins anew without those at fault, at no new charge."""

    stage: ClassVar[Stage] = Stage.VOTES
    batch: BatchId
    attempt: int


StageEvent = (
    Started
    | BallotCounted
    | ListClosed
    | EndorsementCounted
    | AnswerCounted
    | Disputed
    | Redone
    | Released
    | Aborted
)
Event = StageEvent | TeacherBlamed | TeacherRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A message for one teacher."""

    teacher: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What follows from a step of the aggregator: messages to send, and what happened."""

    sends: tuple[Send, ...] = ()
    events: tuple[Event, ...] = ()

    def __add__(self, other: "Output") -> "Output":
        return Output(sends=self.sends + other.sends, events=self.events + other.events)
