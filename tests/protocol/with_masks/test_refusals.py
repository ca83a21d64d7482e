"""What a teacher refuses under masks, each with the same message unchanged as the control."""

import os
from dataclasses import replace

import pytest
from tests.protocol.with_masks.by_hand import ByHand
from tests.protocol.with_masks.colluders import deal_badly
from tests.protocol.with_masks.federation import BEGIN, Federation, set_up

from dppp.errors import (
    AnswerGiven,
    AttemptOver,
    BallotUnknown,
    BatchRefunded,
    EpochKeyFault,
    EpochOver,
    ListFault,
    ListNotCertified,
    ListNotEndorsed,
    NotFromAggregator,
    OwnBallotMissing,
    RosterUnknown,
    RowsNotGiven,
    SecondList,
    SignatureFault,
    SumDoesNotFit,
    TooFewWithdrawals,
    Withdrawn,
    WrongTask,
)
from dppp.masks.ballots import HEADER_DIGESTS_BYTES, Header
from dppp.masks.dealing import digest_of_check_block, digest_of_seed, prepare
from dppp.masks.sealing import Purpose
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.messages import (
    MAC_BYTES,
    Complaint,
    MaskedBallot,
    Objection,
    PublishedKey,
    RefundNotice,
    Roster,
    SeedRows,
    ShownRoot,
    ShownRows,
    Withdrawal,
    WithdrawalRequest,
)

pytestmark = pytest.mark.attack

T = 4  # of five teachers with one colluder
ONE = 1


@pytest.fixture
def hand() -> ByHand:
    return ByHand(Federation(set_up()))


@pytest.fixture
def endorsed(hand: ByHand) -> ByHand:
    hand.endorse_all()
    return hand


# No answer without t endorsements of the same list.


def test_an_answer_is_given_for_t_good_macs(endorsed: ByHand) -> None:
    assert kind_of(endorsed.answer(ONE, endorsers=(1, 2, 3, 4))) == SeedRows.KIND


def test_an_answer_is_given_for_t_good_signatures_without_macs(endorsed: ByHand) -> None:
    zeros = dict.fromkeys(range(1, 6), bytes(MAC_BYTES))
    answer = endorsed.answer(ONE, endorsers=(2, 3, 4, 5), macs=zeros, has_signatures=True)
    assert kind_of(answer) == SeedRows.KIND


@pytest.mark.parametrize("has_signatures", [False, True])
def test_t_minus_one_endorsements_open_nothing(endorsed: ByHand, has_signatures: bool) -> None:
    with pytest.raises(ListNotCertified):
        endorsed.answer(ONE, endorsers=(1, 2, 3), has_signatures=has_signatures)


@pytest.mark.parametrize("has_signatures", [False, True])
def test_one_endorser_named_twice_counts_once(endorsed: ByHand, has_signatures: bool) -> None:
    with pytest.raises(ListNotCertified):
        endorsed.answer(ONE, endorsers=(1, 2, 3, 3), has_signatures=has_signatures)


@pytest.mark.parametrize("forged", [bytes(MAC_BYTES), b"\x01" * MAC_BYTES])
def test_forged_macs_open_nothing(endorsed: ByHand, forged: bytes) -> None:
    with pytest.raises(ListNotCertified):
        endorsed.answer(ONE, endorsers=(1, 2, 3, 4), macs={4: forged})


def test_a_mac_for_another_teacher_opens_nothing(endorsed: ByHand) -> None:
    with pytest.raises(ListNotCertified):
        endorsed.answer(ONE, endorsers=(1, 2, 3, 4), macs={4: endorsed.mac(4, 2)})


def test_a_teachers_own_mac_does_not_come_back_as_anothers(endorsed: ByHand) -> None:
    with pytest.raises(ListNotCertified):
        endorsed.answer(ONE, endorsers=(1, 2, 3, 4), macs={4: endorsed.mac(ONE, 4)})


def test_macs_of_another_batch_open_nothing(endorsed: ByHand) -> None:
    other = ByHand(endorsed.federation, roster=endorsed.roster, seed="other")
    other.endorse_all()
    with pytest.raises(ListNotCertified):
        endorsed.answer(ONE, endorsers=(1, 2, 3, 4), macs={4: other.mac(4, ONE)})


