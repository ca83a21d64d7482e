"""Every fault names exactly its culprit, and the batch is redone without it at no new charge."""

from collections.abc import Callable

import pytest
from tests.protocol.with_masks.colluders import (
    add_to_rows,
    complaining,
    deal_badly,
    endorse_another_sum,
    objecting_to,
    showing_another_root,
    showing_other_rows,
    silent_about,
)
from tests.protocol.with_masks.federation import Federation, set_up

from dppp.masks.equal_logarithms import PROOF_BYTES, prove_pair_secret
from dppp.masks.sealing import Purpose
from dppp.protocol.events import Abort
from dppp.protocol.receipt import Receipt
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.with_masks.messages import (
    DeliveredList,
    RowRequest,
    SealEvidence,
)

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


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("fault", FALSE_WORDS)
def test_who_objects_without_reason_is_named_and_the_batch_is_released(
    fault: str, trust: tuple[int, int, int]
) -> None:
    federation = Federation(set_up(*trust))
    FALSE_WORDS[fault](federation)
    others = [each for each in federation.setting.everybody if each != CULPRIT]
    spare = others[-1]  # with one who is slow, the objector's endorsement is missed
    federation.answers[spare] = silent_about(DeliveredList.KIND)
    receipt = federation.ask()
    assert isinstance(receipt, Receipt | Abort)
    assert set(federation.blamed) <= {CULPRIT}
    if fault != "silence after an objection" or isinstance(receipt, Abort):
        assert set(federation.blamed) == {CULPRIT}
