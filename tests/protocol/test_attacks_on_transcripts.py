"""Forged transcripts: an aggregator and one colluder who exchange a ballot once counts are known.

A ballot times (1 + n)^k has the same root, so the colluder can prove it, and the opening of the new
tally is the old one with k added to the plaintext: every equation holds. Only the signatures of t
teachers on the list, given before anything was opened, tell the forgery apart.
"""

from dataclasses import dataclass, replace

import pytest
from tests.protocol.attacker import take_out
from tests.protocol.parties import (
    Setting,
    batch_of,
    endorsed_by,
    list_of,
    new_ledger,
    new_teacher,
    pack_unchecked,
    request_for,
    seeded,
    set_up,
    tallies_of,
)
from tests.small_federation import reply_of

from dppp.errors import TranscriptError
from dppp.paillier.blinding import Blinding
from dppp.paillier.decryption.opening import Opening
from dppp.paillier.encryption import encrypt, write_ciphertexts
from dppp.paillier.proofs.ballots import prove_ballot
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BatchId,
    Endorsement,
    Endorser,
    ballot_context,
    batch_id,
    list_hash,
    split_query_ids,
)
from dppp.protocol.receipt import Receipt, verify_receipt
from dppp.protocol.release import make_releases
from dppp.protocol.signing import require_certified, sign, signer_of
from dppp.protocol.transcript import Transcript, _require_ballots, verify_transcript
from dppp.protocol.wire import decode, encode

pytestmark = pytest.mark.attack

COLLUDER = 5
EXTRA = (0, 0, 100)
"""Votes that the colluder finds out afterwards to have cast."""


@dataclass(frozen=True, kw_only=True)
class Colluder:
    """A teacher that remembers the blinding of its ballot."""

    setting: Setting
    batch: BatchId
    blinding: Blinding

    def ballot(self, entries: tuple[int, ...]) -> bytes:
        """A ballot with these entries, always under the same root: proved and signed."""
        public, task = self.setting.public, self.setting.task
        (plaintext,) = pack_unchecked(self.setting, entries)
        ciphertext = encrypt(public, plaintext, self.blinding)
        context = ballot_context(task.task_id, self.batch, COLLUDER)
        proof = prove_ballot(public, [ciphertext], [self.blinding], context=context)
        unsigned = Ballot(
            task_id=task.task_id,
            batch_id=self.batch,
            teacher=COLLUDER,
            ciphertexts=write_ciphertexts(public, [ciphertext]),
            proof=proof.to_bytes(public),
        )
        signing_key = self.setting.signing_keys[COLLUDER - 1]
        return encode(sign(unsigned, signer_of(signing_key)))


@dataclass(frozen=True, kw_only=True)
class Released:
    setting: Setting
    colluder: Colluder
    receipt: Receipt
    transcript: Transcript


def _release() -> Released:
    """A batch that the aggregator runs by the rules, to its end."""
    setting = set_up(5, 1, 1)
    request = request_for(setting, [7])
    colluder = Colluder(
        setting=setting,
        batch=batch_of(setting, request),
        blinding=setting.table.draw(seeded("colluder").randbytes),
    )
    aggregator = setting.aggregator(
        MemoryBatchStore(),
    )
    teachers = {
        index: new_teacher(setting, index, new_ledger(setting, index, MemoryStore()))
        for index in setting.everybody
        if index != COLLUDER
    }
    sends, now = list(aggregator.start(request, now=0).sends), 0
    aggregator.receive(COLLUDER, colluder.ballot((0, 0, 0)), now=0)
    while aggregator.outcome(colluder.batch) is None:
        replies = [
            (send.teacher, reply_of(teachers[send.teacher], send.data, now=now))
            for send in sends
            if send.teacher != COLLUDER
        ]
        sends = [
            more for who, data in replies for more in aggregator.receive(who, data, now=now).sends
        ]
        now += 1
        sends += aggregator.tick(now).sends
    receipt, transcript = aggregator.outcome(colluder.batch), aggregator.transcript(colluder.batch)
    assert isinstance(receipt, Receipt)
    assert transcript is not None
    return Released(setting=setting, colluder=colluder, receipt=receipt, transcript=transcript)


