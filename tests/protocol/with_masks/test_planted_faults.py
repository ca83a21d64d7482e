"""Rules of masks taken out one by one: each attack fails against the code and succeeds without.

The attacker holds the aggregator's key and colluder 5, and reads everything on the wire. Reading a
vote means that the victim's entries come out, vote plus noise share, of its ballot alone.

The other planted faults are at their layer: another ℓ in tests/masks/test_what_rows_tell.py, a
secret used twice and seeds on the wire in tests/masks/test_weakened_masks.py.
"""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.protocol.attacker import take_out
from tests.protocol.with_masks.by_hand import ByHand
from tests.protocol.with_masks.colluders import add_to_rows, deal_badly, endorse_another_sum
from tests.protocol.with_masks.federation import Federation, set_up
from tests.protocol.with_masks.test_forged_transcripts import Released

import dppp.protocol.teacher
from dppp.errors import (
    AnswerGiven,
    ListNotCertified,
    NotFromAggregator,
    OpeningFault,
    OwnBallotMissing,
    SecondList,
    SumDoesNotFit,
    TooFewWithdrawals,
    TranscriptError,
)
from dppp.masks.ballots import Header
from dppp.masks.dealing import (
    digest_of_seed,
    expand_root,
    root_of,
    seed_row_bytes,
)
from dppp.masks.epoch_keys import Epoch, EpochSecret, own_row_key
from dppp.masks.opening import (
    add_blocks,
    add_votes,
    open_counts,
    recover_secret,
    recover_seeds,
    require_fits,
    secret_from_bytes,
    secret_to_bytes,
)
from dppp.masks.packing import pack_bits, unpack_blocks
from dppp.masks.ring import ShortPolynomial
from dppp.masks.sealing import Purpose
from dppp.protocol.messages import UNSIGNED
from dppp.protocol.release import make_releases
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks import verification
from dppp.protocol.with_masks.disputes import Disputes
from dppp.protocol.with_masks.keys import MemoryEpochSecrets
from dppp.protocol.with_masks.messages import (
    MAC_BYTES,
    CertifiedSum,
    RowRequest,
    SeedRows,
    ShownRows,
    votes_seed,
)
from dppp.protocol.with_masks.teacher import MaskSide

pytestmark = pytest.mark.attack

VICTIM, COLLUDER = 1, 5
COUNTS = 4  # two queries, two classes


@pytest.fixture
def hand() -> ByHand:
    return ByHand(Federation(set_up()))


def entries_of(hand: ByHand, teacher: int) -> NDArray[np.int64]:
    return hand.federation.entries[teacher, hand.batch, hand.attempt]


def is_read(hand: ByHand, seed: bytes, secret: NDArray[np.int64]) -> bool:
    """Whether the victim's ballot, without its pad and mask, is what the victim entered."""
    parameters = hand.task.parameters
    bare = add_votes(parameters, [hand.ballots[VICTIM].votes], [seed], counts=COUNTS)
    place = votes_seed(hand.task.task_id, hand.batch, hand.attempt)
    read = open_counts(parameters, place, bare, ShortPolynomial(secret), counts=COUNTS)
    return read.tolist() == entries_of(hand, VICTIM).tolist()


def seeds_from(
    hand: ByHand, answers: Mapping[int, SeedRows], dealers: Iterable[int]
) -> list[bytes]:
    """The seeds that these answers give, of those that are the ones of their digests."""
    length, parameters = seed_row_bytes(hand.task.parameters), hand.task.parameters
    rows = {
        each: [said.rows[at : at + length] for at in range(0, len(said.rows), length)]
        for each, said in answers.items()
    }
    digests = [Header.from_bytes(hand.ballots[each].header).seed_digest for each in dealers]
    shown = {each: given[: len(digests)] for each, given in rows.items()}
    return list(recover_seeds(parameters, shown, digests)[0])


# A list that t teachers did not endorse.


def answer_half_served(hand: ByHand) -> dict[int, SeedRows]:
    """Two lists, each endorsed by half of the honest teachers, and a sum that is made up.

    Block 0 does not help here: the sum of the check blocks is the aggregator's word, and 0 fits 0.
    """
    parameters = hand.task.parameters
    lists = {1: (1, 2, 3, 4, 5), 2: (1, 2, 3, 4, 5), 3: (1, 2, 3, 4), 4: (1, 2, 3, 4)}
    found = {}
    for teacher, participants in lists.items():
        hand.endorse(teacher, participants=participants)
        nothing = np.zeros(parameters.degree, dtype=np.uint64)
        certified = CertifiedSum(
            task_id=hand.task.task_id,
            batch_id=hand.batch,
            attempt=hand.attempt,
            list_hash=hand.list_for(teacher, participants).list_hash,
            recipient=teacher,
            endorsers=(1, 2, 3, 4),
            macs=bytes(4 * MAC_BYTES),
            digests=b"",
            signatures=b"",
            check_sum=pack_bits(nothing, parameters.modulus_bits),
            secret=secret_to_bytes(nothing.astype(np.int64)),
        )
        found[teacher] = decode(hand.ask(teacher, hand.federation.sign(certified)), SeedRows)
    return found


