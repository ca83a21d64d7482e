import functools
from dataclasses import replace
from typing import Any

import pytest
from tests.protocol.small import dealt, federation, rows, small

from dppp.errors import TranscriptError
from dppp.protocol.messages import BallotList
from dppp.protocol.release import Answer
from dppp.protocol.task import Task
from dppp.protocol.transcript import CHECKS, QueryDigest, Transcript, verify_transcript
from dppp.protocol.wire import decode, encode


@functools.cache
def transcript(abstain_below: int | None = None) -> Transcript:
    return federation(small(abstain_below=abstain_below)).ask(rows(0, 1, 2)).transcript


def failed_check(changed: Transcript) -> str:
    with pytest.raises(TranscriptError) as caught:
        verify_transcript(encode(changed), insecure_testing=True)
    return caught.value.check


def test_a_true_transcript_passes_every_check() -> None:
    assert verify_transcript(encode(transcript()), insecure_testing=True).checks == CHECKS


def test_teachers_that_an_aggregator_made_up_are_noticed_by_the_id_of_the_task() -> None:
    """A transcript holds on its own; the same names and terms with other keys are another task."""
    honest, invented = small(), federation(small()).ask(rows(0, 1, 2)).transcript
    data, known = encode(invented), honest.task.task_id
    assert [entry.name for entry in decode(invented.task, Task).teachers] == [
        entry.name for entry in honest.task.teachers
    ]
    assert verify_transcript(data, insecure_testing=True).checks == CHECKS
    with pytest.raises(TranscriptError, match="other teachers") as caught:
        verify_transcript(data, expected_task=known, insecure_testing=True)
    assert caught.value.check == "task"
    own = encode(federation(honest).ask(rows(0)).transcript)
    assert verify_transcript(own, expected_task=known, insecure_testing=True).checks == CHECKS


@pytest.mark.parametrize(("nonce", "digest"), [(15, 32), (17, 32), (16, 31), (16, 0)])
def test_a_query_of_a_transcript_has_a_nonce_and_a_digest(nonce: int, digest: int) -> None:
    with pytest.raises(TranscriptError, match="wrong length"):
        QueryDigest(nonce=bytes(nonce), digest=bytes(digest))


def changes() -> dict[str, list[dict[str, Any]]]:
    """What a liar might change, by the check that must notice."""
    honest, other = transcript(), transcript(3)
    whole = decode(honest.ballot_list, BallotList)
    fewer = encode(replace(whole, ballots=whole.ballots[:3]))
    without_one = encode(replace(whole, ballots=whole.ballots[1:]))
    relabelled = replace(honest.answers[0], label=(honest.answers[0].label or 0) ^ 1)
    recounted = Answer(label=honest.answers[0].label, counts=(9999, -9999, 0))
    query = honest.queries[0]
    return {
        "task": [{"task": b""}, {"task": honest.task[:-1]}],
        "key": [{"public_key": dealt(6, 4).public.to_bytes()}, {"public_key": b"x"}],
        "queries": [
            {"task": other.task},
            {"queries": honest.queries[::-1]},
            {"queries": honest.queries[:2]},
            {"queries": (QueryDigest(nonce=bytes(16), digest=query.digest), *honest.queries[1:])},
            {"ballot_list": other.ballot_list},
        ],
        "ballots": [{"ballot_list": fewer}],
        "opening": [
            {"openings": ()},
            {"openings": honest.openings[:1] * (len(honest.openings) + 1)},
            {"ballot_list": without_one},
            {"openings": (honest.openings[0][:-1] + b"\x00", *honest.openings[1:])},
        ],
        "labels": [
            {"answers": (relabelled, *honest.answers[1:])},
            {"answers": (recounted, *honest.answers[1:])},
            {"answers": honest.answers[:2]},
            {"answers": (replace(honest.answers[0], label=None), *honest.answers[1:])},
        ],
    }


@pytest.mark.parametrize("check", ["task", "key", "queries", "ballots", "opening", "labels"])
def test_whatever_is_changed_the_check_that_fails_is_named(check: str) -> None:
    for change in changes()[check]:
        assert failed_check(replace(transcript(), **change)) == check


def test_a_short_modulus_is_refused_unless_asked_for() -> None:
    with pytest.raises(TranscriptError) as caught:
        verify_transcript(encode(transcript()))
    assert caught.value.check == "key"


def test_inputs_are_not_in_a_transcript() -> None:
    for row in rows(0, 1, 2)[1:]:
        assert row.tobytes() not in encode(transcript())


def test_an_abstention_is_verified_too() -> None:
    abstained = transcript(10_000)
    assert all(each.label is None for each in abstained.answers)
    verify_transcript(encode(abstained), insecure_testing=True)