def test_signatures_of_another_batch_open_nothing(endorsed: ByHand) -> None:
    other = ByHand(endorsed.federation, roster=endorsed.roster, seed="other")
    other.endorse_all()
    endorsed.endorsements[4] = other.endorsements[4]
    with pytest.raises(ListNotCertified):
        endorsed.answer(ONE, endorsers=(1, 2, 3, 4), has_signatures=True)


def test_macs_of_another_list_of_the_batch_open_nothing(hand: ByHand) -> None:
    for each in (1, 2, 3):
        hand.endorse(each)
    short = hand.endorse(4, participants=(1, 2, 3, 4))
    hand.endorse(5)
    assert short.statement.participants == (1, 2, 3, 4)
    with pytest.raises(ListNotCertified):
        hand.ask(ONE, hand.certified_for(ONE, (1, 2, 3, 4)))


def test_macs_of_another_attempt_open_nothing(endorsed: ByHand) -> None:
    withdrawals = [endorsed.withdraw(each) for each in range(1, 6)]
    again = ByHand(endorsed.federation, roster=endorsed.roster, attempt=2, withdrawals=withdrawals)
    again.endorse_all()
    with pytest.raises(ListNotCertified):
        again.answer(ONE, endorsers=(1, 2, 3, 4), macs={4: endorsed.mac(4, ONE)})
    assert kind_of(again.answer(ONE, endorsers=(1, 2, 3, 4))) == SeedRows.KIND


def test_certified_sums_for_another_teacher_open_nothing(endorsed: ByHand) -> None:
    with pytest.raises(ListNotCertified):
        endorsed.ask(ONE, endorsed.certified_for(2))


@pytest.mark.parametrize("part", ["check_sum", "secret"])
def test_a_sum_that_does_not_fit_opens_nothing(endorsed: ByHand, part: str) -> None:
    check_sum, secret = endorsed.sum_bytes
    changed = bytearray({"check_sum": check_sum, "secret": secret}[part])
    changed[1] ^= 0x70
    with pytest.raises(SumDoesNotFit):
        endorsed.answer(ONE, **{part: bytes(changed)})
    with pytest.raises(SumDoesNotFit):
        endorsed.answer(ONE, **{part: bytes(changed[:-2])})


def test_nothing_is_opened_that_the_teacher_did_not_endorse(hand: ByHand) -> None:
    for each in (2, 3, 4, 5):
        hand.endorse(each)
    with pytest.raises(ListNotEndorsed):
        hand.answer(ONE)


def test_nothing_is_opened_without_the_aggregators_signature(endorsed: ByHand) -> None:
    forged = bytearray(endorsed.certified_for(ONE))
    forged[-1] ^= 1
    with pytest.raises(NotFromAggregator):
        endorsed.ask(ONE, bytes(forged))


# Lists.


def test_a_second_list_in_one_attempt_is_refused(endorsed: ByHand) -> None:
    with pytest.raises(SecondList):
        endorsed.endorse(ONE, participants=(1, 2, 3, 4))
    endorsed.federation.start_teacher(ONE)
    endorsed.federation.teachers[ONE].handle(encode(endorsed.roster), now=BEGIN)
    with pytest.raises(SecondList):
        endorsed.endorse(ONE, participants=(1, 2, 3, 4))


def test_a_list_without_the_own_header_is_refused(hand: ByHand) -> None:
    with pytest.raises(OwnBallotMissing):
        hand.endorse(ONE, participants=(2, 3, 4, 5))
    for digest in range(2):
        digests = bytearray(hand.list_for(ONE).header_digests)
        digests[32 * digest] ^= 1
        with pytest.raises(OwnBallotMissing):
            hand.endorse(ONE, header_digests=bytes(digests))


def test_a_list_with_fewer_than_n_minus_d_ballots_is_refused(hand: ByHand) -> None:
    with pytest.raises(ListFault):
        hand.endorse(ONE, participants=(1, 2, 3))
    assert hand.endorse(ONE, participants=(1, 2, 3, 4)).statement.participants == (1, 2, 3, 4)


