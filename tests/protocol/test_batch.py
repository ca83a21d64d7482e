"""A batch at the aggregator: what comes too late, when voting ends, and whom it asks to open."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.protocol.one_batch import DEADLINE, OneBatch, start_batch
from tests.protocol.parties import (
    cast_anything,
    pack_unchecked,
    request_for,
    seeded,
    tallies_of,
)
from tests.small_federation import reply_of

import dppp.protocol.with_paillier.batch
from dppp.errors import InputError
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.protocol.batch import Patience
from dppp.protocol.events import Abort, Send, Stage
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    CertifiedList,
    Endorsement,
    ListHash,
    ProofRequest,
)
from dppp.protocol.receipt import Receipt
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode, kind_of

PATIENCE = Patience()


@pytest.fixture
def running() -> OneBatch:
    """Five teachers: four ballots are enough, and four open."""
    return start_batch()


def second_ballot(running: OneBatch, teacher: int) -> bytes:
    """Good as well, and not the first one."""
    plaintexts = pack_unchecked(running.setting, [1, 1, 1])
    source = seeded("second").randbytes
    return cast_anything(running.setting, teacher, running.batch, plaintexts, source=source)


def bad_ballot(running: OneBatch, teacher: int) -> bytes:
    """With a ciphertext too many, and signed by the teacher itself."""
    plaintexts = pack_unchecked(running.setting, [1, 1, 1]) * 2
    source = seeded("bad", teacher).randbytes
    return cast_anything(running.setting, teacher, running.batch, plaintexts, source=source)


def served(sends: Sequence[Send]) -> BallotList:
    (data,) = {send.data for send in sends}
    return decode(data, BallotList)


def asked(sends: Sequence[Send], kind: str = BallotList.KIND) -> tuple[int, ...]:
    return tuple(send.teacher for send in sends if kind_of(send.data) == kind)


def test_the_first_ballot_of_a_teacher_stands(running: OneBatch) -> None:
    running.vote(1, 2)
    running.aggregator.receive(1, second_ballot(running, 1), now=0)
    running.vote(3, 4)
    sends = running.aggregator.receive(5, running.ballots[5], now=0).sends
    assert served(sends).ballots == tuple(running.ballots.values())


def test_a_ballot_after_the_list_changes_nothing(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4)
    sends = running.aggregator.tick(PATIENCE.after_quorum).sends
    assert running.aggregator.receive(5, running.ballots[5], now=PATIENCE.after_quorum).sends == ()
    assert running.status.voters == (1, 2, 3, 4)
    assert running.faults == {}
    assert served(sends).ballots == tuple(running.ballots[each] for each in (1, 2, 3, 4))


def test_who_was_blamed_gets_no_second_chance(running: OneBatch) -> None:
    running.aggregator.receive(5, bad_ballot(running, 5), now=0)
    running.vote(5)
    assert running.status.voters == ()
    assert set(running.faults) == {5}


def test_what_a_teacher_did_not_sign_is_dropped_and_not_held_against_it(running: OneBatch) -> None:
    """Whoever carries messages can put anything under a teacher's name, at every step."""
    broken = decode(running.ballots[5], Ballot)
    forged = [encode(replace(broken, signature=bytes(64))), running.ballots[1]]
    for data in forged:
        running.aggregator.receive(5, data, now=0)
    running.vote(1, 2, 3, 4, 5)
    assert running.status.voters == (1, 2, 3, 4, 5)
    running.aggregator.receive(5, running.endorsement_of(1), now=0)
    running.endorse(1, 2, 3, 5)
    assert running.status.endorsers == (1, 2, 3, 5)
    running.aggregator.receive(5, encode(running.shares_of(1)), now=0)
    for teacher in (1, 2, 3, 5):
        running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
    assert isinstance(running.outcome, Receipt)
    assert running.faults == {}


def test_voting_goes_on_for_a_while_once_there_are_enough(running: OneBatch) -> None:
    running.vote(1, 2, 3, now=10)
    running.aggregator.tick(500)
    assert running.status.stage is Stage.BALLOTS
    running.vote(4, now=500)
    running.aggregator.tick(500 + PATIENCE.after_quorum - 1)
    assert running.status.stage is Stage.BALLOTS
    running.aggregator.tick(500 + PATIENCE.after_quorum)
    assert running.status.stage is Stage.ENDORSEMENTS


