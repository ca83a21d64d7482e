"""Each rule by which an aggregator leaves a message out, and whom it blames."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from gmpy2 import mpz
from tests.protocol.one_batch import DEADLINE, NOW, OneBatch, start_batch
from tests.protocol.parties import (
    batch_of,
    cast_anything,
    list_of,
    request_for,
    seeded,
    set_up,
)

import dppp.protocol.aggregator
from dppp.errors import BallotFault, InputError, ListFault, SignatureFault
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.keys import KeyId
from dppp.protocol.batch_store import Kind, MemoryBatchStore
from dppp.protocol.events import Abort, Aborted, Output, Stage
from dppp.protocol.messages import (
    UNSIGNED,
    Ballot,
    BallotList,
    BatchId,
    BatchRequest,
    Endorsement,
    ListHash,
)
from dppp.protocol.signing import verify_signature
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_paillier.ballots import check_list, read_ballot

LIAR, OTHER = 5, 1


@pytest.fixture
def running() -> OneBatch:
    return start_batch()


def _of_another(running: OneBatch) -> bytes:
    return running.ballots[OTHER]


def _too_many_ciphertexts(running: OneBatch) -> bytes:
    plaintexts, source = [mpz(0), mpz(0)], seeded("liar").randbytes
    return cast_anything(running.setting, LIAR, running.batch, plaintexts, source=source)


def _no_ciphertext_of_the_key(running: OneBatch) -> bytes:
    ballot = decode(running.ballots[LIAR], Ballot)
    largest = b"\xff" * len(ballot.ciphertexts)
    return running.signed(replace(ballot, ciphertexts=largest), by=LIAR)


def _half_a_ciphertext(running: OneBatch) -> bytes:
    ballot = decode(running.ballots[LIAR], Ballot)
    return running.signed(replace(ballot, ciphertexts=ballot.ciphertexts[:-1]), by=LIAR)


def _no_proof(running: OneBatch) -> bytes:
    return running.signed(replace(decode(running.ballots[LIAR], Ballot), proof=b""), by=LIAR)


def _signed_by_another(running: OneBatch) -> bytes:
    return running.signed(decode(running.ballots[LIAR], Ballot), by=OTHER)


def _of_nobody(running: OneBatch) -> bytes:
    return running.signed(replace(decode(running.ballots[LIAR], Ballot), teacher=6), by=LIAR)


def _of_teacher_zero(running: OneBatch) -> bytes:
    """Whose key would be the last one in a list counted from the end."""
    return running.signed(replace(decode(running.ballots[LIAR], Ballot), teacher=0), by=LIAR)


def _of_a_negative_teacher(running: OneBatch) -> bytes:
    return encode(replace(decode(running.ballots[LIAR], Ballot), teacher=-1))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_too_many_ciphertexts, "has 2 ciphertexts, expected 1"),
        (_no_ciphertext_of_the_key, "not one of this key"),
        (_half_a_ciphertext, "not one of this key"),
        (_no_proof, "not one of this key"),
    ],
)
def test_a_ballot_that_is_not_good_is_left_out_and_its_sender_blamed(
    running: OneBatch, make: Callable[[OneBatch], bytes], reason: str
) -> None:
    running.aggregator.receive(LIAR, make(running), now=NOW)
    assert set(running.faults) == {LIAR}
    assert reason in running.faults[LIAR]
    running.vote(1, 2, 3, 4)
    assert running.status.stage is Stage.ENDORSEMENTS
    assert running.status.voters == (1, 2, 3, 4)


@pytest.mark.parametrize(
    "make",
    [_of_another, _signed_by_another, _of_nobody, _of_teacher_zero, _of_a_negative_teacher],
)
def test_for_a_ballot_that_it_did_not_sign_nobody_is_blamed(
    running: OneBatch, make: Callable[[OneBatch], bytes]
) -> None:
    """Or whoever carries messages could have an honest teacher thrown out of a batch."""
    running.aggregator.receive(LIAR, make(running), now=NOW)
    assert running.faults == {}
    running.vote(*running.teachers)
    assert running.status.voters == (1, 2, 3, 4, 5)


def _of_another_list(running: OneBatch) -> bytes:
    return running.signed(replace(running.shares_of(LIAR), list_hash=ListHash(bytes(32))), by=LIAR)


def _in_anothers_name(running: OneBatch) -> bytes:
    return encode(running.shares_of(OTHER))


def _with_anothers_index(running: OneBatch) -> bytes:
    """The sender's own signature on what another teacher computed."""
    theirs = running.shares_of(OTHER).shares
    return running.signed(replace(running.shares_of(LIAR), shares=theirs), by=LIAR)