@pytest.mark.parametrize("participants", [(1, 2, 3, 3), (2, 1, 3, 4), (1, 2, 2, 3, 4)])
def test_a_list_with_one_twice_or_out_of_order_is_refused(
    hand: ByHand, participants: tuple[int, ...]
) -> None:
    with pytest.raises(ListFault):
        hand.endorse(ONE, participants=participants)


def test_a_list_for_another_teacher_is_refused(hand: ByHand) -> None:
    with pytest.raises(OwnBallotMissing):
        hand.ask(ONE, hand.federation.sign(hand.list_for(2)))


def test_a_list_of_another_roster_is_refused(hand: ByHand) -> None:
    shorter = hand.federation.take_keys(members=(1, 2, 3, 4))
    for other in (shorter.hash, bytes(32)):
        with pytest.raises(OwnBallotMissing):
            hand.endorse(ONE, roster_hash=other)


def test_a_list_of_another_attempt_or_batch_is_refused(hand: ByHand) -> None:
    with pytest.raises(BallotUnknown):
        hand.endorse(ONE, attempt=2)
    with pytest.raises(BallotUnknown):
        hand.endorse(ONE, batch_id=bytes(32))


def test_a_list_with_a_header_that_its_dealer_never_made_is_objected_to(hand: ByHand) -> None:
    """The seals are bound to salt, check block and seed: those of another header do not open."""
    digests = bytearray(hand.list_for(ONE).header_digests)
    digests[HEADER_DIGESTS_BYTES] ^= 1
    data = hand.federation.sign(hand.list_for(ONE, header_digests=bytes(digests)))
    assert decode(hand.ask(ONE, data), Objection).dealers == (2,)


def test_repeated_messages_get_the_stored_bytes(endorsed: ByHand) -> None:
    asked = endorsed.federation.cast_request(endorsed.roster)
    assert decode(endorsed.ask(ONE, asked), MaskedBallot) == endorsed.ballots[ONE]
    before = endorsed.endorsements[ONE]
    answer = endorsed.answer(ONE)
    endorsed.federation.start_teacher(ONE)
    endorsed.federation.teachers[ONE].handle(encode(endorsed.roster), now=BEGIN)
    assert decode(endorsed.ask(ONE, asked), MaskedBallot) == endorsed.ballots[ONE]
    assert endorsed.endorse(ONE) == before
    assert endorsed.answer(ONE) == answer


# One of the two words, never both.


@pytest.mark.parametrize("is_restarted", [False, True])
def test_nothing_is_opened_after_a_withdrawal(endorsed: ByHand, is_restarted: bool) -> None:
    said = endorsed.withdraw(ONE)
    if is_restarted:
        endorsed.federation.start_teacher(ONE)
        endorsed.federation.teachers[ONE].handle(encode(endorsed.roster), now=BEGIN)
        endorsed.endorse(ONE)
    with pytest.raises(Withdrawn):
        endorsed.answer(ONE)
    assert endorsed.withdraw(ONE) == said


@pytest.mark.parametrize("is_restarted", [False, True])
def test_nothing_is_withdrawn_after_an_answer(endorsed: ByHand, is_restarted: bool) -> None:
    endorsed.answer(ONE)
    if is_restarted:
        endorsed.federation.start_teacher(ONE)
    with pytest.raises(AnswerGiven):
        endorsed.withdraw(ONE)


def test_one_who_withdrew_before_it_endorsed_endorses_nothing(hand: ByHand) -> None:
    hand.withdraw(ONE)
    with pytest.raises(Withdrawn):
        hand.endorse(ONE)


def test_one_who_cast_no_ballot_has_nothing_to_withdraw(hand: ByHand) -> None:
    hand.request = hand.federation.request(seed="never asked")
    with pytest.raises(OwnBallotMissing):
        hand.withdraw(ONE)


# What is shown only where t teachers withdrew.