def _forge(true: Released, endorsers: tuple[Endorser, ...] | None = None) -> tuple[bytes, bytes]:
    """The colluder's ballot exchanged, and all that follows from it made anew."""
    setting, receipt = true.setting, true.receipt
    task, public = setting.task, setting.public
    ballots = decode(true.transcript.ballot_list, BallotList).ballots
    exchanged = list_of(setting, true.colluder.batch, [*ballots[:4], true.colluder.ballot(EXTRA)])
    (opening,) = (Opening.from_bytes(public, each) for each in receipt.openings)
    (extra,) = pack_unchecked(setting, EXTRA)
    moved = replace(opening, plaintext=(opening.plaintext + extra) % public.plaintext_modulus)
    forged_list = decode(exchanged, BallotList)
    sums = task.packing.unpack(
        [moved.plaintext], len(EXTRA), contributions=len(forged_list.ballots)
    )
    identifiers = split_query_ids(receipt.query_ids)
    assert batch_id(task.task_id, receipt.query_ids) == true.colluder.batch
    forged = replace(
        receipt,
        list_hash=list_hash(forged_list),
        tallies=tallies_of(setting, forged_list.ballots),
        endorsers=receipt.endorsers if endorsers is None else endorsers,
        openings=(moved.to_bytes(public),),
        answers=make_releases(
            task,
            identifiers,
            sums,
            participants=receipt.participants,
            of_list=list_hash(forged_list),
        ),
    )
    transcript = Transcript(receipt=encode(forged), ballot_list=exchanged)
    return encode(forged), encode(transcript)


def _colluders_endorsement(true: Released) -> Endorser:
    """The colluder endorses the exchanged list gladly."""
    ballots = decode(true.transcript.ballot_list, BallotList).ballots
    exchanged = list_of(
        true.setting, true.colluder.batch, [*ballots[:4], true.colluder.ballot(EXTRA)]
    )
    found = decode(endorsed_by(true.setting, COLLUDER, exchanged), Endorsement)
    return Endorser(teacher=COLLUDER, signature=found.signature)


def test_an_exchanged_ballot_makes_no_receipt_and_no_transcript_that_holds() -> None:
    true = _release()
    verify_transcript(encode(true.transcript), insecure_testing=True)
    its_own = _colluders_endorsement(true)
    others = tuple(each for each in true.receipt.endorsers if each.teacher != COLLUDER)
    for endorsers in (None, (its_own,), (*others[:3], its_own), ()):
        receipt, transcript = _forge(true, endorsers)
        for check, data in ((verify_receipt, receipt), (verify_transcript, transcript)):
            with pytest.raises(TranscriptError) as caught:
                check(data, expected_task=true.setting.task.task_id, insecure_testing=True)
            assert caught.value.check == "endorsements"


def test_were_endorsements_not_asked_for_the_forgery_would_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    true = _release()
    take_out(
        monkeypatch,
        require_certified,
        "named = [each.teacher for each in endorsers]",
        "return",
    )
    receipt, transcript = _forge(true)
    for check, data in ((verify_receipt, receipt), (verify_transcript, transcript)):
        found = check(data, expected_task=true.setting.task.task_id, insecure_testing=True)
        assert found.answers[0].counts[2] == true.receipt.answers[0].counts[2] + EXTRA[2]


def _with_other_ballots(true: Released) -> list[bytes]:
    """A true receipt beside another list, which the aggregator signed as well."""
    ballots = decode(true.transcript.ballot_list, BallotList).ballots
    others = ([*ballots[:4], true.colluder.ballot(EXTRA)], ballots[:4])
    return [
        encode(
            replace(true.transcript, ballot_list=list_of(true.setting, true.colluder.batch, each))
        )
        for each in others
    ]


def test_other_ballots_beside_a_true_receipt_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    true = _release()
    forged = _with_other_ballots(true)
    for data in forged:
        with pytest.raises(TranscriptError) as caught:
            verify_transcript(data, insecure_testing=True)
        assert caught.value.check == "ballots"
    take_out(monkeypatch, _require_ballots, "found != endorsed", "False")
    for data in forged:
        verify_transcript(data, insecure_testing=True)
