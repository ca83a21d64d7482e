"""The transcript: a receipt and all the ballots behind it, for teachers and auditors.

Made by the aggregator, checked by anyone who has it. Beyond the receipt it establishes that at
least N - D distinct teachers of the task signed and proved these ballots for these queries, and
that the endorsed tallies are their products. A key that is lost later would open every ballot in
it: so queriers get receipts, and a transcript goes only to whom it must.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from dppp.errors import ListFault, TranscriptError
from dppp.paillier.encryption import write_ciphertexts
from dppp.protocol.lists import statement_of
from dppp.protocol.messages import BallotList, TaskId, list_hash
from dppp.protocol.receipt import (
    RECEIPT_CHECKS,
    Receipt,
    Verified,
    checking,
    masked_run,
    verify_receipt,
)
from dppp.protocol.signing import require_from_aggregator
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.messages import Roster
from dppp.protocol.with_masks.verification import require_tallies
from dppp.protocol.with_paillier.ballots import check_list

CHECKS = (*RECEIPT_CHECKS, "ballots")
"""In order: a failure names the first that does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A release and all that it rests on: the encoded receipt and the encoded list."""

    KIND: ClassVar[str] = "transcript"
    SIZE_LIMIT: ClassVar[int] = 2**31
    receipt: bytes = field(repr=False)
    ballot_list: bytes = field(repr=False)

    def to_bytes(self) -> bytes:
        """The canonical encoding."""
        return encode(self)


def verify_transcript(
    data: bytes, *, expected_task: TaskId | None = None, insecure_testing: bool = False
) -> Verified:
    """Check a transcript; ``TranscriptError`` names the check that failed.

    Without `expected_task` it is checked against itself alone.

    >>> from dppp import calibrate, create_federation
    >>> from dppp.paillier.dealer import deal
    >>> promise = calibrate("skellam", epsilon=8, delta=1e-5, teachers=4, queries=5, classes=2)
    >>> key = deal(teachers=4, threshold=3, modulus_bits=512, insecure_testing=True)
    >>> parties = create_federation(
    ...     name="fruit",
    ...     class_names=["apple", "pear"],
    ...     features=["weight"],
    ...     certificate=promise,
    ...     models=[lambda rows: [1] * len(rows)] * 4,
    ...     key=key,
    ... )
    >>> from dppp import Federation, in_process, verify_transcript
    >>> federation = Federation(aggregator=parties.aggregator, deliver=in_process(parties.teachers))
    >>> data = federation.ask([[150.0]]).transcript.to_bytes()
    >>> task_id = parties.task.task_id
    >>> verify_transcript(data, expected_task=task_id, insecure_testing=True).checks
    ('form', 'task', 'key', 'queries', 'endorsements', 'opening', 'labels', 'ballots')
    """
    with checking("form"):
        transcript = decode(data, Transcript)
    verified = verify_receipt(
        transcript.receipt, expected_task=expected_task, insecure_testing=insecure_testing
    )
    with checking("ballots"):
        _require_ballots(
            verified,
            decode(transcript.receipt, Receipt),
            decode(transcript.ballot_list, BallotList),
        )
    return replace(verified, checks=CHECKS)


def verify_release(
    data: bytes, *, expected_task: TaskId | None = None, insecure_testing: bool = False
) -> Verified:
    """Check a receipt or a transcript, whichever these bytes are."""
    with checking("form"):
        kind = kind_of(data)
    verify = {Receipt.KIND: verify_receipt, Transcript.KIND: verify_transcript}.get(kind)
    if verify is None:
        raise TranscriptError(
            "form",
            f"this is a {kind}, and not a receipt or a transcript",
            hint="give a file that `dppp query` or an aggregator wrote",
        )
    return verify(data, expected_task=expected_task, insecure_testing=insecure_testing)


def _require_ballots(verified: Verified, receipt: Receipt, ballot_list: BallotList) -> None:
    """The list is the endorsed one, and the tallies are the sums or products of its ballots."""
    task, endorsed = verified.task, verified.statement
    require_from_aggregator(task, ballot_list)
    if isinstance(verified.public, Roster):
        if (ballot_list.task_id, ballot_list.batch_id) != (task.task_id, endorsed.batch_id):
            raise ListFault("the ballot list is for another task or batch; refuse it")
        require_tallies(
            masked_run(task, verified.public, receipt, endorsed.batch_id),
            ballot_list.ballots,
            of_list=endorsed.list_hash,
            tallies=receipt.tallies,
            seeds=receipt.openings[1],
        )
        return
    size = task.ciphertexts_for(len(verified.answers))
    tallied = check_list(task, verified.public, ballot_list, size=size)
    found = statement_of(
        task,
        batch=ballot_list.batch_id,
        of_list=list_hash(ballot_list),
        tallies=write_ciphertexts(verified.public, tallied.tallies),
        participants=tallied.participants,
    )
    if found != endorsed:
        raise ListFault("these are other ballots than those of the list that the teachers endorsed")