def bad_withdrawals(hand: ByHand) -> dict[str, list[bytes]]:
    good = [hand.withdrawal_of(each) for each in (2, 3, 4)]
    return {
        "none": [],
        "t - 1": good,
        "one twice": [*good, good[0]],
        "one of another batch": [*good, hand.withdrawal_of(5, batch_id=bytes(32))],
        "one of another attempt": [*good, hand.withdrawal_of(5, attempt=2)],
        "one of another task": [*good, hand.withdrawal_of(5, task_id=bytes(32))],
        "one forged": [*good, hand.withdrawal_of(5, signer=2)],
        "one of a stranger": [*good, hand.withdrawal_of(6, signer=2)],
    }


BAD = ("none", "t - 1", "one twice", "one of another batch", "one of another attempt",
       "one of another task", "one forged", "one of a stranger")  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_without_t_withdrawals_nothing_is_shown_redone_or_given_back(
    endorsed: ByHand, bad: str
) -> None:
    shown = bad_withdrawals(endorsed)[bad]
    asked = {
        "root": endorsed.root_request(shown),
        "rows": endorsed.row_request(Purpose.SECRET_ROW, shown),
        "refund": endorsed.refund_notice(shown),
        "retry": endorsed.federation.cast_request(endorsed.roster, attempt=2, withdrawals=shown),
    }
    for data in asked.values():
        with pytest.raises((TooFewWithdrawals, SignatureFault)):
            endorsed.federation.teachers[ONE].handle(data, now=BEGIN)
    assert endorsed.federation.charged(ONE) == 2
    assert kind_of(endorsed.answer(ONE)) == SeedRows.KIND  # it is in attempt 1 as before


def test_with_t_withdrawals_roots_and_rows_of_secrets_are_shown(endorsed: ByHand) -> None:
    shown = [endorsed.withdraw(each) for each in (2, 3, 4, 5)]
    assert kind_of(endorsed.ask(ONE, endorsed.root_request(shown))) == ShownRoot.KIND
    rows = endorsed.ask(ONE, endorsed.row_request(Purpose.SECRET_ROW, shown))
    assert kind_of(rows) == ShownRows.KIND


def test_rows_of_seeds_are_not_shown_before_they_were_given(endorsed: ByHand) -> None:
    shown = [endorsed.withdraw(each) for each in (2, 3, 4, 5)]
    with pytest.raises(RowsNotGiven):
        endorsed.ask(ONE, endorsed.row_request(Purpose.SEED_ROW, shown))


def test_rows_of_seeds_are_shown_after_they_were_given_and_are_the_same(endorsed: ByHand) -> None:
    given = decode(endorsed.answer(ONE), SeedRows)
    shown = decode(endorsed.ask(ONE, endorsed.row_request(Purpose.SEED_ROW)), ShownRows)
    assert shown.rows == given.rows


def test_rows_of_seeds_are_not_shown_by_one_who_withdrew(endorsed: ByHand) -> None:
    endorsed.withdraw(ONE)
    with pytest.raises(Withdrawn):
        endorsed.ask(ONE, endorsed.row_request(Purpose.SEED_ROW))


def test_the_root_does_not_give_the_seed(endorsed: ByHand) -> None:
    """Two dealings of the same root have other seeds: it is drawn apart."""
    side = endorsed.federation.side(ONE)
    roster = side._ring.roster(endorsed.roster.hash)
    header = Header.from_bytes(endorsed.ballots[ONE].header)
    draws = [header.salt]
    again = prepare(
        side._parameters,
        roster.as_dealer(),
        lambda size: draws.pop() if draws else os.urandom(size),
    )
    assert digest_of_check_block(again.dealing.check_block) == header.check_digest
    assert digest_of_seed(again.seed) != header.seed_digest


# The secret of a pair.


def test_the_secret_of_a_pair_is_shown_about_a_seal_that_its_dealer_signed() -> None:
    federation = Federation(set_up())
    federation.corrupt(2, deal_badly(break_seals=[(ONE, Purpose.SECRET_ROW)]))
    hand = ByHand(federation)
    assert kind_of(hand.ask(ONE, hand.evidence(2))) == Complaint.KIND