def _for_two_ciphertexts(running: OneBatch) -> bytes:
    public, message = running.setting.public, running.shares_of(LIAR)
    shares = DecryptionShares.from_bytes(public, message.shares)
    twice = replace(shares, elements=shares.elements * 2)
    return running.signed(replace(message, shares=twice.to_bytes(public)), by=LIAR)


def _unsigned(running: OneBatch) -> bytes:
    return encode(replace(running.shares_of(LIAR), signature=bytes(64)))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_of_another_list, "another list, or without"),
        (_with_anothers_index, "do not fit"),
        (_for_two_ciphertexts, "do not fit"),
    ],
)
def test_shares_that_are_not_good_are_left_out_and_their_sender_blamed(
    running: OneBatch, make: Callable[[OneBatch], bytes], reason: str
) -> None:
    running.vote(*running.teachers)
    running.endorse(1, 2, 3, LIAR)
    running.aggregator.receive(LIAR, make(running), now=NOW)
    assert set(running.faults) == {LIAR}
    assert reason in running.faults[LIAR]
    assert running.status.answerers == ()


def _endorsed(running: OneBatch, **changes: Any) -> bytes:
    """The liar's endorsement of another statement, well signed."""
    found = decode(running.endorsement_of(LIAR), Endorsement)
    changed = replace(found, statement=replace(found.statement, **changes))
    return running.signed(changed, by=LIAR)


def _endorsed_in_anothers_name(running: OneBatch) -> bytes:
    return running.endorsement_of(OTHER)


def _endorsed_unsigned(running: OneBatch) -> bytes:
    found = decode(running.endorsement_of(LIAR), Endorsement)
    return encode(replace(found, signature=bytes(64)))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda running: _endorsed(running, list_hash=bytes(32)), "another list, or without"),
        (lambda running: _endorsed(running, tally_hash=bytes(32)), "another list, or without"),
        (lambda running: _endorsed(running, key_id=KeyId(bytes(32))), "another list, or without"),
        (lambda running: _endorsed(running, participants=(1, 2, 3, 5)), "another list"),
        (lambda running: _endorsed(running, task_id=bytes(32)), "another list, or without"),
    ],
)
def test_an_endorsement_that_is_not_good_is_left_out_and_its_sender_blamed(
    running: OneBatch, make: Callable[[OneBatch], bytes], reason: str
) -> None:
    running.vote(*running.teachers)
    running.aggregator.receive(LIAR, make(running), now=NOW)
    assert set(running.faults) == {LIAR}
    assert reason in running.faults[LIAR]
    assert running.status.endorsers == ()


@pytest.mark.parametrize("make", [_endorsed_in_anothers_name, _endorsed_unsigned])
def test_for_an_endorsement_that_it_did_not_sign_nobody_is_blamed(
    running: OneBatch, make: Callable[[OneBatch], bytes]
) -> None:
    running.vote(*running.teachers)
    running.aggregator.receive(LIAR, make(running), now=NOW)
    assert running.faults == {}
    running.endorse(LIAR)
    assert running.status.endorsers == (LIAR,)


@pytest.mark.parametrize("make", [_in_anothers_name, _unsigned])
def test_for_shares_that_it_did_not_sign_nobody_is_blamed(
    running: OneBatch, make: Callable[[OneBatch], bytes]
) -> None:
    running.vote(*running.teachers)
    running.endorse(1, 2, 3, LIAR)
    running.aggregator.receive(LIAR, make(running), now=NOW)
    assert running.faults == {}
    running.aggregator.receive(LIAR, encode(running.shares_of(LIAR)), now=NOW)
    assert running.status.answerers == (LIAR,)


def test_shares_of_another_key_are_left_out_and_their_sender_blamed(running: OneBatch) -> None:
    running.vote(*running.teachers)
    running.endorse(1, 2, 3, LIAR)
    public, message = running.setting.public, running.shares_of(LIAR)
    shares = DecryptionShares.from_bytes(public, message.shares)
    foreign = replace(shares, key_id=KeyId(bytes(32))).to_bytes(public)
    running.aggregator.receive(
        LIAR, running.signed(replace(message, shares=foreign), by=LIAR), now=NOW
    )
    assert "do not fit" in running.faults[LIAR]


def test_who_did_not_vote_cannot_endorse(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4)
    running.aggregator.tick(NOW + 500)
    theirs = decode(running.endorsement_of(OTHER, voters=(1, 2, 3, 4)), Endorsement)
    late = running.signed(replace(theirs, teacher=LIAR), by=LIAR)
    running.aggregator.receive(LIAR, late, now=NOW)
    assert "another list, or without" in running.faults[LIAR]