def test_the_wait_begins_with_the_ballot_that_is_enough(running: OneBatch) -> None:
    running.vote(1, 2, 3, now=10)
    running.vote(4, now=10 + PATIENCE.after_quorum - 1)
    running.aggregator.tick(10 + PATIENCE.after_quorum)
    assert running.status.stage is Stage.BALLOTS


def test_a_later_ballot_does_not_lengthen_the_wait() -> None:
    running = start_batch(7, 1, 2)
    running.vote(1, 2, 3, 4, 5, now=10)
    running.vote(6, now=10 + PATIENCE.after_quorum - 1)
    running.aggregator.tick(10 + PATIENCE.after_quorum)
    assert running.status.stage is Stage.ENDORSEMENTS


def test_too_few_ballots_are_waited_for_until_the_deadline(running: OneBatch) -> None:
    running.vote(1, 2, 3)
    running.aggregator.tick(DEADLINE - 1)
    assert running.status.stage is Stage.BALLOTS
    running.aggregator.tick(DEADLINE)
    assert running.outcome == Abort(
        reason="3 good ballots, and 4 are needed for enough noise", missing=(4, 5), culprits=()
    )


def test_when_all_have_answered_nobody_is_waited_for(running: OneBatch) -> None:
    for liar in (4, 5):
        running.aggregator.receive(liar, bad_ballot(running, liar), now=0)
    running.vote(1, 2, 3)
    assert isinstance(running.outcome, Abort)
    assert running.outcome.culprits == (4, 5)
    assert running.outcome.missing == ()


def test_as_many_are_asked_to_endorse_as_are_needed_and_all_when_that_takes_too_long() -> None:
    running = start_batch(7, 1, 1)
    running.vote(1, 2, 3, 4, 5, 6)
    first = asked(running.aggregator.receive(7, running.ballots[7], now=10).sends)
    assert len(first) == running.setting.public.threshold == 5
    assert running.aggregator.tick(10 + PATIENCE.first_shares - 1).sends == ()
    others = asked(running.aggregator.tick(10 + PATIENCE.first_shares).sends)
    assert sorted((*first, *others)) == [1, 2, 3, 4, 5, 6, 7]
    assert running.aggregator.tick(10 + PATIENCE.first_shares + 1).sends == ()


def test_nothing_is_opened_before_enough_have_endorsed_the_list(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5)
    running.endorse(1, 2, 3)
    running.aggregator.receive(1, encode(running.shares_of(1)), now=0)
    assert running.status.stage is Stage.ENDORSEMENTS
    assert running.status.answerers == ()
    sends = running.aggregator.receive(5, running.endorsement_of(5), now=0).sends
    assert running.status.stage is Stage.ANSWERS
    assert asked(sends, CertifiedList.KIND) == (1, 2, 3, 5)
    certified = decode(sends[0].data, CertifiedList)
    assert [each.teacher for each in certified.endorsers] == [1, 2, 3, 5]


def test_who_endorses_late_is_asked_to_open_at_once(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5)
    running.endorse(1, 2, 3, 4)
    sends = running.aggregator.receive(5, running.endorsement_of(5), now=0).sends
    assert asked(sends, CertifiedList.KIND) == (5,)


def test_when_those_who_endorsed_do_not_open_the_others_are_asked_to_endorse() -> None:
    running = start_batch(7, 1, 1)
    running.vote(*running.teachers)
    running.endorse(1, 2, 3, 4, 5, now=10)
    assert running.aggregator.tick(10 + PATIENCE.first_shares - 1).sends == ()
    assert asked(running.aggregator.tick(10 + PATIENCE.first_shares).sends) == (6, 7)


def test_who_fails_to_endorse_is_replaced_at_once() -> None:
    running = start_batch(7, 1, 1)
    running.vote(1, 2, 3, 4, 5, 6)
    first = asked(running.aggregator.receive(7, running.ballots[7], now=0).sends)
    liar, good = first[0], first[1]
    running.endorse(good)
    sends = running.aggregator.receive(liar, wrong_endorsement(running, liar), now=0).sends
    assert set(asked(sends)) == set(range(1, 8)) - set(first)
    assert set(running.faults) == {liar}


def test_who_fails_to_open_is_replaced_at_once() -> None:
    running = start_batch(7, 1, 1)
    running.vote(*running.teachers)
    running.endorse(1, 2, 3, 4, 5)
    running.aggregator.receive(2, encode(running.shares_of(2)), now=0)
    sends = running.aggregator.receive(1, shares_of_another_list(running, 1), now=0).sends
    assert set(asked(sends)) == {6, 7}