@pytest.mark.parametrize("purpose", [1, 2])
def test_no_secret_of_a_pair_is_shown_about_a_seal_that_opens(hand: ByHand, purpose: int) -> None:
    with pytest.raises(ListFault):
        hand.ask(ONE, hand.evidence(2, purpose))


@pytest.mark.parametrize("purpose", [1, 2])
def test_no_secret_of_a_pair_is_shown_about_bytes_that_the_dealer_did_not_sign(
    hand: ByHand, purpose: int
) -> None:
    ballot = hand.ballots[2]
    seals = ballot.secret_seals if purpose == 1 else ballot.seed_seals
    changed = bytes([seals[0] ^ 1]) + seals[1:]
    with pytest.raises(ListFault):
        hand.ask(ONE, hand.evidence(2, purpose, seals=changed))
    for field in range(6):
        header = bytearray(ballot.header)
        header[32 * field] ^= 1
        with pytest.raises(SignatureFault):
            hand.ask(ONE, hand.evidence(2, purpose, header=bytes(header)))
    other = ByHand(hand.federation, roster=hand.roster, seed="other").ballots[2]
    with pytest.raises(SignatureFault):
        hand.ask(ONE, hand.evidence(2, purpose, header=other.header, seals=changed,
                                    header_signature=other.signature))  # fmt: skip
    colluder = replace(ballot, teacher=3, header=ballot.header)
    forged = sign(colluder, hand.federation.setting.signer(3)).signature
    with pytest.raises(SignatureFault):
        hand.ask(ONE, hand.evidence(2, purpose, header_signature=forged))


def test_no_secret_of_a_pair_is_shown_for_the_seals_of_the_other_kind(hand: ByHand) -> None:
    with pytest.raises(ListFault):
        hand.ask(ONE, hand.evidence(2, 1, seals=hand.ballots[2].seed_seals))


def test_no_secret_of_a_pair_is_shown_under_another_roster(hand: ByHand) -> None:
    shorter = hand.federation.take_keys(members=(1, 2, 3, 4))
    with pytest.raises(SignatureFault):
        hand.ask(ONE, hand.evidence(2, roster_hash=shorter.hash))


# Rosters.


def published(federation: Federation, roster: Roster) -> list[PublishedKey]:
    return [decode(each, PublishedKey) for each in roster.keys]


def send_roster(federation: Federation, keys: list[bytes], epoch: int) -> None:
    made = Roster(task_id=federation.task.task_id, epoch=epoch, keys=tuple(keys))
    federation.teachers[ONE].handle(federation.sign(made), now=federation.now)


def test_a_roster_with_a_key_that_a_colluder_copied_is_refused() -> None:
    federation = Federation(set_up())
    roster = federation.take_keys()
    victim = published(federation, roster)[1]
    copied = sign(replace(victim, teacher=3), federation.setting.signer(3))
    keys = [encode(copied) if n == 2 else each for n, each in enumerate(roster.keys)]
    with pytest.raises(EpochKeyFault):
        send_roster(federation, keys, roster.epoch)


def test_a_roster_with_a_key_that_its_teacher_did_not_sign_is_refused() -> None:
    federation = Federation(set_up())
    roster = federation.take_keys()
    forged = sign(published(federation, roster)[1], federation.setting.signer(3))
    keys = [encode(forged) if n == 1 else each for n, each in enumerate(roster.keys)]
    with pytest.raises(SignatureFault):
        send_roster(federation, keys, roster.epoch)


def test_a_roster_without_the_own_key_or_with_an_old_one_is_refused() -> None:
    federation = Federation(set_up())
    roster = federation.take_keys()
    with pytest.raises(ListFault):
        send_roster(federation, list(roster.keys[1:]), roster.epoch)
    other = Federation(set_up()).take_keys()
    with pytest.raises(ListFault):
        send_roster(federation, [other.keys[0], *roster.keys[1:]], roster.epoch)


def test_a_roster_that_is_too_short_doubled_or_out_of_order_is_refused() -> None:
    federation = Federation(set_up())
    keys = list(federation.take_keys().keys)
    epoch = federation.task.epoch_at(federation.now)
    for wrong in (keys[:3], [*keys, keys[0]], [keys[1], keys[0], *keys[2:]], []):
        with pytest.raises(ListFault):
            send_roster(federation, wrong, epoch)
    send_roster(federation, keys[:4], epoch)