def test_no_pad_opens_of_a_list_that_t_did_not_endorse(hand: ByHand) -> None:
    with pytest.raises(ListNotCertified):
        answer_half_served(hand)


def test_without_t_endorsements_pads_of_two_half_served_lists_would_open(
    hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MaskSide, "_require_certified", lambda *_: None)
    seeds = seeds_from(hand, answer_half_served(hand), (1, 2, 3, 4))
    digest = Header.from_bytes(hand.ballots[VICTIM].header).seed_digest
    assert digest_of_seed(seeds[0]) == digest


# A list without the teacher's own header.


def test_nobody_endorses_a_list_without_its_own_header(hand: ByHand) -> None:
    with pytest.raises(OwnBallotMissing):
        hand.endorse(VICTIM, participants=(2, 3, 4, 5))


def test_without_the_check_of_its_own_header_a_teacher_would_endorse_a_list_without_it(
    hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the rows that it gives help to open a list on which it has no noise share."""
    take_out(
        monkeypatch,
        MaskSide._open,
        "if not is_own or message.roster_hash != own.roster_hash:",
        "if False:",
    )
    assert VICTIM not in hand.endorse(VICTIM, participants=(2, 3, 4, 5)).statement.participants


# A list that the aggregator did not sign.


def offer_forged_list(hand: ByHand) -> None:
    """What a broker makes up: as good as the true list, but for one ballot."""
    forged = replace(hand.list_for(VICTIM, (1, 2, 3, 4)), signature=UNSIGNED)
    hand.ask(VICTIM, encode(forged))


def test_a_list_that_the_aggregator_did_not_sign_changes_nothing(hand: ByHand) -> None:
    with pytest.raises(NotFromAggregator):
        offer_forged_list(hand)
    assert hand.endorse(VICTIM).statement.participants == (1, 2, 3, 4, 5)


def test_if_lists_were_not_signed_a_broker_would_keep_teachers_from_the_true_one(
    hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dppp.protocol.teacher, "require_from_aggregator", lambda *_: None)
    offer_forged_list(hand)
    with pytest.raises(SecondList):
        hand.endorse(VICTIM)


# Block 0.


@pytest.fixture
def wrong_sum() -> ByHand:
    federation = Federation(set_up())
    federation.corrupt(COLLUDER, endorse_another_sum)
    hand = ByHand(federation)
    for each in (2, 3, 4, COLLUDER, VICTIM):
        hand.endorse(each)
    del hand.endorsements[VICTIM]  # so that the colluder's sum is among those that are used
    return hand


def test_with_a_sum_that_does_not_fit_block_0_there_is_still_a_way_back(wrong_sum: ByHand) -> None:
    with pytest.raises(SumDoesNotFit):
        wrong_sum.answer(2)
    shown = [wrong_sum.withdraw(each) for each in (VICTIM, 2, 3, 4)]
    wrong_sum.ask(2, wrong_sum.root_request(shown))


def test_if_teachers_skipped_block_0_a_wrong_sum_would_be_answered_and_nobody_be_named(
    wrong_sum: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once they have answered, no t can withdraw, so no root is ever shown."""
    monkeypatch.setattr(MaskSide, "_require_fits", lambda *_: None)
    for each in (2, 3, 4):
        wrong_sum.answer(each)
        with pytest.raises(AnswerGiven):
            wrong_sum.withdraw(each)


@pytest.fixture(scope="module")
def released() -> Released:
    return Released()


def forged_by_another_sum(released: Released) -> bytes:
    """The true ballots and endorsements, another S, and the labels that follow from it."""
    run, receipt = released.run, released.receipt
    parameters = run.task.parameters
    secret = secret_from_bytes(parameters, receipt.openings[0])
    other = secret.copy()
    other[0] += 1
    blocks = unpack_blocks(
        receipt.tallies,
        blocks=1 + parameters.blocks_for(run.counts),
        degree=parameters.degree,
        bits=parameters.modulus_bits,
    )
    counts = open_counts(
        parameters, run.votes_seed, blocks[1:], ShortPolynomial(other), counts=run.counts
    )
    answers = make_releases(
        run.task,
        released.federation.request().query_ids,
        counts.tolist(),
        participants=receipt.participants,
        of_list=receipt.list_hash,
    )
    assert answers != receipt.answers
    opening = (secret_to_bytes(other), receipt.openings[1])
    return released.transcript(receipt=replace(receipt, answers=answers, openings=opening))


def test_another_sum_with_its_labels_makes_no_transcript_that_holds(released: Released) -> None:
    with pytest.raises(TranscriptError):
        verify_transcript(
            forged_by_another_sum(released), expected_task=released.federation.task.task_id
        )


def test_if_block_0_were_not_looked_at_a_transcript_could_be_given_other_labels(
    released: Released, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = forged_by_another_sum(released)
    monkeypatch.setattr(
        verification, "require_fits", lambda _p, _e, _c, secret: ShortPolynomial(secret)
    )
    verify_transcript(forged, expected_task=released.federation.task.task_id)


# Keys that are stolen later, with the record.


def steal_later(hand: ByHand) -> bool:
    """Two epochs later the victim's disk is stolen; the record of the batch is public."""
    hand.endorse_all()
    answers = {each: decode(hand.answer(each), SeedRows) for each in (1, 2, 3, 4)}
    federation = hand.federation
    federation.now += 2 * 86_400
    federation.teachers[VICTIM].forget(now=federation.now)
    stolen = federation.homes[VICTIM].secrets.get(hand.task.task_id, hand.roster.epoch)
    if stolen is None:
        return False
    epoch = Epoch(task_id=hand.task.task_id, number=hand.roster.epoch)
    own_key = own_row_key(EpochSecret.from_bytes(stolen), epoch)
    salt = Header.from_bytes(hand.ballots[VICTIM].header).salt
    dealing = expand_root(hand.task.parameters, epoch, root_of(own_key, salt))
    seed = seeds_from(hand, answers, hand.voters)[0]
    return is_read(hand, seed, dealing.secret.coefficients)


def test_what_is_stolen_two_epochs_later_opens_nothing_of_the_record(hand: ByHand) -> None:
    assert not steal_later(hand)


def test_if_epoch_keys_were_kept_a_thief_would_read_every_vote_of_the_record(
    hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryEpochSecrets, "forget_before", lambda *_: None)
    assert steal_later(hand)


# Rows of one dealer's secret after answers: why a batch with a false seed is not rescued.


def rows_of(hand: ByHand, dealer: int) -> dict[int, bytes]:
    """The rows of one dealer's secret, asked for after all have answered."""
    asked = RowRequest(
        task_id=hand.task.task_id,
        batch_id=hand.batch,
        attempt=hand.attempt,
        purpose=int(Purpose.SECRET_ROW),
        dealers=(dealer,),
    )
    request = hand.federation.sign(asked)
    return {each: decode(hand.ask(each, request), ShownRows).rows for each in (1, 2, 3, 4)}


def show_secrets_on_the_aggregators_word(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(
        monkeypatch,
        Disputes.show_rows,
        "self._require_withdrawn(asked.withdrawals, asked.batch_id, asked.attempt)",
        "pass",
    )


def answer_all(hand: ByHand) -> dict[int, SeedRows]:
    hand.endorse_all()
    return {each: decode(hand.answer(each), SeedRows) for each in (1, 2, 3, 4)}


def test_after_answers_no_row_of_a_secret_is_shown_whoever_is_said_to_be_convicted(
    hand: ByHand,
) -> None:
    answer_all(hand)
    with pytest.raises(TooFewWithdrawals):
        rows_of(hand, VICTIM)


def test_if_rows_of_a_convicted_dealer_were_shown_an_aggregator_would_read_whom_it_accuses(
    hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_secrets_on_the_aggregators_word(monkeypatch)
    seed = seeds_from(hand, answer_all(hand), hand.voters)[0]
    assert is_read(hand, seed, recover_secret(hand.task.parameters, rows_of(hand, VICTIM)))


@pytest.mark.parametrize("is_hidden", [False, True])
def test_two_colluders_keep_a_batch_from_being_rescued_by_the_rows_of_one(
    is_hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One adds g to all its rows and the other takes g off: S is right, S - s is not."""
    federation = Federation(set_up(7, 2, 1))
    if is_hidden:
        everybody = federation.setting.everybody
        federation.corrupt(4, deal_badly(secret_rows=add_to_rows(everybody, 1)))
        federation.corrupt(5, deal_badly(secret_rows=add_to_rows(everybody, -1)))
    hand = ByHand(federation)
    hand.endorse_all()
    show_secrets_on_the_aggregators_word(monkeypatch)
    parameters = hand.task.parameters
    asked = RowRequest(
        task_id=hand.task.task_id,
        batch_id=hand.batch,
        attempt=hand.attempt,
        purpose=int(Purpose.SECRET_ROW),
        dealers=(COLLUDER,),
    )
    rows = {
        each: decode(hand.ask(each, federation.sign(asked)), ShownRows).rows for each in hand.voters
    }
    whole = secret_from_bytes(parameters, hand.sum_bytes[1])
    others = [hand.ballots[each].check_block for each in hand.voters if each != COLLUDER]
    check_sum = add_blocks(parameters, others, count=1)[0]
    epoch = Epoch(task_id=hand.task.task_id, number=hand.roster.epoch)
    left = whole - recover_secret(parameters, rows)
    with pytest.raises(OpeningFault) if is_hidden else nullcontext():
        require_fits(parameters, epoch, check_sum, left)
