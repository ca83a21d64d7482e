"""An aggregator that delivers other seals than their dealer signed frames nobody: it is convicted.

With a dealer it can deliver another seal that opens, and hold the signed one against its recipient.
What an honest aggregator's own `Blaming` says is what everybody concludes from the same messages.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.protocol.attacker import take_out
from tests.protocol.with_masks.colluders import (
    endorse_another_sum,
    honest,
    objecting_to,
    silent_about,
)
from tests.protocol.with_masks.federation import Federation, set_up

from dppp.errors import ListFault
from dppp.masks.blame import row_bytes
from dppp.masks.dealing import seal_contexts
from dppp.masks.parameters import FIELD
from dppp.masks.sealing import TAG_BYTES, Pairs, Purpose, open_one
from dppp.protocol.cryptosystem import AboutList
from dppp.protocol.events import Abort
from dppp.protocol.messages import Endorsement
from dppp.protocol.receipt import Receipt
from dppp.protocol.signing import Signer, sign
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.ballots import ClosedList
from dppp.protocol.with_masks.blaming import Blaming
from dppp.protocol.with_masks.deliveries import delivery_of
from dppp.protocol.with_masks.messages import (
    DELIVERY_BYTES,
    CertifiedSum,
    DeliveredList,
    Objection,
    RowRequest,
    SeedRows,
    WithdrawalRequest,
    votes_seed,
)
from dppp.protocol.with_masks.teacher import MaskSide

pytestmark = pytest.mark.attack

VICTIM, DEALER = 1, 5

Swap = Callable[[Federation, DeliveredList], DeliveredList]


def seal_another_row(purpose: Purpose) -> Swap:
    """The dealer seals the row plus one in the place of the row of the seal that it signed."""

    def swap(federation: Federation, listed: DeliveredList) -> DeliveredList:
        roster = federation.side(DEALER)._ring.roster(listed.roster_hash)
        place, key = listed.participants.index(DEALER), roster.sealing_key(VICTIM)
        seed = votes_seed(listed.task_id, listed.batch_id, listed.attempt)
        head = listed.header_digests[64 * place :][:32]
        (context,) = seal_contexts(roster.epoch, seed, [head])
        length = row_bytes(federation.task.parameters, purpose)
        seals = _seals(listed, purpose)
        row = open_one(
            key,
            seals[place * (length + TAG_BYTES) :][: length + TAG_BYTES],
            purpose=purpose,
            dealer=DEALER,
            recipient=VICTIM,
            context=context,
            length=length,
        )
        other = (np.frombuffer(row, dtype="<u2").astype(int) + 1) % FIELD
        pair = Pairs.of_dealer(
            [key], dealer=DEALER, recipients=[VICTIM], context=context, length=length
        )
        return _with_seal(
            listed, purpose, pair.seal(purpose, other.astype("<u2").view(np.uint8)[None])
        )

    return swap


def break_the_seal(_federation: Federation, listed: DeliveredList) -> DeliveredList:
    length = len(listed.secret_seals) // len(listed.participants)
    return _with_seal(listed, Purpose.SECRET_ROW, bytes(length))


def name_another_header(_federation: Federation, listed: DeliveredList) -> DeliveredList:
    """Another list of the same attempt: the dealer signed two headers."""
    place = 64 * listed.participants.index(DEALER)
    digests = listed.header_digests
    return replace(listed, header_digests=digests[:place] + bytes(64) + digests[place + 64 :])


def _seals(listed: DeliveredList, purpose: Purpose) -> bytes:
    return listed.secret_seals if purpose is Purpose.SECRET_ROW else listed.seed_seals


def _with_seal(listed: DeliveredList, purpose: Purpose, seal: bytes) -> DeliveredList:
    start = listed.participants.index(DEALER) * len(seal)
    seals = _seals(listed, purpose)
    changed = seals[:start] + seal + seals[start + len(seal) :]
    if purpose is Purpose.SECRET_ROW:
        return replace(listed, secret_seals=changed)
    return replace(listed, seed_seals=changed)


SUM, SEED = "the sum does not fit", "a seed is wrong"
SWAPS: dict[str, Swap] = {
    SUM: seal_another_row(Purpose.SECRET_ROW),
    SEED: seal_another_row(Purpose.SEED_ROW),
    "a seal does not open": break_the_seal,
    "no seal opens in another list": name_another_header,
}


class Lies:
    """An aggregator that lies to the victim about the list, as long as it does."""

    def __init__(self, swap: str, monkeypatch: pytest.MonkeyPatch, *, is_lying: bool) -> None:
        self.federation = Federation(set_up())
        self.is_lying = is_lying
        honest_deliver = ClosedList.deliver

        def deliver(closed: ClosedList, teacher: int, signer: Signer) -> bytes:
            data = honest_deliver(closed, teacher, signer)
            if teacher != VICTIM or not self.is_lying:
                return data
            return encode(sign(SWAPS[swap](self.federation, decode(data, DeliveredList)), signer))

        monkeypatch.setattr(ClosedList, "deliver", deliver)

    def turn_at(self, kind: str) -> None:
        """Begin or end to lie when the victim, restarted, gets the first message of this kind."""
        turned: list[bool] = []

        def turn(teacher: int, data: bytes) -> None:
            if teacher == VICTIM and kind_of(data) == kind and not turned:
                turned.append(True)
                self.is_lying = not self.is_lying
                self.federation.start_teacher(VICTIM)

        self.federation.before_delivery = turn
        self.federation.remind_seconds = 1

    def require_convicted(self, *, is_refunded: bool) -> None:
        """The aggregator is named, and no teacher is."""
        abort = self.federation.end
        assert isinstance(abort, Abort)
        assert (self.federation.blamed, abort.culprits, abort.missing) == ({}, (), ())
        assert abort.reason.startswith("the aggregator delivered to teacher 1 ")
        assert abort.is_refunded == is_refunded
        assert self.federation.charged(VICTIM) == (0 if is_refunded else 2)


def believe_deliveries(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(
        monkeypatch,
        Blaming._judge_delivery,
        "if (delivery.list_hash, delivery.seals_digest) == signed:",
        "if True:",
    )


@pytest.mark.parametrize("swap", SWAPS)
def test_an_aggregator_that_delivers_other_seals_is_convicted_and_no_teacher_is(
    swap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lies = Lies(swap, monkeypatch, is_lying=True)
    lies.federation.ask()
    lies.require_convicted(is_refunded=swap == SUM)


@pytest.mark.parametrize("swap", SWAPS)
def test_if_deliveries_were_not_compared_whoever_got_other_seals_would_be_named(
    swap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    believe_deliveries(monkeypatch)
    lies = Lies(swap, monkeypatch, is_lying=True)
    lies.federation.ask()
    assert set(lies.federation.blamed) == {VICTIM}


# After a restart the list is sent again.


def test_what_was_delivered_before_a_restart_convicts_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The true list comes after it, but the endorsement holds the delivery that it was about."""
    lies = Lies(SUM, monkeypatch, is_lying=True)
    lies.turn_at(WithdrawalRequest.KIND)
    lies.federation.ask()
    assert not lies.is_lying
    lies.require_convicted(is_refunded=True)