@pytest.mark.parametrize("away", [-2, 2, 1000])
def test_keys_and_rosters_of_far_epochs_are_refused(away: int) -> None:
    federation = Federation(set_up())
    epoch = federation.task.epoch_at(federation.now)
    with pytest.raises(EpochOver):
        federation.take_keys(epoch + away)
    keys = list(federation.take_keys().keys)
    with pytest.raises(EpochOver):
        send_roster(federation, keys, epoch + away)


def test_keys_of_another_epoch_in_a_roster_are_refused() -> None:
    federation = Federation(set_up())
    epoch = federation.task.epoch_at(federation.now)
    federation.take_keys()
    later = list(federation.take_keys(epoch + 1).keys)
    with pytest.raises(ListFault):
        send_roster(federation, later, epoch)


def test_a_key_for_a_far_epoch_does_not_make_the_aggregator_forget_the_others() -> None:
    """One teacher's signed key of an epoch that nobody asked for."""
    federation = Federation(set_up())
    far = federation.task.epoch_at(federation.now) + 1_000_000
    output = federation.start(federation.request())
    output = federation.step(output)
    forged = decode(federation.sent[2][0], PublishedKey)
    later = Federation(set_up())
    later.now = BEGIN + 1_000_000 * 86_400
    later.take_keys()
    key = later.homes[2].secrets.get(later.task.task_id, far)
    assert key is not None
    data = later.side(2)._ring.publish(far, now=later.now)
    assert decode(data, PublishedKey).epoch == far != forged.epoch
    federation.aggregator.receive(2, data, now=federation.now)
    federation.run(output)
    assert not federation.blamed
    federation.require_right_sums(federation.end)  # type: ignore[arg-type]


# Attempts, refunds and epochs.


def test_a_second_attempt_shares_no_salt_seed_secret_or_noise_with_the_first(
    endorsed: ByHand,
) -> None:
    withdrawals = [endorsed.withdraw(each) for each in range(1, 6)]
    again = ByHand(endorsed.federation, roster=endorsed.roster, attempt=2, withdrawals=withdrawals)
    for each in range(1, 6):
        first = Header.from_bytes(endorsed.ballots[each].header)
        second = Header.from_bytes(again.ballots[each].header)
        assert not set(first._parts()) & set(second._parts())


def test_a_third_attempt_does_not_follow_the_first(endorsed: ByHand) -> None:
    shown = [endorsed.withdrawal_of(each, attempt=2) for each in range(1, 6)]
    asked = endorsed.federation.cast_request(endorsed.roster, attempt=3, withdrawals=shown)
    with pytest.raises(BallotUnknown):
        endorsed.ask(ONE, asked)


def test_nothing_is_given_for_the_first_attempt_once_the_second_has_begun(
    endorsed: ByHand,
) -> None:
    withdrawals = [endorsed.withdraw(each) for each in (2, 3, 4, 5)]
    ByHand(endorsed.federation, roster=endorsed.roster, attempt=2, withdrawals=withdrawals)
    with pytest.raises(AttemptOver):
        endorsed.answer(ONE)
    with pytest.raises(AttemptOver):
        endorsed.ask(ONE, endorsed.root_request(withdrawals))
    with pytest.raises(AttemptOver):
        endorsed.federation.teachers[ONE].handle(endorsed.refund_notice(withdrawals), now=BEGIN)


def test_one_who_answered_neither_retries_nor_is_refunded(endorsed: ByHand) -> None:
    endorsed.answer(ONE)
    shown = [endorsed.withdraw(each) for each in (2, 3, 4, 5)]
    retry = endorsed.federation.cast_request(endorsed.roster, attempt=2, withdrawals=shown)
    for asked in (retry, endorsed.refund_notice(shown)):
        with pytest.raises(AnswerGiven):
            endorsed.federation.teachers[ONE].handle(asked, now=BEGIN)
    assert endorsed.federation.charged(ONE) == 2


