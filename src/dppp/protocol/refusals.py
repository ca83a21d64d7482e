"""A teacher's refusal on the wire: which rule, and what its clock says, signed.

Without it a teacher that refuses looks like one that is away, and a wrong clock like a broken line.
It is a courtesy: nothing follows from it but words in logs and in the reason of an abort. It names
one of the rules below and repeats no text, since the text of a refusal may name files of the
teacher's machine. None of these rules depends on what a model says, and a teacher that refuses was
silent before, so nobody learns of private data.

An aggregator believes it only if the teacher signed it, about something that it still waits for.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from dppp.errors import DpppError, InputError, SignatureFault
from dppp.hashing import HASH_BYTES, hash_parts
from dppp.protocol.messages import (
    SIGNATURE_BYTES,
    UNSIGNED,
    TaskId,
    number_bytes,
    require_ids,
    require_indices,
    require_length,
)
from dppp.protocol.signing import Signer, sign, verify_signature
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode

TOLD = frozenset(
    {
        "AttemptOver",
        "BatchChanged",
        "BatchRefunded",
        "BudgetExceeded",
        "EpochOver",
        "EpochSecretsUnavailable",
        "LedgerDamaged",
        "LedgerRolledBack",
        "LedgerUnavailable",
        "ListNotCertified",
        "ListNotEndorsed",
        "OwnBallotMissing",
        "QueriesExhausted",
        "QueryReused",
        "RequestExpired",
        "RosterUnknown",
        "RowsChanged",
        "RowsUnreadable",
        "SecondList",
        "TaskSucceeded",
        "Withdrawn",
    }
)
"""The rules that an aggregator is told of, by the names of their exceptions. To whom forges a
request, or sends what is not a message, a teacher says nothing."""

_SAME_TIME_SECONDS = 60
_BATCH_ID = b"\xa8batch_id\xc4\x20"  # as msgpack writes this name, and a value of 32 bytes
_HEAD_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalNotice:
    """One teacher's word that it refused something, and when by its clock.

    `about` is the batch; or the hash of a message that is about none.
    """

    KIND: ClassVar[str] = "refusal"
    SIZE_LIMIT: ClassVar[int] = 2**12
    task_id: TaskId
    about: bytes
    teacher: int
    rule: str
    at: int
    signature: bytes = field(default=UNSIGNED, repr=False)

    def __post_init__(self) -> None:
        require_ids(self.task_id, self.about)
        require_indices((self.teacher,))
        require_length("a signature", self.signature, SIGNATURE_BYTES)
        if self.rule not in TOLD:
            raise InputError("a refusal names no rule that is told")

    def signed_parts(self) -> tuple[bytes, ...]:
        """What the signature is over."""
        numbers = (number_bytes(self.teacher), number_bytes(self.at))
        return (self.task_id, self.about, *numbers, self.rule.encode())

    def words(self, now: int) -> str:
        """Which rule, and whether the clock may be why."""
        ahead = self.at - now
        if abs(ahead) < _SAME_TIME_SECONDS:
            return self.rule
        where = "ahead" if ahead > 0 else "behind"
        return f"{self.rule}; its clock is {abs(ahead):,} s {where}"


def batch_named_in(data: bytes) -> bytes | None:
    """The batch that a message says it is about, read from its first bytes: for logs."""
    start = data[:_HEAD_BYTES].find(_BATCH_ID)
    if start < 0:
        return None
    found = data[start + len(_BATCH_ID) :][:HASH_BYTES]
    return found if len(found) == HASH_BYTES else None


def subject_of(data: bytes) -> bytes:
    """What a refusal of this message is about."""
    return batch_named_in(data) or hash_parts("dppp refused message 1", (data,))


def make_notice(
    task: Task, teacher: int, signer: Signer, data: bytes, error: DpppError, *, now: int
) -> bytes | None:
    """What a teacher says that refused this message; None where it stays silent."""
    rule = type(error).__name__
    if rule not in TOLD:
        return None
    unsigned = RefusalNotice(
        task_id=task.task_id, about=subject_of(data), teacher=teacher, rule=rule, at=now
    )
    return encode(sign(unsigned, signer))


def read_notice(task: Task, teacher: int, data: bytes) -> RefusalNotice:
    """A refusal that the channel says is from this teacher, if it signed it under this task."""
    notice = decode(data, RefusalNotice)
    if notice.teacher != teacher or notice.task_id != task.task_id:
        raise SignatureFault(f"a refusal of another came from teacher {teacher}")
    verify_signature(task, notice)
    return notice
