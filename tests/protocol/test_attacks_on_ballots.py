"""Attacks by colluding teachers: ballots and decryption shares that break the rules."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import gmpy2
import pytest
from gmpy2 import mpz
from tests.protocol.attacker import Attacker, NotOpened, take_out
from tests.protocol.one_batch import OneBatch, start_batch
from tests.protocol.parties import (
    Setting,
    batch_of,
    cast_anything,
    entries_of,
    new_ledger,
    new_teacher,
    open_by_primes,
    pack_unchecked,
    request_for,
    seeded,
    sent_to,
    set_up,
)
from tests.protocol.recording import RecordingAggregator
from tests.small_federation import reply_of

import dppp.protocol.with_paillier.ballots
import dppp.protocol.with_paillier.batch
from dppp.errors import ListFault, PeerFault
from dppp.paillier.decryption import root
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.encoding import byte_length
from dppp.paillier.encryption import Ciphertext, read_ciphertexts, write_ciphertexts
from dppp.paillier.packing import Packing
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.events import Abort, Send
from dppp.protocol.lists import require_complete
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BallotRequest,
    CertifiedList,
    SignedShares,
    ballot_context,
)
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import ballots_offset
from dppp.protocol.signing import sign
from dppp.protocol.teacher import Teacher
from dppp.protocol.transcript import Transcript
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_paillier.ballots import read_ballot

pytestmark = pytest.mark.attack

VICTIM, COLLUDER = 1, 5
SHIFT = 100
"""The power 2^100 lifts a copied ballot above the sum of all honest ones."""


@pytest.fixture
def attacker() -> Attacker:
    return Attacker(set_up(5, 1, 1), colluders=(COLLUDER,))


def _signed_by_colluder(setting: Setting, ballot: Ballot) -> bytes:
    mine = replace(ballot, teacher=COLLUDER)
    return encode(sign(mine, setting.signer(COLLUDER)))


def _raised(setting: Setting, data: bytes, power: int) -> bytes:
    """The victim's ballot raised to a power, under the colluder's name, with the victim's proof."""
    ballot, public = decode(data, Ballot), setting.public
    ciphertexts = [
        Ciphertext(gmpy2.powmod(each, power, public.ciphertext_modulus))
        for each in read_ciphertexts(public, ballot.ciphertexts)
    ]
    return _signed_by_colluder(
        setting, replace(ballot, ciphertexts=write_ciphertexts(public, ciphertexts))
    )


def _read_the_victim_out_of_the_high_bits(attacker: Attacker) -> None:
    request = request_for(attacker.setting, [7])
    ballots = attacker.collect(request)
    ballots[COLLUDER] = _raised(attacker.setting, ballots[VICTIM], 1 << SHIFT)
    (opened,) = attacker.open(batch_of(attacker.setting, request), list(ballots.values()))
    assert [opened >> SHIFT] == open_by_primes(attacker.setting, ballots[VICTIM])


def test_a_ballot_copied_as_a_power_of_anothers_is_refused_by_name(attacker: Attacker) -> None:
    with pytest.raises(NotOpened) as caught:
        _read_the_victim_out_of_the_high_bits(attacker)
    for refusal in caught.value.refusals.values():
        assert isinstance(refusal, ListFault)
        assert refusal.culprits == (COLLUDER,)


def test_without_proofs_the_victims_vote_would_be_read_out_of_the_high_bits(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dppp.protocol.with_paillier.ballots, "verify_ballots", lambda *_: None)
    _read_the_victim_out_of_the_high_bits(attacker)


def _count_the_victim_twice(attacker: Attacker) -> None:
    """The same ciphertext and the same proof, under another name."""
    request = request_for(attacker.setting, [7])
    ballots = attacker.collect(request)
    ballots[COLLUDER] = _signed_by_colluder(attacker.setting, decode(ballots[VICTIM], Ballot))
    attacker.open(batch_of(attacker.setting, request), list(ballots.values()))


def test_a_proof_does_not_hold_under_another_name(attacker: Attacker) -> None:
    with pytest.raises(NotOpened) as caught:
        _count_the_victim_twice(attacker)
    refusals = caught.value.refusals.values()
    assert {each.culprits for each in refusals if isinstance(each, PeerFault)} == {(COLLUDER,)}
    assert all(isinstance(each, PeerFault) for each in refusals)


