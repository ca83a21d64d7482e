"""Each rule by which an aggregator leaves a message out, and whom it blames."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from gmpy2 import mpz
from tests.protocol.parties import (
    Setting,
    batch_of,
    cast_anything,
    list_of,
    new_ledger,
    new_teacher,
    request_for,
    seeded,
    set_up,
)

from dppp.errors import BallotFault, InputError, ListFault, SignatureFault
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.privacy.ledger_store import MemoryStore
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.ballots import check_list, read_ballot
from dppp.protocol.batch import Phase
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.messages import Ballot, BallotList, BatchId, SignedShares
from dppp.protocol.signing import sign, signer_of, verify_signature
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import decode, encode

LIAR, OTHER = 5, 1
NOW = 0


@dataclass(frozen=True, kw_only=True)
class Running:
    """A batch of one query, with five teachers that keep the rules."""

    setting: Setting
    aggregator: Aggregator
    teachers: dict[int, Teacher]
    batch: BatchId
    ballots: dict[int, bytes]

    def vote(self, *teachers: int) -> None:
        for teacher in teachers:
            self.aggregator.receive(teacher, self.ballots[teacher], now=NOW)

    def shares_of(self, teacher: int) -> SignedShares:
        """What a teacher answers to the list of all ballots."""
        data = list_of(self.setting, self.batch, [self.ballots[each] for each in self.teachers])
        return decode(self.teachers[teacher].handle(data, now=NOW), SignedShares)

    def signed(self, message: Ballot | SignedShares, by: int = LIAR) -> bytes:
        return encode(sign(message, signer_of(self.setting.signing_keys[by - 1])))

    @property
    def faults(self) -> dict[int, str]:
        return self.aggregator.faults(self.batch)


@pytest.fixture
def running() -> Running:
    setting = set_up(5, 1, 1)
    aggregator = Aggregator(task=setting.task, public=setting.public, store=MemoryBatchStore())
    teachers = {
        index: new_teacher(setting, index, new_ledger(setting, index, MemoryStore()))
        for index in setting.everybody
    }
    request = request_for(setting, [1])
    aggregator.start(request, now=NOW)
    ballots = {
        index: teacher.handle(encode(request), now=NOW) for index, teacher in teachers.items()
    }
    return Running(
        setting=setting,
        aggregator=aggregator,
        teachers=teachers,
        batch=batch_of(setting, request),
        ballots=ballots,
    )


def _of_another(running: Running) -> bytes:
    return running.ballots[OTHER]


def _too_many_ciphertexts(running: Running) -> bytes:
    plaintexts, source = [mpz(0), mpz(0)], seeded("liar").randbytes
    return cast_anything(running.setting, LIAR, running.batch, plaintexts, source=source)


def _no_ciphertext_of_the_key(running: Running) -> bytes:
    ballot = decode(running.ballots[LIAR], Ballot)
    largest = b"\xff" * len(ballot.ciphertexts)
    return running.signed(replace(ballot, ciphertexts=largest))


def _half_a_ciphertext(running: Running) -> bytes:
    ballot = decode(running.ballots[LIAR], Ballot)
    return running.signed(replace(ballot, ciphertexts=ballot.ciphertexts[:-1]))


def _no_proof(running: Running) -> bytes:
    return running.signed(replace(decode(running.ballots[LIAR], Ballot), proof=b""))


def _signed_by_another(running: Running) -> bytes:
    return running.signed(decode(running.ballots[LIAR], Ballot), by=OTHER)


def _of_nobody(running: Running) -> bytes:
    return running.signed(replace(decode(running.ballots[LIAR], Ballot), teacher=6))


def _of_teacher_zero(running: Running) -> bytes:
    """Whose key would be the last one in a list counted from the end."""
    return running.signed(replace(decode(running.ballots[LIAR], Ballot), teacher=0))


def _of_a_negative_teacher(running: Running) -> bytes:
    return encode(replace(decode(running.ballots[LIAR], Ballot), teacher=-1))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_of_a_negative_teacher, "no teacher -1"),
        (_of_another, "sent a ballot of teacher 1"),
        (_too_many_ciphertexts, "has 2 ciphertexts, expected 1"),
        (_no_ciphertext_of_the_key, "not one of this key"),
        (_half_a_ciphertext, "not one of this key"),
        (_no_proof, "not one of this key"),
        (_signed_by_another, "not signed by teacher 5"),
        (_of_nobody, "no teacher 6"),
        (_of_teacher_zero, "no teacher 0"),
    ],
)
def test_a_ballot_that_is_not_good_is_left_out_and_its_sender_blamed(
    running: Running, make: Callable[[Running], bytes], reason: str
) -> None:
    running.aggregator.receive(LIAR, make(running), now=NOW)
    assert set(running.faults) == {LIAR}
    assert reason in running.faults[LIAR]
    running.vote(1, 2, 3, 4)
    progress = running.aggregator.progress(running.batch)
    assert progress is not None
    assert progress.phase is Phase.OPENING
    assert progress.voters == (1, 2, 3, 4)


def _of_another_list(running: Running) -> bytes:
    return running.signed(replace(running.shares_of(LIAR), list_hash=bytes(32)))


def _in_anothers_name(running: Running) -> bytes:
    return encode(running.shares_of(OTHER))


def _with_anothers_index(running: Running) -> bytes:
    """The sender's own signature on what another teacher computed."""
    theirs = running.shares_of(OTHER).shares
    return running.signed(replace(running.shares_of(LIAR), shares=theirs))


