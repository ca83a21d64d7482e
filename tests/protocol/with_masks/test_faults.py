"""Every fault names exactly its culprit, and the batch is redone without it at no new charge."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.protocol.with_masks.colluders import (
    Answer,
    add_to_rows,
    complaining,
    deal_badly,
    endorse_another_sum,
    giving_other_seed_rows,
    honest,
    objecting_to,
    replacing_seed_rows,
    set_first_element,
    showing_another_root,
    showing_other_rows,
    silent_about,
)
from tests.protocol.with_masks.federation import BEGIN, Federation, set_up

import dppp.protocol.with_masks.teacher as teacher_module
from dppp.masks.dealing import Preparation, seed_row_bytes
from dppp.masks.equal_logarithms import PROOF_BYTES, prove_pair_secret
from dppp.masks.sealing import Pairs, Purpose
from dppp.protocol.events import Abort, Disputed
from dppp.protocol.receipt import Receipt
from dppp.protocol.signing import sign
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.keys import RosterKeys
from dppp.protocol.with_masks.messages import (
    CastRequest,
    CertifiedSum,
    DeliveredList,
    RootRequest,
    RowRequest,
    SealEvidence,
    Withdrawal,
    WithdrawalRequest,
)
from dppp.protocol.with_masks.teacher import MaskSide

pytestmark = pytest.mark.attack

CULPRIT, VICTIM = 2, 4
TRUSTS = [(5, 1, 1), (7, 1, 1), (9, 1, 1)]

Misbehave = Callable[[Federation], None]


@pytest.mark.parametrize("trust", TRUSTS)
def test_without_faults_the_counts_are_the_plain_sums(trust: tuple[int, int, int]) -> None:
    federation = Federation(set_up(*trust))
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert not federation.blamed
    federation.require_right_sums(receipt)
    assert {federation.charged(each) for each in federation.setting.everybody} == {2}


def break_seal(purpose: Purpose, *recipients: int) -> Misbehave:
    places = [(each, purpose) for each in recipients]
    return lambda f: f.corrupt(CULPRIT, deal_badly(break_seals=places))


def deal_other_rows(*recipients: int) -> Misbehave:
    return lambda f: f.corrupt(CULPRIT, deal_badly(secret_rows=add_to_rows(recipients)))


def break_check_block(federation: Federation) -> None:
    federation.corrupt(CULPRIT, deal_badly(break_check_block=True))


def add_wrongly(federation: Federation) -> None:
    federation.corrupt(CULPRIT, endorse_another_sum)


def add_wrongly_and_show_nothing(federation: Federation) -> None:
    federation.corrupt(CULPRIT, endorse_another_sum)
    federation.answers[CULPRIT] = silent_about(RowRequest.KIND)


def add_wrongly_and_show_other_rows(federation: Federation) -> None:
    federation.corrupt(CULPRIT, endorse_another_sum)
    federation.answers[CULPRIT] = showing_other_rows(federation.setting.signer(CULPRIT))


def show_another_root(federation: Federation) -> None:
    federation.corrupt(CULPRIT, endorse_another_sum)
    federation.answers[CULPRIT] = showing_another_root(federation.setting.signer(CULPRIT))


def object_and_fall_silent(federation: Federation) -> None:
    signer = federation.setting.signer(CULPRIT)
    federation.answers[CULPRIT] = objecting_to(
        VICTIM, CULPRIT, signer, then=silent_about(SealEvidence.KIND)
    )


def complain_with_the_right_secret(federation: Federation) -> None:
    signer = federation.setting.signer(CULPRIT)

    def prove(evidence: SealEvidence) -> tuple[bytes, bytes]:
        roster = federation.side(CULPRIT)._ring.roster(evidence.roster_hash)
        return prove_pair_secret(roster.own, roster.keys[VICTIM], roster.epoch.to_bytes())

    complain = complaining(CULPRIT, signer, prove)
    federation.answers[CULPRIT] = objecting_to(VICTIM, CULPRIT, signer, then=complain)


def complain_with_a_wrong_proof(federation: Federation) -> None:
    signer = federation.setting.signer(CULPRIT)
    complain = complaining(CULPRIT, signer, lambda _: (b"\x09" + bytes(31), bytes(PROOF_BYTES)))
    federation.answers[CULPRIT] = objecting_to(VICTIM, CULPRIT, signer, then=complain)


def complain_with_another_secret(federation: Federation) -> None:
    """The secret of another pair, proven for that one."""
    signer = federation.setting.signer(CULPRIT)

    def prove(evidence: SealEvidence) -> tuple[bytes, bytes]:
        roster = federation.side(CULPRIT)._ring.roster(evidence.roster_hash)
        return prove_pair_secret(roster.own, roster.keys[1], roster.epoch.to_bytes())

    complain = complaining(CULPRIT, signer, prove)
    federation.answers[CULPRIT] = objecting_to(VICTIM, CULPRIT, signer, then=complain)


def object_to_itself(federation: Federation) -> None:
    signer = federation.setting.signer(CULPRIT)
    complain = complaining(CULPRIT, signer, lambda _: (b"\x09" + bytes(31), bytes(PROOF_BYTES)))
    federation.answers[CULPRIT] = objecting_to(CULPRIT, CULPRIT, signer, then=complain)


PROVEN: dict[str, Misbehave] = {
    "seals of secret rows do not open": break_seal(Purpose.SECRET_ROW, 3, VICTIM),
    "seals of seed rows do not open": break_seal(Purpose.SEED_ROW, 3, VICTIM),
    "no seal opens": break_seal(Purpose.SECRET_ROW, 1, 3, 4, 5),
    "rows are not the root's": deal_other_rows(VICTIM),
    "all rows are not the root's": deal_other_rows(1, 3, 4, 5),
    "the check block hides no secret": break_check_block,
    "the endorsed sum is wrong": add_wrongly,
    "the endorsed sum is wrong and rows are not shown": add_wrongly_and_show_nothing,
    "the endorsed sum is wrong and other rows are shown": add_wrongly_and_show_other_rows,
    "the root is another": show_another_root,
}


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("fault", PROVEN)
def test_a_fault_names_its_culprit_and_the_batch_is_redone_without_it(
    fault: str, trust: tuple[int, int, int]
) -> None:
    federation = Federation(set_up(*trust))
    PROVEN[fault](federation)
    receipt = federation.ask()
    assert isinstance(receipt, Receipt), receipt
    assert set(federation.blamed) == {CULPRIT}
    assert (federation.attempts, receipt.attempt) == (2, 2)
    assert CULPRIT not in receipt.participants
    federation.require_right_sums(receipt)
    honest = set(federation.setting.everybody) - {CULPRIT}
    assert {federation.charged(each) for each in honest} == {2}
    transcript = federation.aggregator.transcript(federation.request().batch_id)
    assert transcript is not None
    verify_transcript(transcript.to_bytes(), expected_task=federation.task.task_id)


FALSE_WORDS: dict[str, Misbehave] = {
    "silence after an objection": object_and_fall_silent,
    "a proven secret under which the seal opens": complain_with_the_right_secret,
    "a wrong proof": complain_with_a_wrong_proof,
    "the secret of another pair": complain_with_another_secret,
    "its own seal": object_to_itself,
}


@pytest.mark.parametrize("fault", FALSE_WORDS)
def test_who_objects_without_reason_is_named_and_the_batch_is_released(fault: str) -> None:
    federation = Federation(set_up())
    FALSE_WORDS[fault](federation)
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert set(federation.blamed) == {CULPRIT}
    federation.require_right_sums(receipt)


@pytest.mark.parametrize("fault", FALSE_WORDS)
def test_an_objection_without_reason_holds_nothing_up_where_others_are_enough(fault: str) -> None:
    federation = Federation(set_up(7, 1, 1))
    FALSE_WORDS[fault](federation)
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert set(federation.blamed) <= {CULPRIT}
    assert federation.attempts == 1
    assert federation.now <= BEGIN + 1


def test_one_who_objects_and_then_endorses_after_all_is_counted_and_nobody_else_is_blamed() -> None:
    federation = Federation(set_up())
    signer = federation.setting.signer(CULPRIT)
    objecting = objecting_to(VICTIM, CULPRIT, signer, then=silent_about(SealEvidence.KIND))

    def both(asked: bytes, said: bytes | None) -> list[bytes]:
        first = objecting(asked, said)
        is_list = kind_of(asked) == DeliveredList.KIND
        return [*first, *([said] if is_list and said is not None else [])]

    federation.answers[CULPRIT] = both
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert set(federation.blamed) <= {CULPRIT}


def test_a_withdrawal_that_nobody_asked_for_changes_nothing() -> None:
    federation = Federation(set_up())

    def early(asked: bytes, said: bytes | None) -> list[bytes]:
        if kind_of(asked) != DeliveredList.KIND or said is None:
            return [] if said is None else [said]
        about = decode(asked, DeliveredList)
        withdrawal = Withdrawal(
            task_id=about.task_id, batch_id=about.batch_id, attempt=1, teacher=CULPRIT
        )
        return [said, encode(sign(withdrawal, federation.setting.signer(CULPRIT)))]

    federation.answers[CULPRIT] = early
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert (federation.attempts, federation.blamed) == (1, {})


SILENT: dict[str, tuple[str, ...]] = {
    "lists": (DeliveredList.KIND,),
    "lists and withdrawals": (DeliveredList.KIND, WithdrawalRequest.KIND),
    "certified sums": (CertifiedSum.KIND,),
}


@pytest.mark.parametrize("about", SILENT)
def test_one_silent_endorser_holds_nothing_up(about: str) -> None:
    federation = Federation(set_up(7, 1, 1))
    federation.answers[CULPRIT] = silent_about(*SILENT[about])
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert not federation.blamed
    federation.require_right_sums(receipt)


@pytest.mark.parametrize("about", SILENT)
def test_more_silent_teachers_than_the_task_bears_are_named_as_missing(about: str) -> None:
    federation = Federation(set_up())
    for each in (2, 3):
        federation.answers[each] = silent_about(*SILENT[about])
    abort = federation.ask()
    assert isinstance(abort, Abort)
    assert (abort.missing, abort.culprits) == ((2, 3), ())
    assert "2, 3" in abort.reason
    disputes = [each.reason for each in federation.events if isinstance(each, Disputed)]
    assert disputes == [abort.reason]
    is_refunded = about == "lists"  # with fewer than t withdrawals, or after answers, nothing is
    assert abort.is_refunded == is_refunded
    assert {federation.charged(each) for each in (1, 4, 5)} == {0 if is_refunded else 2}


def test_a_silent_dealer_is_missing_and_the_batch_is_redone_without_it() -> None:
    federation = Federation(set_up(9, 2, 2))
    federation.corrupt(CULPRIT, endorse_another_sum)
    federation.answers[VICTIM] = silent_about(RootRequest.KIND)
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert VICTIM not in receipt.participants
    assert set(federation.blamed) <= {CULPRIT}
    federation.require_right_sums(receipt)


@pytest.mark.parametrize("fault", PROVEN)
def test_without_dropouts_to_spare_the_charge_is_given_back_and_the_culprit_named(
    fault: str,
) -> None:
    federation = Federation(set_up(5, 1, 0))
    PROVEN[fault](federation)
    abort = federation.ask()
    assert isinstance(abort, Abort)
    assert (abort.culprits, abort.missing, abort.is_refunded) == ((CULPRIT,), (), True)
    assert {federation.charged(each) for each in (1, 3, 4, 5)} == {0}


def test_too_few_ballots_are_withdrawn_and_their_charge_is_given_back() -> None:
    federation = Federation(set_up(5, 1, 0))
    federation.answers[CULPRIT] = silent_about(CastRequest.KIND)
    abort = federation.ask()
    assert isinstance(abort, Abort)
    assert (abort.culprits, abort.missing, abort.is_refunded) == ((), (CULPRIT,), True)
    assert {federation.charged(each) for each in (1, 3, 4, 5)} == {0}


def test_a_fault_in_the_second_attempt_is_named_as_well_and_the_charge_given_back() -> None:
    federation = Federation(set_up(7, 2, 1))
    federation.corrupt(CULPRIT, endorse_another_sum)
    federation.corrupt(3, deal_badly_from_attempt_two)
    abort = federation.ask()
    assert isinstance(abort, Abort)
    assert (abort.culprits, abort.is_refunded) == ((2, 3), True)
    assert {federation.charged(each) for each in (1, 4, 5, 6, 7)} == {0}


def deal_badly_from_attempt_two(side: MaskSide) -> None:
    honest_prepare = side._prepare
    deal_badly(secret_rows=add_to_rows([1]))(side)
    false_prepare, made = side._prepare, [0]

    def prepare(roster: RosterKeys) -> Preparation:
        made[0] += 1
        return (honest_prepare if made[0] == 1 else false_prepare)(roster)

    side._prepare = prepare  # type: ignore[method-assign]


def test_two_culprits_are_both_named_and_two_attempts_follow() -> None:
    federation = Federation(set_up(9, 2, 2))
    federation.corrupt(2, deal_badly(secret_rows=add_to_rows([5])))
    federation.corrupt(3, deal_badly_from_attempt_two)
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert set(federation.blamed) == {2, 3}
    assert receipt.attempt == 3
    federation.require_right_sums(receipt)
    assert {federation.charged(each) for each in (1, 4, 5, 6, 7, 8, 9)} == {2}


def test_colluders_whose_false_rows_cancel_out_are_not_noticed_and_do_no_harm() -> None:
    federation = Federation(set_up(9, 2, 2))
    federation.corrupt(2, deal_badly(secret_rows=add_to_rows([5], 7)))
    federation.corrupt(3, deal_badly(secret_rows=add_to_rows([5], -7)))
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert not federation.blamed
    federation.require_right_sums(receipt)


# Faults after the first answer.


def give_other_seed_rows(federation: Federation, *places: int, then: Answer = honest) -> None:
    federation.answers[CULPRIT] = giving_other_seed_rows(
        federation.setting.signer(CULPRIT),
        places,
        row_bytes=seed_row_bytes(federation.task.parameters),
        then=then,
    )


@pytest.mark.parametrize("places", [(0,), (1,), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("trust", TRUSTS)
def test_a_seed_row_answered_wrong_is_named_and_the_batch_completes(
    trust: tuple[int, int, int], places: tuple[int, ...]
) -> None:
    federation = Federation(set_up(*trust))
    give_other_seed_rows(federation, *places)
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert set(federation.blamed) == {CULPRIT}
    assert federation.attempts == 1
    federation.require_right_sums(receipt)


@pytest.mark.parametrize("then", ["silence", "other rows"])
def test_who_does_not_show_the_seed_rows_that_it_gave_is_named_and_the_batch_completes(
    then: str,
) -> None:
    federation = Federation(set_up())
    signer = federation.setting.signer(CULPRIT)
    give_other_seed_rows(
        federation,
        0,
        then=silent_about(RowRequest.KIND) if then == "silence" else showing_other_rows(signer),
    )
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert set(federation.blamed) == {CULPRIT}
    federation.require_right_sums(receipt)


@pytest.mark.parametrize("recipients", [(1,), (VICTIM,), (1, 3, 4, 5)])
@pytest.mark.parametrize("trust", [(5, 1, 1), (7, 1, 1)])
def test_seeds_dealt_inconsistently_are_named_and_the_batch_stays_charged(
    trust: tuple[int, int, int], recipients: tuple[int, ...]
) -> None:
    federation = Federation(set_up(*trust))
    federation.corrupt(CULPRIT, deal_badly(seed_rows=add_to_rows(recipients)))
    abort = federation.ask()
    assert isinstance(abort, Abort)
    assert (abort.culprits, abort.is_refunded) == ((CULPRIT,), False)
    honest_ones = set(federation.setting.everybody) - {CULPRIT}
    assert {federation.charged(each) for each in honest_ones} == {2}


def test_slow_answers_blame_nobody_when_a_seed_is_wrong() -> None:
    federation = Federation(set_up())
    give_other_seed_rows(federation, 0)
    slow = federation.setting.everybody[-1]

    def wait(teacher: int, data: bytes) -> None:
        if teacher == slow and kind_of(data) in (CertifiedSum.KIND, RowRequest.KIND):
            federation.now += 20

    federation.before_delivery = wait
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert set(federation.blamed) == {CULPRIT}


@pytest.mark.parametrize("fault", PROVEN)
def test_slow_teachers_are_not_blamed_in_a_dispute(fault: str) -> None:
    federation = Federation(set_up())
    PROVEN[fault](federation)

    def wait(teacher: int, data: bytes) -> None:
        if kind_of(data) in (WithdrawalRequest.KIND, RootRequest.KIND, RowRequest.KIND):
            federation.now += 6 if teacher == VICTIM else 0

    federation.before_delivery = wait
    receipt = federation.ask()
    assert isinstance(receipt, Receipt)
    assert set(federation.blamed) == {CULPRIT}


def test_late_messages_of_the_first_attempt_blame_nobody_in_the_second() -> None:
    federation = Federation(set_up())
    federation.corrupt(CULPRIT, endorse_another_sum)
    output = federation.start(federation.request())
    output = federation.run(output, until=lambda: federation.attempts == 2)
    early = {each: list(said) for each, said in federation.sent.items() if each != CULPRIT}
    while federation.end is None:
        for teacher, said in early.items():
            for data in said:
                federation.events += federation.aggregator.receive(
                    teacher, data, now=federation.now
                ).events
        output = federation.step(output)
    assert isinstance(federation.end, Receipt)
    assert set(federation.blamed) == {CULPRIT}


def test_a_seed_row_that_is_not_a_row_stops_nobody() -> None:
    """A dealer and a recipient together: the one seals what is not a row, the other endorses it."""
    federation = Federation(set_up(9, 2, 2))
    too_large = set_first_element(3, 65535)
    federation.corrupt(2, deal_badly(seed_rows=too_large))

    def accept_anything(side: MaskSide) -> None:
        open_kind = side._open_kind

        def open_all(
            seals: bytes, purpose: Purpose, pairs: Pairs, dealers: list[int]
        ) -> NDArray[np.uint16]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(teacher_module, "FIELD", 2**16)
                return open_kind(seals, purpose, pairs, dealers)

        side._open_kind = open_all  # type: ignore[method-assign]

    federation.corrupt(3, accept_anything)
    federation.answers[3] = replacing_seed_rows(federation.setting.signer(3))
    outcome = federation.ask()
    assert set(federation.blamed) <= {2, 3}
    assert federation.blamed
    assert isinstance(outcome, Receipt)
    federation.require_right_sums(outcome)
