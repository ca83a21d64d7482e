"""A batch at the aggregator: what comes too late, when voting ends, and whom it asks to open."""

from dataclasses import replace

import pytest
from tests.protocol.one_batch import DEADLINE, OneBatch, start_batch
from tests.protocol.parties import (
    cast_anything,
    list_of,
    pack_unchecked,
    request_for,
    seeded,
)

from dppp.errors import InputError
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.groups import absolute
from dppp.protocol.aggregator import Send
from dppp.protocol.batch import Abort, Patience, Phase
from dppp.protocol.messages import BallotList, ProofRequest
from dppp.protocol.transcript import Transcript
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


def served(sends: list[Send]) -> BallotList:
    (data,) = {send.data for send in sends}
    return decode(data, BallotList)


def asked(sends: list[Send]) -> tuple[int, ...]:
    return tuple(send.teacher for send in sends if kind_of(send.data) == BallotList.KIND)


def test_the_first_ballot_of_a_teacher_stands(running: OneBatch) -> None:
    running.vote(1, 2)
    running.aggregator.receive(1, second_ballot(running, 1), now=0)
    running.vote(3, 4)
    sends = running.aggregator.receive(5, running.ballots[5], now=0)
    assert served(sends).ballots == tuple(running.ballots.values())


def test_a_ballot_after_the_list_changes_nothing(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4)
    sends = running.aggregator.tick(PATIENCE.after_quorum)
    assert running.aggregator.receive(5, running.ballots[5], now=PATIENCE.after_quorum) == []
    assert running.progress.voters == (1, 2, 3, 4)
    assert running.faults == {}
    assert served(sends).ballots == tuple(running.ballots[each] for each in (1, 2, 3, 4))


def test_who_was_blamed_gets_no_second_chance(running: OneBatch) -> None:
    running.aggregator.receive(5, running.ballots[1], now=0)
    running.vote(5)
    assert running.progress.voters == ()
    assert set(running.faults) == {5}


def test_voting_goes_on_for_a_while_once_there_are_enough(running: OneBatch) -> None:
    running.vote(1, 2, 3, now=10)
    running.aggregator.tick(500)
    assert running.progress.phase is Phase.VOTING
    running.vote(4, now=500)
    running.aggregator.tick(500 + PATIENCE.after_quorum - 1)
    assert running.progress.phase is Phase.VOTING
    running.aggregator.tick(500 + PATIENCE.after_quorum)
    assert running.progress.phase is Phase.OPENING


def test_the_wait_begins_with_the_ballot_that_is_enough(running: OneBatch) -> None:
    running.vote(1, 2, 3, now=10)
    running.vote(4, now=10 + PATIENCE.after_quorum - 1)
    running.aggregator.tick(10 + PATIENCE.after_quorum)
    assert running.progress.phase is Phase.VOTING


def test_a_later_ballot_does_not_lengthen_the_wait() -> None:
    running = start_batch(7, 1, 2)
    running.vote(1, 2, 3, 4, 5, now=10)
    running.vote(6, now=10 + PATIENCE.after_quorum - 1)
    running.aggregator.tick(10 + PATIENCE.after_quorum)
    assert running.progress.phase is Phase.OPENING


def test_too_few_ballots_are_waited_for_until_the_deadline(running: OneBatch) -> None:
    running.vote(1, 2, 3)
    running.aggregator.tick(DEADLINE - 1)
    assert running.progress.phase is Phase.VOTING
    running.aggregator.tick(DEADLINE)
    assert running.outcome == Abort(
        reason="3 good ballots, and 4 are needed for enough noise", missing=(4, 5), culprits=()
    )


def test_when_all_have_answered_nobody_is_waited_for(running: OneBatch) -> None:
    for liar in (4, 5):
        running.aggregator.receive(liar, running.ballots[1], now=0)
    running.vote(1, 2, 3)
    assert isinstance(running.outcome, Abort)
    assert running.outcome.culprits == (4, 5)
    assert running.outcome.missing == ()


def test_as_many_are_asked_to_open_as_are_needed_and_all_when_that_takes_too_long() -> None:
    running = start_batch(7, 1, 1)
    running.vote(1, 2, 3, 4, 5, 6)
    first = asked(running.aggregator.receive(7, running.ballots[7], now=10))
    assert len(first) == running.setting.public.threshold == 5
    assert running.aggregator.tick(10 + PATIENCE.first_shares - 1) == []
    everybody = asked(running.aggregator.tick(10 + PATIENCE.first_shares))
    assert everybody == (1, 2, 3, 4, 5, 6, 7)
    assert running.aggregator.tick(10 + PATIENCE.first_shares + 1) == []


def test_who_fails_to_open_is_replaced_at_once() -> None:
    running = start_batch(7, 1, 1)
    running.vote(1, 2, 3, 4, 5, 6)
    first = asked(running.aggregator.receive(7, running.ballots[7], now=0))
    liar, good = first[0], first[1]
    others = set(range(1, 8)) - {liar, good}
    running.aggregator.receive(good, encode(running.shares_of(good)), now=0)
    sends = running.aggregator.receive(liar, encode(running.shares_of(good)), now=0)
    assert set(asked(sends)) == others


def test_an_opening_is_given_up_after_its_time_and_says_who_was_missing(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5, now=10)
    running.aggregator.receive(2, encode(running.shares_of(2)), now=11)
    running.aggregator.tick(10 + PATIENCE.opening - 1)
    assert running.progress.phase is Phase.OPENING
    running.aggregator.tick(10 + PATIENCE.opening)
    assert running.outcome == Abort(
        reason="1 good decryption shares, and 4 are needed", missing=(1, 3, 4, 5), culprits=()
    )