def test_who_did_not_vote_cannot_help_to_open(running: OneBatch) -> None:
    """A teacher that is not in the list has noise in none of the counts."""
    running.vote(1, 2, 3, 4)
    running.aggregator.tick(NOW + 500)
    running.endorse(1, 2, 3, 4, voters=(1, 2, 3, 4))
    helper = running.shares_of(OTHER, voters=(1, 2, 3, 4))
    late = running.signed(replace(helper, teacher=LIAR), by=LIAR)
    running.aggregator.receive(LIAR, late, now=NOW)
    assert "another list, or without" in running.faults[LIAR]


@pytest.mark.parametrize("stranger", [0, -1, 6])
def test_a_strangers_faults_count_for_nothing(running: OneBatch, stranger: int) -> None:
    running.aggregator.receive(stranger, running.ballots[OTHER], now=NOW)
    assert running.faults == {}
    assert running.status.voters == ()


def test_what_is_for_teachers_is_dropped_and_nobody_is_blamed(running: OneBatch) -> None:
    for_teachers = list_of(running.setting, running.batch, list(running.ballots.values()))
    assert running.aggregator.receive(LIAR, for_teachers, now=NOW).sends == ()
    assert running.faults == {}


def test_what_is_about_an_unknown_batch_is_dropped_and_nobody_is_blamed(running: OneBatch) -> None:
    ballot = replace(decode(running.ballots[LIAR], Ballot), batch_id=BatchId(bytes(32)))
    assert running.aggregator.receive(LIAR, running.signed(ballot, by=LIAR), now=NOW).sends == ()
    assert running.faults == {}


def test_a_batch_that_nobody_stored_cannot_be_adopted(running: OneBatch) -> None:
    with pytest.raises(InputError, match="not in the store"):
        running.aggregator.adopt(BatchId(bytes(32)), now=NOW)


def test_whoever_writes_into_the_store_asks_nothing_in_the_aggregators_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = set_up(5, 1, 1)
    signed = request_for(setting, [1], deadline=DEADLINE)
    unsigned = replace(signed, signature=UNSIGNED)
    batch = batch_of(setting, signed)

    def adopt(request: BatchRequest, *, under: BatchId = batch) -> int | str:
        """How many teachers are asked, or why nobody is."""
        store = MemoryBatchStore()
        store.put_once(under, Kind.REQUEST, encode(request))
        aggregator = setting.aggregator(store)
        output = aggregator.adopt(under, now=NOW)
        outcome = aggregator.outcome(under)
        if outcome is None:
            return len(output.sends)
        assert isinstance(outcome, Abort)
        assert output == Output(events=(Aborted(batch=under, abort=outcome),))
        assert aggregator.unfinished() == ()  # whoever waits for it is told, once and for all
        return outcome.reason

    assert adopt(signed) == 5
    assert "not signed by the aggregator" in str(adopt(unsigned))
    assert "another batch" in str(adopt(signed, under=BatchId(bytes(32))))
    of_another = request_for(set_up(5, 1, 1, "another task"), [1], deadline=DEADLINE)
    assert "another task" in str(adopt(of_another))
    monkeypatch.setattr(dppp.protocol.aggregator, "require_from_aggregator", lambda *_: None)
    assert adopt(unsigned) == 5


def test_a_ballot_of_another_batch_or_task_is_not_even_looked_at(running: OneBatch) -> None:
    setting, data = running.setting, running.ballots[OTHER]
    other_task = set_up(5, 1, 1, "another task").task
    for task, batch in ((setting.task, BatchId(bytes(32))), (other_task, running.batch)):
        with pytest.raises(BallotFault, match="another task or batch") as caught:
            read_ballot(task, setting.public, data, batch=batch, size=1)
        assert caught.value.culprits == (OTHER,)


def test_a_list_of_another_task_is_refused(running: OneBatch) -> None:
    data = list_of(running.setting, running.batch, list(running.ballots.values()))
    other = set_up(5, 1, 1, "another task").task
    with pytest.raises(ListFault, match="another task"):
        check_list(other, running.setting.public, decode(data, BallotList), size=1)


@pytest.mark.parametrize("teacher", [0, 6])
def test_a_signature_of_nobody_is_no_signature(running: OneBatch, teacher: int) -> None:
    message = replace(decode(running.ballots[LIAR], Ballot), teacher=teacher)
    signed = decode(running.signed(message, by=LIAR), Ballot)
    with pytest.raises(SignatureFault, match=f"no teacher {teacher}"):
        verify_signature(running.setting.task, signed)
