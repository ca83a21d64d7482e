"""The receipt: what a querier gets for a release, short and checkable, without any ballot.

Made by the aggregator, checked by anyone. It holds the task, the ids of the queries, the
tallies of a list, the signatures of t teachers on that list and those tallies, the opening, and
the labels. What a check establishes: t teachers of the task, at least t - C of them honest,
checked the list of ballots and will open no other of this batch; the counts are exactly what its
tallies hold; the labels follow from the counts. That each ballot was well made is their word here;
whoever has the ballots checks it in the transcript (transcript.py). Under masks no teacher sees the
tallies: that they are those of the list is the aggregator's word here, and the transcript shows it.
The task is the receipt's own: whoever makes one up, its teachers and its key, can make a receipt
that holds. Only the id of the task that one knows of tells these apart.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from dppp.errors import DpppError, ListFault, TranscriptError
from dppp.hashing import HASH_BYTES
from dppp.paillier.decryption.opening import Opening, verify_openings
from dppp.paillier.encryption import Ciphertext, read_ciphertexts
from dppp.paillier.keys import PublicKey
from dppp.protocol.lists import require_complete, statement_of
from dppp.protocol.messages import (
    BatchId,
    Endorser,
    ListHash,
    ListStatement,
    QueryId,
    TaskId,
    batch_id,
    require_query_ids,
    split_query_ids,
)
from dppp.protocol.release import Release, make_releases
from dppp.protocol.signing import require_certified
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks.messages import Roster
from dppp.protocol.with_masks.verification import MaskedRun, open_sums, read_roster_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A release, and what it takes to check it without the ballots.

    Under masks `public_key` is the roster, the tallies are the sums of the blocks, and the openings
    are the sum of the secrets and the seeds.
    """

    KIND: ClassVar[str] = "receipt"
    SIZE_LIMIT: ClassVar[int] = 2**28
    task: bytes = field(repr=False)
    public_key: bytes = field(repr=False)
    query_ids: bytes = field(repr=False)
    list_hash: ListHash
    participants: tuple[int, ...]
    tallies: bytes = field(repr=False)
    endorsers: tuple[Endorser, ...]
    openings: tuple[bytes, ...] = field(repr=False)
    answers: tuple[Release, ...] = field(repr=False)
    attempt: int = 1

    @property
    def queries(self) -> int:
        """How many there are."""
        return len(self.query_ids) // HASH_BYTES

    def to_bytes(self) -> bytes:
        """The canonical encoding."""
        return encode(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a receipt or a transcript was found to say."""

    task: Task
    public: PublicKey | Roster
    statement: ListStatement
    endorsers: tuple[int, ...]
    query_ids: tuple[QueryId, ...]
    answers: tuple[Release, ...]
    checks: tuple[str, ...]

    @property
    def ballots(self) -> int:
        """How many ballots are in the list."""
        return len(self.statement.participants)


RECEIPT_CHECKS = ("form", "task", "key", "queries", "endorsements", "opening", "labels")
"""In order: a failure names the first that does not hold."""


def verify_receipt(
    data: bytes, *, expected_task: TaskId | None = None, insecure_testing: bool = False
) -> Verified:
    """Check a receipt; ``TranscriptError`` names the check that failed.

    Without `expected_task` it is checked against itself alone.
    """
    with checking("form"):
        receipt = decode(data, Receipt)
    with checking("task"):
        task = decode(receipt.task, Task)
        _require_task(task, expected_task)
    with checking("key"):
        public = _read_key(task, receipt, insecure_testing=insecure_testing)
    with checking("queries"):
        require_query_ids(receipt.query_ids)
        query_ids = split_query_ids(receipt.query_ids)
    with checking("endorsements"):
        batch = batch_id(task.task_id, receipt.query_ids)
        statement = _require_endorsed(task, receipt, batch, public)
    with checking("opening"):
        sums = _require_opened(task, public, receipt, statement)
    with checking("labels"):
        answers = make_releases(
            task,
            query_ids,
            sums,
            participants=receipt.participants,
            of_list=receipt.list_hash,
        )
        if answers != receipt.answers:
            raise ListFault("the labels or counts do not follow from the opening")
    return Verified(
        task=task,
        public=public,
        statement=statement,
        endorsers=tuple(each.teacher for each in receipt.endorsers),
        query_ids=query_ids,
        answers=answers,
        checks=RECEIPT_CHECKS,
    )


_WHAT_THEN = "do not rely on it: get the file again, and tell the teachers if that fails too"


@contextmanager
def checking(check: str) -> Iterator[None]:
    """Whatever is refused inside is a failure of this check."""
    try:
        yield
    except TranscriptError:
        raise
    except DpppError as error:
        raise TranscriptError(check, error.message, hint=error.hint or _WHAT_THEN) from error


def _require_task(task: Task, expected: TaskId | None) -> None:
    if expected not in (None, task.task_id):
        raise TranscriptError(
            "task",
            f"its id is {task.task_id.hex()}, so these are other teachers, another key or other "
            "terms than those that you know of",
            hint="trust nothing in it",
        )


def _read_key(task: Task, receipt: Receipt, *, insecure_testing: bool) -> PublicKey | Roster:
    """The key of the task, or under masks the roster whose keys sealed the ballots."""
    if task.masks is not None:
        return read_roster_of(task, receipt.public_key)
    public = PublicKey.from_bytes(receipt.public_key, insecure_testing=insecure_testing)
    task.require_key(public)
    if receipt.attempt != 1:
        raise ListFault("under paillier a batch has one attempt")
    return public


def masked_run(task: Task, roster: Roster, receipt: Receipt, batch: BatchId) -> MaskedRun:
    """The attempt that a receipt under masks is about."""
    return MaskedRun(
        task=task,
        roster=roster,
        batch_id=batch,
        attempt=receipt.attempt,
        counts=receipt.queries * len(task.class_names),
    )


def _require_endorsed(
    task: Task, receipt: Receipt, batch: BatchId, public: PublicKey | Roster
) -> ListStatement:
    """Other queries, tallies, participants or another list are not what was endorsed."""
    require_complete(task, receipt.participants)
    is_masked = isinstance(public, Roster)
    statement = statement_of(
        task,
        batch=batch,
        of_list=receipt.list_hash,
        tallies=b"" if is_masked else receipt.tallies,
        participants=receipt.participants,
        key_id=public.hash if isinstance(public, Roster) else None,
    )
    require_certified(task, statement, receipt.endorsers)
    return statement


def _require_opened(
    task: Task, public: PublicKey | Roster, receipt: Receipt, statement: ListStatement
) -> Sequence[int]:
    if isinstance(public, Roster):
        run = masked_run(task, public, receipt, statement.batch_id)
        return open_sums(run, receipt.tallies, receipt.openings)
    tallies: tuple[Ciphertext, ...] = read_ciphertexts(public, receipt.tallies)
    if len(tallies) != task.ciphertexts_for(receipt.queries):
        raise ListFault("there are more or fewer tallies than these queries take")
    openings = tuple(Opening.from_bytes(public, each) for each in receipt.openings)
    verify_openings(public, tallies, openings)
    plaintexts = [opening.plaintext for opening in openings]
    counts = len(task.class_names) * receipt.queries
    return task.packing.unpack(plaintexts, counts, contributions=len(receipt.participants))