def swap_seeds_after_the_endorsement(monkeypatch: pytest.MonkeyPatch) -> Federation:
    lies = Lies(SEED, monkeypatch, is_lying=False)
    lies.turn_at(CertifiedSum.KIND)
    lies.federation.answers[4] = silent_about(CertifiedSum.KIND)  # so that the victim is needed
    lies.federation.ask()
    return lies.federation


def test_a_list_that_comes_again_with_other_seals_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    federation = swap_seeds_after_the_endorsement(monkeypatch)
    assert not federation.blamed
    refused = [type(why) for teacher, _, why in federation.refusals if teacher == VICTIM]
    assert ListFault in refused


def test_if_other_seals_were_opened_after_a_restart_the_teacher_would_be_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_out(
        monkeypatch,
        MaskSide.recall,
        "require_same_delivery(message, decode(endorsed, Endorsement))",
        "pass",
    )
    federation = swap_seeds_after_the_endorsement(monkeypatch)
    assert set(federation.blamed) == {VICTIM}


# Rows that are shown before anybody has looked at what was delivered.


def ask_for_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> Lies:
    lies = Lies(SEED, monkeypatch, is_lying=True)
    federation = lies.federation

    def answer(asked: bytes, said: bytes | None) -> list[bytes]:
        if said is None or kind_of(said) != SeedRows.KIND:
            return honest(asked, said)
        about = decode(said, SeedRows)
        early = RowRequest(
            task_id=about.task_id,
            batch_id=about.batch_id,
            attempt=about.attempt,
            purpose=int(Purpose.SEED_ROW),
            dealers=(DEALER,),
        )
        shown = federation.teachers[VICTIM].handle(federation.sign(early), now=federation.now)
        assert shown is not None
        return [shown, said]

    federation.answers[VICTIM] = answer
    federation.ask()
    return lies