def test_if_proofs_were_not_bound_to_the_teacher_a_ballot_could_be_counted_twice(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(monkeypatch, ballot_context, 'teacher.to_bytes(8, "big")', 'b""')
    _count_the_victim_twice(attacker)


def _replay(attacker: Attacker, old: bytes) -> None:
    """Put an old ballot of the victim in the place of its new one."""
    request = request_for(attacker.setting, [7], nonce="new")
    ballots = attacker.collect(request, of=(2, 3, 4))
    listed = [
        old,
        *ballots.values(),
        _cast(attacker, sent_to(attacker.setting, request, COLLUDER), [0, 0, 0]),
    ]
    attacker.open(batch_of(attacker.setting, request), listed, of=(2, 3, 4))


def _of_another_batch(attacker: Attacker) -> bytes:
    return attacker.collect(request_for(attacker.setting, [7], nonce="old"))[VICTIM]


def _of_another_task(_: Attacker) -> bytes:
    other = Attacker(set_up(5, 1, 1, "another task"), colluders=(COLLUDER,))
    return other.collect(request_for(other.setting, [7], nonce="new"))[VICTIM]


@pytest.mark.parametrize("stale", [_of_another_batch, _of_another_task])
def test_a_stale_ballot_is_refused_by_name(
    attacker: Attacker, stale: Callable[[Attacker], bytes]
) -> None:
    with pytest.raises(NotOpened) as caught:
        _replay(attacker, stale(attacker))
    for refusal in caught.value.refusals.values():
        assert isinstance(refusal, ListFault)
        assert refusal.culprits == (VICTIM,)


def test_if_ids_and_proofs_were_not_compared_an_old_ballot_would_count_again(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    defence = "(ballot.task_id, ballot.batch_id) != (task.task_id, batch)"
    take_out(monkeypatch, read_ballot, defence, "False")
    with pytest.raises(NotOpened):  # the proof is bound to the batch: a second defence
        _replay(attacker, _of_another_batch(attacker))
    monkeypatch.setattr(dppp.protocol.with_paillier.ballots, "verify_ballots", lambda *_: None)
    _replay(attacker, _of_another_batch(attacker))


def _list_a_ballot_twice(attacker: Attacker) -> None:
    """One of three honest teachers is listed twice to look like a fourth."""
    request = request_for(attacker.setting, [7])
    ballots = attacker.collect(request)
    colluders = _cast(attacker, sent_to(attacker.setting, request, COLLUDER), [0, 0, 0])
    listed = [ballots[1], ballots[2], ballots[3], ballots[3], colluders]
    attacker.open(batch_of(attacker.setting, request), listed, of=(1, 2, 3))


def test_a_ballot_listed_twice_is_refused(attacker: Attacker) -> None:
    with pytest.raises(NotOpened) as caught:
        _list_a_ballot_twice(attacker)
    assert all("twice" in str(refusal) for refusal in caught.value.refusals.values())


def test_if_teachers_were_not_distinct_a_ballot_could_be_listed_twice(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(
        monkeypatch, require_complete, "list(participants) != sorted(set(participants))", "False"
    )
    _list_a_ballot_twice(attacker)


# The real aggregator, and a colluder that answers what it likes.

Answer = Callable[[Attacker, bytes], list[bytes]]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What came of a batch in which the colluder is the first to answer everything."""

    outcome: Receipt | Abort
    transcript: Transcript | None
    faults: dict[int, str]
    asked_for: set[str]
    """The kinds of message that the colluder got."""


def _run(attacker: Attacker, colluder: Answer, *, nonce: int = 0) -> Run:
    setting = attacker.setting
    request = request_for(setting, [7], nonce=nonce)
    batch = batch_of(setting, request)
    aggregator = RecordingAggregator(setting, MemoryBatchStore())
    now, asked_for = 0, set()
    sends: list[Send] = list(aggregator.start(request, now=now).sends)
    while (outcome := aggregator.outcome(batch)) is None:
        answers: list[tuple[int, bytes]] = []
        for send in sorted(sends, key=lambda send: send.teacher != COLLUDER):
            if send.teacher == COLLUDER:
                asked_for.add(kind_of(send.data))
                answers += [(COLLUDER, data) for data in colluder(attacker, send.data)]
            else:
                answer = reply_of(attacker.teachers[send.teacher], send.data, now=now)
                answers.append((send.teacher, answer))
        sends = []
        for teacher, data in answers:
            sends += aggregator.receive(teacher, data, now=now).sends
        if not sends:
            now += 1
            sends += aggregator.tick(now).sends
    return Run(
        outcome=outcome,
        transcript=aggregator.transcript(batch),
        faults=aggregator.faults(batch),
        asked_for=asked_for,
    )


def _run_with_its_shares(attacker: Attacker, make_colluder: Callable[[], Answer]) -> Run:
    """The aggregator asks t voters by lot; take the first batch in which the colluder is drawn."""
    runs = (_run(attacker, make_colluder(), nonce=nonce) for nonce in itertools.count())
    return next(run for run in runs if CertifiedList.KIND in run.asked_for)


def _cast(attacker: Attacker, data: bytes, entries: Sequence[int]) -> bytes:
    batch = decode(data, BallotRequest).batch_id
    return cast_anything(
        attacker.setting,
        COLLUDER,
        batch,
        pack_unchecked(attacker.setting, entries),
        source=seeded("colluder").randbytes,
    )


def _ballots(run: Run) -> tuple[bytes, ...]:
    assert run.transcript is not None
    return decode(run.transcript.ballot_list, BallotList).ballots


def _true_counts(attacker: Attacker, run: Run) -> list[int]:
    ballots = _ballots(run)
    offset = ballots_offset(attacker.setting.task, len(ballots))
    opened = [entries_of(attacker.setting, each, 1) for each in ballots]
    return [sum(slot) - offset for slot in zip(*opened, strict=True)]


def _share_times(change: Callable[[mpz, mpz], mpz]) -> Answer:
    """A colluder that votes zero, changes its decryption share, and proves what it can."""
    setting = set_up(5, 1, 1)
    ledger = new_ledger(setting, COLLUDER, MemoryStore())
    teacher = new_teacher(setting, COLLUDER, ledger)

    def answer(attacker: Attacker, data: bytes) -> list[bytes]:
        if kind_of(data) == BallotRequest.KIND:
            ballot = _cast(attacker, data, [0, 0, 0])
            batch = decode(data, BallotRequest).batch_id
            return [ledger.record_ballot(setting.task.task_id, batch, [batch], ballot)]
        answered = reply_of(teacher, data)
        if kind_of(answered) == SignedShares.KIND:
            return [_with_changed_share(setting, answered, change)]
        return [answered]

    return answer


def _with_changed_share(setting: Setting, data: bytes, change: Callable[[mpz, mpz], mpz]) -> bytes:
    message, modulus = decode(data, SignedShares), setting.public.modulus
    (element,) = DecryptionShares.from_bytes(setting.public, message.shares).elements
    changed, length = change(element, modulus), byte_length(modulus)
    tail = changed.to_bytes(max(length, byte_length(changed + 1)), "big")
    forged = replace(message, shares=message.shares[:-length] + tail)
    return encode(sign(forged, setting.signer(COLLUDER)))


def test_a_share_times_a_power_of_the_generator_changes_nothing(attacker: Attacker) -> None:
    """(1 + n)^k is 1 modulo n, where root decryption has its shares."""
    run = _run_with_its_shares(
        attacker,
        lambda: _share_times(lambda share, modulus: share * (1 + modulus) ** 3 % modulus),
    )
    assert isinstance(run.outcome, Receipt)
    assert list(run.outcome.answers[0].counts) == _true_counts(attacker, run)
    assert run.faults == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda share, modulus: share * (1 + modulus) ** 3 % modulus**2,
        lambda share, modulus: share * 4 % modulus,
        lambda *_: mpz(1),
        lambda *_: mpz(0),
    ],
    ids=["unreduced modulo n", "times four", "one", "zero"],
)
def test_a_wrong_share_is_named_and_the_release_is_right(
    attacker: Attacker, change: Callable[[mpz, mpz], mpz]
) -> None:
    run = _run_with_its_shares(attacker, lambda: _share_times(change))
    assert isinstance(run.outcome, Receipt)
    assert list(run.outcome.answers[0].counts) == _true_counts(attacker, run)
    assert set(run.faults) == {COLLUDER}


class _SilentAtOpening:
    """A teacher that votes and then vanishes."""

    def __init__(self, teacher: Teacher) -> None:
        self._teacher = teacher

    def handle(self, data: bytes, *, now: int) -> bytes:
        is_asked = kind_of(data) == BallotRequest.KIND
        return reply_of(self._teacher, data, now=now) if is_asked else b""


def _need_a_wrong_share(attacker: Attacker) -> Receipt | Abort:
    """With one teacher gone, the colluder's share is among the four that are needed."""
    attacker.teachers[4] = _SilentAtOpening(attacker.teachers[4])  # type: ignore[assignment]
    return _run(attacker, _share_times(lambda share, modulus: share * 4 % modulus)).outcome


def test_a_wrong_share_that_is_needed_ends_in_an_abort_that_names_it(attacker: Attacker) -> None:
    outcome = _need_a_wrong_share(attacker)
    assert isinstance(outcome, Abort)
    assert outcome.culprits == (COLLUDER,)
    assert outcome.missing == (4,)


def test_if_the_opening_were_not_checked_a_wrong_share_would_go_unnamed(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(monkeypatch, root._open, "remainder % public.modulus != 1", "False")
    monkeypatch.setattr(dppp.protocol.with_paillier.batch, "verify_openings", lambda *_: None)
    outcome = _need_a_wrong_share(attacker)
    assert not (isinstance(outcome, Abort) and outcome.culprits)


def _vote_too_much(attacker: Attacker, data: bytes) -> list[bytes]:
    """All bits of the first slot, which the sum of the others makes run over."""
    if kind_of(data) != BallotRequest.KIND:
        return []
    return [_cast(attacker, data, [(1 << attacker.setting.task.packing.slot_bits) - 1, 0, 0])]


def _vote_behind_the_last_slot(attacker: Attacker, data: bytes) -> list[bytes]:
    if kind_of(data) != BallotRequest.KIND:
        return []
    return [_cast(attacker, data, [0, 0, 0, 1])]


def _vote_above_the_bound(attacker: Attacker, data: bytes) -> list[bytes]:
    task = attacker.setting.task
    if kind_of(data) != BallotRequest.KIND:
        return []
    return [_cast(attacker, data, [0, len(task.teachers) * task.entry_bound, 0])]


@pytest.mark.parametrize("vote", [_vote_behind_the_last_slot, _vote_above_the_bound])
def test_an_oversize_vote_is_a_named_abort_and_no_release(attacker: Attacker, vote: Answer) -> None:
    outcome = _run(attacker, vote).outcome
    assert isinstance(outcome, Abort)
    assert "not made by the rules" in outcome.reason


@pytest.mark.parametrize("vote", [_vote_behind_the_last_slot, _vote_above_the_bound])
def test_if_slots_were_not_checked_an_oversize_vote_would_be_released(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch, vote: Answer
) -> None:
    monkeypatch.setattr(Packing, "_check_sums", staticmethod(lambda *_: None))
    take_out(
        monkeypatch,
        Packing._unpack_one,
        "plaintext < 0 or plaintext >> (held * self.slot_bits)",
        "False",
    )
    outcome = _run(attacker, vote).outcome
    assert isinstance(outcome, Receipt)


def test_an_overflow_is_a_bias_of_the_neighbour_and_no_more(attacker: Attacker) -> None:
    """What is known to remain: within the slots' range a colluder's entries are counted as given.

    A slot that runs over adds one to the next. The opened integer is still the sum of what was
    encrypted, and every honest share of noise is in it.
    """
    run = _run(attacker, _vote_too_much)
    outcome, ballots = run.outcome, _ballots(run)
    assert isinstance(outcome, Receipt)
    total = sum((open_by_primes(attacker.setting, each)[0] for each in ballots), mpz(0))
    sums = attacker.setting.task.packing.unpack([total], 3, contributions=len(ballots))
    offset = ballots_offset(attacker.setting.task, len(ballots))
    assert outcome.answers[0].counts == tuple(each - offset for each in sums)


def _forged_ballot(running: OneBatch) -> bytes:
    """What a broker's operator can put under the victim's subject: anything but a signature."""
    plaintexts = pack_unchecked(running.setting, [0, 0, 0])
    source = seeded("broker").randbytes
    return cast_anything(
        running.setting, COLLUDER, running.batch, plaintexts, source=source, claimed=VICTIM
    )


@pytest.mark.parametrize("channel", [VICTIM, COLLUDER])
def test_nobody_is_thrown_out_for_what_it_did_not_sign(channel: int) -> None:
    running = start_batch()
    running.aggregator.receive(channel, _forged_ballot(running), now=0)
    running.vote(VICTIM)
    assert running.status.voters == (VICTIM,)
    assert running.faults == {}


def test_if_the_channel_were_enough_a_broker_would_throw_teachers_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_out(monkeypatch, Aggregator.receive, "except SignatureFault:", "except ArithmeticError:")
    running = start_batch()
    running.aggregator.receive(VICTIM, _forged_ballot(running), now=0)
    running.vote(VICTIM)
    assert running.status.voters == ()
    assert set(running.faults) == {VICTIM}
