"""The transcript: everything needed to check a release afterwards, from public data alone.

Made by the aggregator, checked by anyone. The inputs are in it by their hashes only. What a check
establishes: at least N - D distinct teachers of the task signed and proved these ballots for these
queries; the counts are exactly the sum of what they encrypted; the labels follow from the counts.
The task is the transcript's own: whoever makes one up, its teachers and its key, can make a
transcript that holds. Only the id of the task that one knows of tells these apart.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from dppp.errors import DpppError, TranscriptError
from dppp.paillier.decryption.opening import Opening, verify_openings
from dppp.paillier.encryption import Ciphertext
from dppp.paillier.keys import PublicKey
from dppp.protocol.ballots import check_list
from dppp.protocol.messages import (
    HASH_BYTES,
    NONCE_BYTES,
    BallotList,
    QueryId,
    TaskId,
    batch_id,
    list_hash,
    query_id_of_digest,
)
from dppp.protocol.release import Answer, release_answers
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDigest:
    """A query without its input."""

    nonce: bytes
    digest: bytes

    def __post_init__(self) -> None:
        if (len(self.nonce), len(self.digest)) != (NONCE_BYTES, HASH_BYTES):
            raise TranscriptError("form", "a query's nonce or digest has the wrong length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A release and all that it rests on."""

    KIND: ClassVar[str] = "transcript"
    SIZE_LIMIT: ClassVar[int] = 2**31
    task: bytes = field(repr=False)
    public_key: bytes = field(repr=False)
    queries: tuple[QueryDigest, ...] = field(repr=False)
    ballot_list: bytes = field(repr=False)
    openings: tuple[bytes, ...] = field(repr=False)
    answers: tuple[Answer, ...] = field(repr=False)

    def to_bytes(self) -> bytes:
        """The canonical encoding."""
        return encode(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a transcript was found to say."""

    task: Task
    ballots: int
    answers: tuple[Answer, ...]
    checks: tuple[str, ...]


CHECKS = ("form", "task", "key", "queries", "ballots", "opening", "labels")
"""In order: a failure names the first that does not hold."""


def verify_transcript(
    data: bytes, *, expected_task: TaskId | None = None, insecure_testing: bool = False
) -> Verified:
    """Check a transcript; ``TranscriptError`` names the check that failed.

    Without `expected_task` it is checked against itself alone.
    """
    step = iter(CHECKS)
    check = next(step)
    try:
        transcript = decode(data, Transcript)
        check = next(step)
        task = decode(transcript.task, Task)
        _require_task(task, expected_task)
        check = next(step)
        public = PublicKey.from_bytes(transcript.public_key, insecure_testing=insecure_testing)
        task.require_key(public)
        check = next(step)
        ballot_list = decode(transcript.ballot_list, BallotList)
        query_ids = _check_queries(task, transcript, ballot_list)
        check = next(step)
        tally = check_list(task, public, ballot_list, size=task.ciphertexts_for(len(query_ids)))
        check = next(step)
        openings = _check_openings(public, tally, transcript)
        check = next(step)
        answers = release_answers(
            task,
            query_ids,
            [opening.plaintext for opening in openings],
            ballots=len(ballot_list.ballots),
            of_list=list_hash(ballot_list),
        )
        if answers != transcript.answers:
            raise TranscriptError(check, "the labels or counts do not follow from the opening")
    except TranscriptError:
        raise
    except DpppError as error:
        raise TranscriptError(check, str(error)) from error
    return Verified(task=task, ballots=len(ballot_list.ballots), answers=answers, checks=CHECKS)


def _require_task(task: Task, expected: TaskId | None) -> None:
    if expected not in (None, task.task_id):
        raise TranscriptError(
            "task",
            f"its id is {task.task_id.hex()}, so these are other teachers, another key or other "
            "terms than those that you know of; trust nothing in it",
        )


def _check_queries(
    task: Task, transcript: Transcript, ballot_list: BallotList
) -> tuple[QueryId, ...]:
    query_ids = tuple(
        query_id_of_digest(task.task_id, query.nonce, query.digest) for query in transcript.queries
    )
    if ballot_list.batch_id != batch_id(task.task_id, query_ids):
        raise TranscriptError("queries", "the ballots are for other queries")
    return query_ids


def _check_openings(
    public: PublicKey, tally: tuple[Ciphertext, ...], transcript: Transcript
) -> tuple[Opening, ...]:
    openings = tuple(Opening.from_bytes(public, each) for each in transcript.openings)
    verify_openings(public, tally, openings)
    return openings