def test_a_refund_is_given_once_and_ends_the_batch(endorsed: ByHand) -> None:
    shown = [endorsed.withdraw(each) for each in (2, 3, 4, 5)]
    notice = endorsed.refund_notice(shown)
    endorsed.federation.teachers[ONE].handle(notice, now=BEGIN)
    assert endorsed.federation.charged(ONE) == 0
    retry = endorsed.federation.cast_request(endorsed.roster, attempt=2, withdrawals=shown)
    for asked in (notice, retry, endorsed.certified_for(ONE)):
        with pytest.raises(BatchRefunded):
            endorsed.federation.teachers[ONE].handle(asked, now=BEGIN)
    assert endorsed.federation.charged(ONE) == 0


def test_the_refund_of_a_second_attempt_is_given(endorsed: ByHand) -> None:
    withdrawals = [endorsed.withdraw(each) for each in (2, 3, 4, 5)]
    again = ByHand(endorsed.federation, roster=endorsed.roster, attempt=2, withdrawals=withdrawals)
    shown = [again.withdraw(each) for each in (2, 3, 4, 5)]
    again.federation.teachers[ONE].handle(again.refund_notice(shown), now=BEGIN)
    assert again.federation.charged(ONE) == 0


def test_a_request_that_names_another_epoch_than_its_roster_is_refused() -> None:
    federation = Federation(set_up())
    roster = federation.take_keys()
    later = replace(roster, epoch=roster.epoch + 1)
    asked = federation.cast_request(later)
    with pytest.raises(RosterUnknown):
        federation.teachers[ONE].handle(asked, now=BEGIN)


@pytest.mark.parametrize("is_asked_between", [False, True])
def test_after_two_epochs_nothing_of_an_old_batch_can_be_opened(
    endorsed: ByHand, is_asked_between: bool
) -> None:
    federation = endorsed.federation
    shown = [endorsed.withdraw(each) for each in (2, 3, 4, 5)]
    certified = endorsed.certified_for(ONE)
    old_list = federation.sign(endorsed.list_for(ONE))
    federation.now += 2 * 86_400
    teacher = federation.teachers[ONE]
    if is_asked_between:
        teacher.forget(now=federation.now)
    for asked in (old_list, certified, endorsed.root_request(shown), endorsed.evidence(2)):
        with pytest.raises(RosterUnknown):
            teacher.handle(asked, now=federation.now)
    with pytest.raises(EpochOver):
        teacher.handle(encode(endorsed.roster), now=federation.now)
    assert federation.homes[ONE].secrets.get(federation.task.task_id, endorsed.roster.epoch) is None
    side = federation.side(ONE)
    assert not side._opened
    assert not side._ring._rosters


def test_within_the_next_epoch_a_batch_can_still_end(endorsed: ByHand) -> None:
    endorsed.federation.now += 86_400
    assert kind_of(endorsed.answer(ONE)) == SeedRows.KIND


# Several tasks on one ledger.


def test_withdrawals_of_one_task_neither_end_nor_pay_back_a_batch_of_another() -> None:
    """Colluders may have a task of their own with a lower threshold, on the same ledgers."""
    federation, other = Federation(set_up()), Federation(set_up(3, 1, 0, name="other"))
    hand = ByHand(federation)
    hand.endorse_all()
    other.homes[ONE] = federation.homes[ONE]
    teacher = other.start_teacher(ONE)
    request = WithdrawalRequest(task_id=other.task.task_id, batch_id=hand.batch, attempt=1)
    with pytest.raises(WrongTask):
        teacher.handle(other.sign(request), now=BEGIN)
    shown = tuple(
        encode(sign(made, other.setting.signer(made.teacher)))
        for made in (
            Withdrawal(task_id=other.task.task_id, batch_id=hand.batch, attempt=1, teacher=each)
            for each in (1, 2, 3)
        )
    )
    notice = RefundNotice(
        task_id=other.task.task_id, batch_id=hand.batch, attempt=1, withdrawals=shown
    )
    with pytest.raises(WrongTask):
        teacher.handle(other.sign(notice), now=BEGIN)
    assert federation.charged(ONE) == 2
    assert kind_of(hand.answer(ONE)) == SeedRows.KIND