def test_rows_are_held_against_nobody_before_its_delivery_is_known_to_be_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask_for_rows_at_once(monkeypatch).require_convicted(is_refunded=False)


def test_if_rows_were_judged_before_the_delivery_the_teacher_would_be_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_out(
        monkeypatch, Blaming._take_rows, "if message.teacher not in self._served:", "if False:"
    )
    assert set(ask_for_rows_at_once(monkeypatch).federation.blamed) == {VICTIM}


# An honest aggregator is not convicted by what a colluder makes up.


def of_its_first_attempt(now: list[bytes], own: bytes) -> bytes:
    """The delivery of an attempt that is over, which the aggregator did sign."""
    now.append(own)
    return now[0]


MADE_UP: dict[str, Callable[[list[bytes], bytes], bytes]] = {
    "nothing": lambda _, own: bytes(len(own)),
    "other seals": lambda _, own: bytes(32) + own[32:],
    "another attempt": of_its_first_attempt,
}


@pytest.mark.parametrize("how", MADE_UP)
@pytest.mark.parametrize("step", ["endorsement", "objection"])
def test_who_makes_a_delivery_up_is_named_and_the_aggregator_is_not(step: str, how: str) -> None:
    federation = Federation(set_up(9, 2, 2))
    federation.corrupt(2, endorse_another_sum)  # the first attempt fails
    liar, before = 3, list[bytes]()
    signer = federation.setting.signer(liar)
    if step == "endorsement":
        federation.corrupt(liar, endorse_another_sum_from_attempt_two)
    objecting = objecting_to(4, liar, signer)

    def answer(asked: bytes, said: bytes | None) -> list[bytes]:
        if kind_of(asked) != DeliveredList.KIND:
            return honest(asked, said)
        listed = decode(asked, DeliveredList)
        made_up = MADE_UP[how](before, delivery_of(listed))
        if listed.attempt == 1:
            return honest(asked, said)
        if step == "objection":
            objection = decode(objecting(asked, said)[0], Objection)
            return [encode(sign(replace(objection, delivery=made_up), signer))]
        assert said is not None
        endorsed = decode(said, Endorsement)
        content = endorsed.content[:-DELIVERY_BYTES] + made_up
        return [encode(sign(replace(endorsed, content=content), signer))]

    federation.answers[liar] = answer
    receipt = federation.ask()
    assert isinstance(receipt, Receipt), receipt
    assert set(federation.blamed) == {2, liar}
    assert federation.blamed[liar] == "it showed a delivery that the aggregator did not sign"
    federation.require_right_sums(receipt)


def endorse_another_sum_from_attempt_two(side: MaskSide) -> None:
    right = side.endorse
    endorse_another_sum(side)
    wrong = side.endorse

    def endorse(listed: AboutList, own_ballot: bytes) -> bytes:
        return (right if listed.attempt == 1 else wrong)(listed, own_ballot)

    side.endorse = endorse  # type: ignore[method-assign]