def test_the_first_shares_of_a_teacher_stand_and_enough_of_them_open(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5)
    for teacher in (1, 2, 3):
        for _ in range(2):
            running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
        assert running.outcome is None
    assert running.progress.sharers == (1, 2, 3)
    running.aggregator.receive(4, encode(running.shares_of(4)), now=0)
    assert isinstance(running.outcome, Transcript)


def test_shares_before_the_list_and_proofs_before_the_shares_are_no_fault(
    running: OneBatch,
) -> None:
    """A network may deliver late what belongs to an earlier attempt."""
    running.vote(1, 2)
    shares = encode(running.shares_of(1))
    running.aggregator.receive(1, shares, now=0)
    running.vote(3, 4, 5)
    running.aggregator.receive(1, proof_of(running, 1), now=0)
    assert running.faults == {}
    assert running.progress.sharers == ()
    running.aggregator.receive(1, shares, now=0)
    assert running.progress.sharers == (1,)


def test_after_the_first_shares_a_teachers_others_are_not_looked_at(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5)
    running.aggregator.receive(1, encode(running.shares_of(1)), now=0)
    running.aggregator.receive(1, encode(running.shares_of(2)), now=0)
    assert running.faults == {}
    assert running.progress.sharers == (1,)


def test_who_was_blamed_for_its_shares_gets_no_second_chance(running: OneBatch) -> None:
    running.vote(1, 2, 3, 4, 5)
    running.aggregator.receive(1, encode(running.shares_of(2)), now=0)
    running.aggregator.receive(1, encode(running.shares_of(1)), now=0)
    assert set(running.faults) == {1}
    assert running.progress.sharers == ()


def test_shares_that_do_not_open_are_to_be_proved_and_all_others_are_asked() -> None:
    running = start_batch(7, 1, 1)
    running.vote(1, 2, 3, 4, 5, 6)
    first = asked(running.aggregator.receive(7, running.ballots[7], now=0))
    liar, *honest = first
    running.aggregator.receive(liar, wrong_shares(running, liar), now=0)
    for teacher in honest[:-1]:
        running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
    last = honest[-1]
    sends = running.aggregator.receive(last, encode(running.shares_of(last)), now=0)
    to_prove = {each.teacher for each in sends if kind_of(each.data) == ProofRequest.KIND}
    assert to_prove == set(first)
    assert set(asked(sends)) == set(range(1, 8)) - set(first)
    for teacher in honest:
        running.aggregator.receive(teacher, proof_of(running, teacher), now=0)
    running.aggregator.receive(liar, proof_of(running, liar), now=0)
    assert set(running.faults) == {liar}
    other = next(iter(set(range(1, 8)) - set(first)))
    running.aggregator.receive(other, encode(running.shares_of(other)), now=0)
    assert running.outcome is None  # unproven shares are not opened with again
    running.aggregator.receive(other, proof_of(running, other), now=0)
    assert isinstance(running.outcome, Transcript)


def test_who_has_not_answered_is_reminded_of_what_it_was_asked() -> None:
    running = start_batch(7, 1, 1)
    assert [send.teacher for send in running.aggregator.remind()] == [1, 2, 3, 4, 5, 6, 7]
    running.vote(1, 2, 3, 4, 5)
    assert [send.teacher for send in running.aggregator.remind()] == [6, 7]
    running.vote(6)
    liar, *honest = first = asked(running.aggregator.receive(7, running.ballots[7], now=0))
    running.aggregator.receive(liar, wrong_shares(running, liar), now=0)
    assert asked(running.aggregator.remind()) == tuple(honest)
    for teacher in honest:
        running.aggregator.receive(teacher, encode(running.shares_of(teacher)), now=0)
    running.aggregator.receive(honest[0], proof_of(running, honest[0]), now=0)
    sends = running.aggregator.remind()
    to_prove = [each.teacher for each in sends if kind_of(each.data) == ProofRequest.KIND]
    assert to_prove == [teacher for teacher in first if teacher != honest[0]]
    assert set(asked(sends)) == set(range(1, 8)) - set(first)


def test_a_batch_may_begin_at_its_deadline_and_not_after_it(running: OneBatch) -> None:
    for nonce, now in (("in time", DEADLINE), ("late", DEADLINE + 1)):
        request = request_for(running.setting, [1], nonce=nonce, deadline=DEADLINE)
        if now > DEADLINE:
            with pytest.raises(InputError, match="deadline"):
                running.aggregator.start(request, now=now)
        else:
            assert len(running.aggregator.start(request, now=now)) == 5


def proof_of(running: OneBatch, teacher: int) -> bytes:
    """A proof of the shares that this teacher really made."""
    running.shares_of(teacher)
    everybody = list_of(running.setting, running.batch, list(running.ballots.values()))
    request = encode(ProofRequest(ballot_list=everybody))
    return running.teachers[teacher].handle(request, now=0)


def wrong_shares(running: OneBatch, teacher: int) -> bytes:
    public, message = running.setting.public, running.shares_of(teacher)
    shares = DecryptionShares.from_bytes(public, message.shares)
    elements = tuple(absolute(each * 4, public.modulus) for each in shares.elements)
    wrong = replace(shares, elements=elements).to_bytes(public)
    return running.signed(replace(message, shares=wrong), by=teacher)
