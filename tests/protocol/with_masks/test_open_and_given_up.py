"""An attempt is opened or given up, never both; and who is asked about a seal looks who signed it.

The attacker holds the aggregator's key and colluder 5. With the ledger's rule taken out, it opens
an attempt and has it withdrawn: then it reads a vote and gets the charge back. With the signature
of a dealer not looked at, it makes seals up and is shown the keys of two honest teachers.
"""

from dataclasses import replace

import pytest
from tests.protocol.attacker import take_out
from tests.protocol.with_masks.by_hand import ByHand
from tests.protocol.with_masks.federation import Federation, set_up
from tests.protocol.with_masks.test_planted_faults import VICTIM, is_read, seeds_from

from dppp.errors import AnswerGiven, ListNotCertified, SignatureFault
from dppp.masks.ballots import Header, digest_of_seals, seal_at
from dppp.masks.blame import SealedRow
from dppp.masks.dealing import expand_root, seed_row_bytes
from dppp.masks.epoch_keys import Epoch, EpochKey, derive_pair_keys
from dppp.masks.sealing import Purpose, open_one
from dppp.privacy.ledger.batch import BatchAccount
from dppp.protocol.messages import UNSIGNED
from dppp.protocol.wire import decode
from dppp.protocol.with_masks.disputes import Disputes
from dppp.protocol.with_masks.messages import (
    MAC_BYTES,
    Complaint,
    PublishedKey,
    SeedRows,
    ShownRoot,
    votes_seed,
)
from dppp.protocol.with_masks.teacher import MaskSide, said_in

pytestmark = pytest.mark.attack

DEALER, COMPLAINER = 2, 1


@pytest.fixture
def hand() -> ByHand:
    return ByHand(Federation(set_up()))


def opened_and_given_back(hand: ByHand) -> tuple[bool, list[int]]:
    """Whether the victim's vote is read, and what the ledgers have charged in the end."""
    hand.endorse_all()
    answers = {each: decode(hand.answer(each), SeedRows) for each in hand.voters}
    seeds = seeds_from(hand, answers, hand.voters)
    withdrawals = [hand.withdraw(each) for each in hand.voters]
    shown = decode(hand.ask(VICTIM, hand.root_request(withdrawals)), ShownRoot)
    epoch = Epoch(task_id=hand.task.task_id, number=hand.roster.epoch)
    secret = expand_root(hand.task.parameters, epoch, shown.root).secret.coefficients
    for each in hand.voters:
        teacher = hand.federation.teachers[each]
        teacher.handle(hand.refund_notice(withdrawals), now=hand.federation.now)
    charged = [hand.federation.charged(each) for each in hand.voters]
    return is_read(hand, seeds[hand.voters.index(VICTIM)], secret), charged


def test_what_was_opened_is_neither_given_up_nor_given_back(hand: ByHand) -> None:
    with pytest.raises(AnswerGiven):
        opened_and_given_back(hand)
    assert [hand.federation.charged(each) for each in hand.voters] == [2] * 5


def test_if_an_answer_could_be_followed_by_a_withdrawal_a_vote_would_be_read_for_nothing(
    hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchAccount, "_require_unanswered", lambda _: None)
    assert opened_and_given_back(hand) == (True, [0] * 5)


def seed_row_read(hand: ByHand) -> bytes:
    """The row that an honest dealer sealed to an honest teacher, from what that one is made to say.

    The evidence is a header in the dealer's name, over seals that open for nobody.
    """
    ballot = hand.ballots[DEALER]
    rubbish = bytes(len(ballot.seed_seals))
    header = Header.from_bytes(ballot.header)
    made_up = replace(header, seed_seals_digest=digest_of_seals(rubbish)).to_bytes()
    evidence = hand.evidence(
        DEALER, Purpose.SEED_ROW, header=made_up, header_signature=UNSIGNED, seals=rubbish
    )
    said = decode(hand.ask(COMPLAINER, evidence), Complaint)
    epoch = Epoch(task_id=hand.task.task_id, number=hand.roster.epoch)
    published = [decode(each, PublishedKey) for each in hand.roster.keys]
    keys = {each.teacher: EpochKey(teacher=each.teacher, public=each.public) for each in published}
    pair = derive_pair_keys(said.pair_secret, epoch, keys[COMPLAINER], keys[DEALER])
    place = SealedRow(
        epoch=epoch,
        votes_seed=votes_seed(hand.task.task_id, hand.batch, hand.attempt),
        dealer=DEALER,
        recipient=COMPLAINER,
        purpose=Purpose.SEED_ROW,
        head_digest=header.head_digest,
        sealed=seal_at(ballot.seed_seals, COMPLAINER - 1, len(published)),
    )
    return open_one(
        pair.sealing_key,
        place.sealed,
        purpose=place.purpose,
        dealer=DEALER,
        recipient=COMPLAINER,
        context=place.context,
        length=seed_row_bytes(hand.task.parameters),
    )


def test_nobody_complains_about_seals_that_somebody_made_up_in_a_dealers_name(
    hand: ByHand,
) -> None:
    with pytest.raises(SignatureFault):
        seed_row_read(hand)


def test_if_a_dealers_signature_were_not_looked_at_rows_of_honest_teachers_would_be_read(
    hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(
        monkeypatch,
        Disputes._opens,
        "verify_signature(self._desk.task, SignedHeader.in_evidence(evidence))",
        "None",
    )
    row = seed_row_read(hand)
    hand.endorse(COMPLAINER)
    (opened,) = hand.federation.side(COMPLAINER)._opened.values()
    start = (DEALER - 1) * len(row)
    assert opened.seed_rows[start : start + len(row)] == row


def test_a_sum_of_zeros_fits_and_opens_nothing_that_t_did_not_endorse(hand: ByHand) -> None:
    """The sum of check blocks is the aggregator's word, so secrecy rests on the endorsements."""
    hand.endorse_all()
    check_sum, secret = (bytes(len(each)) for each in hand.sum_bytes)
    asked = {"check_sum": check_sum, "secret": secret}
    with pytest.raises(ListNotCertified, match="3 endorsements"):
        hand.answer(VICTIM, endorsers=(1, 2, 3), **asked)
    assert decode(hand.answer(VICTIM, endorsers=(1, 2, 3, 4), **asked), SeedRows).rows


def answer_with_word_of_a_stranger() -> SeedRows:
    """Three of a list of four endorsed it, and colluder 5, which is not in it, says so too."""
    hand = ByHand(Federation(set_up()), voters=(1, 2, 3, 4))
    statement = hand.endorse(VICTIM).statement
    for each in (2, 3, 4):
        hand.endorse(each)
    macs = hand.federation.side(5)._ring.roster(hand.roster.hash).make_macs(said_in(statement))
    of_stranger = macs[(VICTIM - 1) * MAC_BYTES : VICTIM * MAC_BYTES]
    asked = hand.certified_for(VICTIM, endorsers=(1, 2, 3, 5), macs={5: of_stranger})
    return decode(hand.ask(VICTIM, asked), SeedRows)


def test_the_word_of_one_who_is_not_in_the_list_does_not_count() -> None:
    with pytest.raises(ListNotCertified, match="3 endorsements"):
        answer_with_word_of_a_stranger()


def test_if_it_counted_the_list_would_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, MaskSide._said_so, "named & set(statement.participants)", "named")
    assert answer_with_word_of_a_stranger().rows
