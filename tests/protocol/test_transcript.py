"""Receipts and transcripts: what a liar may change, and the check that notices."""

import functools
from dataclasses import replace
from typing import Any

import pytest
from tests.protocol.small import federation, rows, small
from tests.small_federation import dealt_key

from dppp.errors import TranscriptError
from dppp.federation import Outcome
from dppp.protocol.messages import BallotList, Endorser, ListHash
from dppp.protocol.receipt import RECEIPT_CHECKS, Receipt, verify_receipt
from dppp.protocol.release import Release
from dppp.protocol.task import Task
from dppp.protocol.transcript import CHECKS, Transcript, verify_release, verify_transcript
from dppp.protocol.wire import decode, encode


@functools.cache
def released(abstain_below: int | None = None) -> Outcome:
    return federation(small(abstain_below=abstain_below)).ask(rows(0, 1, 2))


def receipt(abstain_below: int | None = None) -> Receipt:
    found = released(abstain_below).receipt
    assert found is not None
    return found


def transcript(abstain_below: int | None = None) -> Transcript:
    found = released(abstain_below).transcript
    assert found is not None
    return found


def failed_check(changed: Receipt | Transcript) -> str:
    with pytest.raises(TranscriptError) as caught:
        verify_release(encode(changed), insecure_testing=True)
    return caught.value.check


def test_a_true_receipt_and_a_true_transcript_pass_every_check() -> None:
    of_receipt = verify_release(encode(receipt()), insecure_testing=True)
    of_transcript = verify_release(encode(transcript()), insecure_testing=True)
    assert of_receipt.checks == RECEIPT_CHECKS
    assert of_transcript.checks == CHECKS
    assert of_receipt.answers == of_transcript.answers == released(None).answers
    assert of_receipt.ballots == of_transcript.ballots == 5
    assert len(of_receipt.endorsers) == of_receipt.task.trust.threshold


def test_a_receipt_holds_no_ballot() -> None:
    data = encode(receipt())
    for ballot in decode(transcript().ballot_list, BallotList).ballots:
        assert ballot not in data
        assert ballot[200:264] not in data


def test_teachers_that_an_aggregator_made_up_are_noticed_by_the_id_of_the_task() -> None:
    """A receipt holds on its own; the same names and terms with other keys are another task."""
    honest, invented = small(), federation(small()).ask(rows(0, 1, 2))
    known = honest.task.task_id
    assert invented.receipt is not None
    assert invented.transcript is not None
    assert [entry.name for entry in decode(invented.receipt.task, Task).teachers] == [
        entry.name for entry in honest.task.teachers
    ]
    for made_up in (encode(invented.receipt), encode(invented.transcript)):
        verify_release(made_up, insecure_testing=True)
        with pytest.raises(TranscriptError, match="other teachers") as caught:
            verify_release(made_up, expected_task=known, insecure_testing=True)
        assert caught.value.check == "task"
    true = federation(honest).ask(rows(0))
    assert true.receipt is not None
    verify_receipt(encode(true.receipt), expected_task=known, insecure_testing=True)


def changes() -> dict[str, list[dict[str, Any]]]:
    """What a liar might change in a receipt, by the check that must notice."""
    honest, other = receipt(), receipt(3)
    relabelled = replace(honest.answers[0], label=(honest.answers[0].label or 0) ^ 1)
    recounted = Release(label=honest.answers[0].label, counts=(9999, -9999, 0))
    flagged = replace(honest.answers[0], is_flagged=not honest.answers[0].is_flagged)
    first, *rest = honest.endorsers
    return {
        "task": [{"task": b""}, {"task": honest.task[:-1]}],
        "key": [{"public_key": dealt_key(6, 4).public.to_bytes()}, {"public_key": b"x"}],
        "queries": [{"query_ids": b""}, {"query_ids": honest.query_ids[:-1]}],
        "endorsements": [
            {"task": other.task},
            {"query_ids": honest.query_ids[32:] + honest.query_ids[:32]},
            {"query_ids": honest.query_ids[:64]},
            {"query_ids": bytes(32) + honest.query_ids[32:]},
            {"list_hash": other.list_hash},
            {"list_hash": ListHash(bytes(32))},
            {"participants": honest.participants[:4]},
            {"participants": honest.participants[:3]},
            {"participants": (*honest.participants[:4], 6)},
            {"participants": (1, 1, 2, 3, 4)},
            {"participants": ()},
            {"tallies": other.tallies},
            {"tallies": honest.tallies[:-1] + bytes([honest.tallies[-1] ^ 1])},
            {"endorsers": ()},
            {"endorsers": tuple(rest)},
            {"endorsers": (*rest, rest[0])},
            {"endorsers": (*rest, replace(first, teacher=rest[0].teacher))},
            {"endorsers": (*rest, Endorser(teacher=first.teacher, signature=bytes(64)))},
            {"endorsers": (*rest, replace(first, teacher=6))},
            {"endorsers": other.endorsers},
        ],
        "opening": [
            {"openings": ()},
            {"openings": honest.openings[:1] * (len(honest.openings) + 1)},
            {"openings": other.openings},
            {"openings": (honest.openings[0][:-1] + b"\x00", *honest.openings[1:])},
        ],
        "labels": [
            {"answers": (relabelled, *honest.answers[1:])},
            {"answers": (recounted, *honest.answers[1:])},
            {"answers": (flagged, *honest.answers[1:])},
            {"answers": honest.answers[:2]},
            {"answers": (replace(honest.answers[0], label=None), *honest.answers[1:])},
        ],
    }


@pytest.mark.parametrize("check", RECEIPT_CHECKS[1:])
def test_whatever_is_changed_the_check_that_fails_is_named(check: str) -> None:
    for change in changes()[check]:
        liar = replace(receipt(), **change)
        assert failed_check(liar) == check
        assert failed_check(replace(transcript(), receipt=encode(liar))) == check


def test_other_ballots_than_the_endorsed_ones_are_noticed() -> None:
    whole = decode(transcript().ballot_list, BallotList)
    other = decode(transcript(3).ballot_list, BallotList)
    for changed in (
        replace(whole, ballots=whole.ballots[:3]),
        replace(whole, ballots=whole.ballots[1:]),
        replace(whole, ballots=(*whole.ballots[:4], other.ballots[4])),
        replace(whole, signature=bytes(64)),
        other,
    ):
        assert failed_check(replace(transcript(), ballot_list=encode(changed))) == "ballots"


def test_what_is_neither_a_receipt_nor_a_transcript_is_said_to_be_neither() -> None:
    for data in (b"", b"x", encode(small().task), transcript().ballot_list):
        with pytest.raises(TranscriptError) as caught:
            verify_release(data, insecure_testing=True)
        assert caught.value.check == "form"


def test_a_short_modulus_is_refused_unless_asked_for() -> None:
    with pytest.raises(TranscriptError) as caught:
        verify_transcript(encode(transcript()))
    assert caught.value.check == "key"


def test_inputs_are_not_in_a_transcript() -> None:
    for row in rows(0, 1, 2)[1:]:
        assert row.tobytes() not in encode(transcript())


def test_an_abstention_is_verified_too() -> None:
    abstained = receipt(10_000)
    assert all(each.label is None for each in abstained.answers)
    verify_receipt(encode(abstained), insecure_testing=True)