def _for_two_ciphertexts(running: Running) -> bytes:
    public, message = running.setting.public, running.shares_of(LIAR)
    shares = DecryptionShares.from_bytes(public, message.shares)
    twice = replace(shares, elements=shares.elements * 2)
    return running.signed(replace(message, shares=twice.to_bytes(public)))


def _unsigned(running: Running) -> bytes:
    return encode(replace(running.shares_of(LIAR), signature=bytes(64)))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_of_another_list, "another list or for another"),
        (_in_anothers_name, "another list or for another"),
        (_with_anothers_index, "do not fit"),
        (_for_two_ciphertexts, "do not fit"),
        (_unsigned, "not signed by teacher 5"),
    ],
)
def test_shares_that_are_not_good_are_left_out_and_their_sender_blamed(
    running: Running, make: Callable[[Running], bytes], reason: str
) -> None:
    running.vote(*running.teachers)
    running.aggregator.receive(LIAR, make(running), now=NOW)
    assert set(running.faults) == {LIAR}
    assert reason in running.faults[LIAR]
    progress = running.aggregator.progress(running.batch)
    assert progress is not None
    assert progress.sharers == ()


def test_who_did_not_vote_cannot_help_to_open(running: Running) -> None:
    """A teacher that is not in the list has noise in none of the counts."""
    running.vote(1, 2, 3, 4)
    running.aggregator.tick(NOW + 500)
    four = list_of(running.setting, running.batch, [running.ballots[each] for each in (1, 2, 3, 4)])
    helper = decode(running.teachers[OTHER].handle(four, now=NOW), SignedShares)
    late = running.signed(replace(helper, teacher=LIAR))
    running.aggregator.receive(LIAR, late, now=NOW)
    assert "another list or for another" in running.faults[LIAR]


def test_what_is_for_teachers_is_dropped_and_nobody_is_blamed(running: Running) -> None:
    for_teachers = list_of(running.setting, running.batch, list(running.ballots.values()))
    assert running.aggregator.receive(LIAR, for_teachers, now=NOW) == []
    assert running.faults == {}


def test_what_is_about_an_unknown_batch_is_dropped_and_nobody_is_blamed(running: Running) -> None:
    ballot = replace(decode(running.ballots[LIAR], Ballot), batch_id=BatchId(bytes(32)))
    assert running.aggregator.receive(LIAR, running.signed(ballot), now=NOW) == []
    assert running.faults == {}


def test_a_batch_that_nobody_stored_cannot_be_adopted(running: Running) -> None:
    with pytest.raises(InputError, match="not in the store"):
        running.aggregator.adopt(BatchId(bytes(32)), now=NOW)


def test_a_ballot_of_another_batch_or_task_is_not_even_looked_at(running: Running) -> None:
    setting, data = running.setting, running.ballots[OTHER]
    other_task = set_up(5, 1, 1, "another task").task
    for task, batch in ((setting.task, BatchId(bytes(32))), (other_task, running.batch)):
        with pytest.raises(BallotFault, match="another task or batch") as caught:
            read_ballot(task, setting.public, data, batch=batch, size=1)
        assert caught.value.culprits == (OTHER,)


def test_a_list_of_another_task_is_refused(running: Running) -> None:
    data = list_of(running.setting, running.batch, list(running.ballots.values()))
    other = set_up(5, 1, 1, "another task").task
    with pytest.raises(ListFault, match="another task"):
        check_list(other, running.setting.public, decode(data, BallotList), size=1)


@pytest.mark.parametrize("teacher", [0, 6])
def test_a_signature_of_nobody_is_no_signature(running: Running, teacher: int) -> None:
    message = replace(decode(running.ballots[LIAR], Ballot), teacher=teacher)
    signed = decode(running.signed(message), Ballot)
    with pytest.raises(SignatureFault, match=f"no teacher {teacher}"):
        verify_signature(running.setting.task, signed)