def test_a_list_is_given_up_when_too_few_endorse_it_in_time(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5, now=10)
    running.endorse(2, 3, now=11)
    running.aggregator.tick(10 + PATIENCE.opening - 1)
    assert running.status.stage is Stage.ENDORSEMENTS
    running.aggregator.tick(10 + PATIENCE.opening)
    assert running.outcome == Abort(
        reason="2 endorsements of the list, and 4 are needed", missing=(1, 4, 5), culprits=()
    )


def test_an_opening_is_given_up_after_its_time_and_says_who_was_missing(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5)
    running.endorse(1, 2, 3, 4, now=10)
    running.aggregator.receive(2, encode(running.shares_of(2)), now=11)
    running.aggregator.tick(10 + PATIENCE.opening - 1)
    assert running.status.stage is Stage.ANSWERS
    running.aggregator.tick(10 + PATIENCE.opening)
    assert running.outcome == Abort(
        reason="1 good decryption shares, and 4 are needed", missing=(1, 3, 4, 5), culprits=()
    )


def test_the_first_shares_of_a_teacher_stand_and_enough_of_them_open(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5)
    running.endorse(1, 2, 3, 4)
    for teacher in (1, 2, 3):
        for _ in range(2):
            running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
        assert running.outcome is None
    assert running.status.answerers == (1, 2, 3)
    running.aggregator.receive(4, encode(running.shares_of(4)), now=0)
    assert isinstance(running.outcome, Receipt)


def test_what_comes_before_its_time_is_not_a_fault(running: OneBatch) -> None:
    """A network may deliver late what belongs to an earlier attempt."""
    running.vote(1, 2)
    shares, endorsement = encode(running.shares_of(1)), running.endorsement_of(1)
    running.aggregator.receive(1, endorsement, now=0)
    running.aggregator.receive(1, shares, now=0)
    running.vote(3, 4, 5)
    assert running.status.endorsers == ()
    running.endorse(1, 2, 3, 4)
    running.aggregator.receive(1, proof_of(running, 1), now=0)
    assert running.faults == {}
    assert running.status.answerers == ()
    running.aggregator.receive(1, shares, now=0)
    assert running.status.answerers == (1,)


def test_after_the_first_shares_a_teachers_others_are_not_looked_at(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5)
    running.endorse(1, 2, 3, 4)
    running.aggregator.receive(1, encode(running.shares_of(1)), now=0)
    running.aggregator.receive(1, encode(running.shares_of(2)), now=0)
    assert running.faults == {}
    assert running.status.answerers == (1,)


def test_who_was_blamed_for_its_shares_gets_no_second_chance(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5)
    running.endorse(1, 2, 3, 4)
    running.aggregator.receive(1, shares_of_another_list(running, 1), now=0)
    running.aggregator.receive(1, encode(running.shares_of(1)), now=0)
    assert set(running.faults) == {1}
    assert running.status.answerers == ()


def test_shares_that_do_not_open_are_to_be_proved_and_all_others_are_asked() -> None:
    running = start_batch(7, 1, 1)
    running.vote(*running.teachers)
    first = liar, *honest = (1, 2, 3, 4, 5)
    running.endorse(*first)
    running.aggregator.receive(liar, wrong_shares(running, liar), now=0)
    for teacher in honest[:-1]:
        running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
    last = honest[-1]
    sends = running.aggregator.receive(last, encode(running.shares_of(last)), now=0).sends
    assert set(asked(sends, ProofRequest.KIND)) == set(first)
    assert set(asked(sends)) == {6, 7}
    for teacher in honest:
        running.aggregator.receive(teacher, proof_of(running, teacher), now=0)
    running.aggregator.receive(liar, proof_of(running, liar), now=0)
    assert set(running.faults) == {liar}
    running.endorse(6)
    sends = running.aggregator.receive(6, encode(running.shares_of(6)), now=0).sends
    assert asked(sends, ProofRequest.KIND) == (6,)
    assert running.outcome is None  # unproven shares are not opened with again
    running.aggregator.receive(6, proof_of(running, 6), now=0)
    assert isinstance(running.outcome, Receipt)


def test_who_keeps_back_the_proof_of_wrong_shares_is_named_and_who_is_only_slow_is_not() -> None:
    running = start_batch(7, 1, 1)
    running.vote(*running.teachers)
    first = liar, slow, *honest = (1, 2, 3, 4, 5)
    running.endorse(*first)
    running.aggregator.receive(liar, wrong_shares(running, liar), now=0)
    for teacher in (slow, *honest):
        running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
    running.endorse(6, 7)
    for teacher in (6, 7):
        running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
    for teacher in (*honest, 6, 7):
        running.aggregator.receive(teacher, proof_of(running, teacher), now=0)
    assert isinstance(running.outcome, Receipt)
    assert set(running.faults) == {liar}


def test_a_proof_that_nobody_asked_for_or_that_came_before_is_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever carries messages can repeat one without end, and a check takes a while."""
    running = start_batch(7, 1, 1)
    checked: list[int] = []
    monkeypatch.setattr(
        dppp.protocol.with_paillier.batch, "verify_shares", lambda *_, **__: checked.append(1)
    )
    running.vote(*running.teachers)
    running.endorse(1, 2, 3, 4, 5)
    running.aggregator.receive(2, encode(running.shares_of(2)), now=0)
    running.aggregator.receive(2, proof_of(running, 2), now=0)
    assert checked == []
    running.aggregator.receive(1, wrong_shares(running, 1), now=0)
    for teacher in (3, 4, 5):
        running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
    for _ in range(3):
        running.aggregator.receive(2, proof_of(running, 2), now=0)
    assert checked == [1]


def test_who_has_not_answered_is_reminded_of_what_it_was_asked() -> None:
    running = start_batch(7, 1, 1)
    assert [send.teacher for send in running.aggregator.remind().sends] == [1, 2, 3, 4, 5, 6, 7]
    running.vote(1, 2, 3, 4, 5)
    assert [send.teacher for send in running.aggregator.remind().sends] == [6, 7]
    running.vote(6)
    first = asked(running.aggregator.receive(7, running.ballots[7], now=0).sends)
    running.endorse(first[0])
    assert asked(running.aggregator.remind().sends) == first[1:]
    running.endorse(*first[1:])
    liar, *honest = first
    running.aggregator.receive(liar, wrong_shares(running, liar), now=0)
    assert asked(running.aggregator.remind().sends, CertifiedList.KIND) == tuple(honest)
    for teacher in honest:
        running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
    running.aggregator.receive(honest[0], proof_of(running, honest[0]), now=0)
    sends = running.aggregator.remind().sends
    to_prove = asked(sends, ProofRequest.KIND)
    assert to_prove == tuple(teacher for teacher in first if teacher != honest[0])
    assert set(asked(sends)) == set(range(1, 8)) - set(first)


def test_a_batch_may_begin_at_its_deadline_and_not_after_it(running: OneBatch) -> None:
    for nonce, now in (("in time", DEADLINE), ("late", DEADLINE + 1)):
        request = request_for(running.setting, [1], nonce=nonce, deadline=DEADLINE)
        if now > DEADLINE:
            with pytest.raises(InputError, match="deadline"):
                running.aggregator.start(request, now=now)
        else:
            assert len(running.aggregator.start(request, now=now).sends) == 5


def proof_of(running: OneBatch, teacher: int) -> bytes:
    """A proof of the shares that this teacher really made."""
    shares = running.shares_of(teacher)
    request = ProofRequest(
        task_id=shares.task_id,
        batch_id=shares.batch_id,
        list_hash=shares.list_hash,
        tallies=tallies_of(running.setting, list(running.ballots.values())),
    )
    signed = encode(sign(request, running.setting.aggregator_signer))
    return reply_of(running.teachers[teacher], signed)


def wrong_endorsement(running: OneBatch, teacher: int) -> bytes:
    """Of other tallies than the list has."""
    message = decode(running.endorsement_of(teacher), Endorsement)
    wrong = replace(message.statement, tally_hash=bytes(32))
    return running.signed(replace(message, statement=wrong), by=teacher)


def shares_of_another_list(running: OneBatch, teacher: int) -> bytes:
    message = replace(running.shares_of(teacher), list_hash=ListHash(bytes(32)))
    return running.signed(message, by=teacher)


def wrong_shares(running: OneBatch, teacher: int) -> bytes:
    public, message = running.setting.public, running.shares_of(teacher)
    shares = DecryptionShares.from_bytes(public, message.shares)
    elements = tuple(each * 4 % public.modulus for each in shares.elements)
    wrong = replace(shares, elements=elements).to_bytes(public)
    return running.signed(replace(message, shares=wrong), by=teacher)
