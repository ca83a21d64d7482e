"""Receipts and transcripts that were changed afterwards: refused, and by the right check."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.protocol.with_masks.colluders import endorse_another_sum
from tests.protocol.with_masks.federation import Federation, set_up

from dppp.errors import TranscriptError
from dppp.masks.ballots import Header, apply_pad, digest_of_votes
from dppp.masks.opening import open_counts, require_fits, secret_from_bytes, seeds_from_bytes
from dppp.masks.packing import pack_bits, unpack_blocks
from dppp.protocol.lists import statement_of
from dppp.protocol.messages import BallotList, ListHash
from dppp.protocol.receipt import Receipt, masked_run, verify_receipt
from dppp.protocol.release import make_releases
from dppp.protocol.signing import sign
from dppp.protocol.transcript import Transcript, verify_transcript
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks.messages import MaskedBallot, Roster, votes_seed
from dppp.protocol.with_masks.verification import MaskedRun, list_hash_of, write_sums

pytestmark = pytest.mark.attack

COLLUDER = 2


class Released:
    """A released batch, its parts decoded, and the aggregator's key to sign changes with."""

    def __init__(self, *, is_redone: bool = False) -> None:
        self.federation = Federation(set_up(7, 2, 2))
        if is_redone:
            self.federation.corrupt(3, endorse_another_sum)
        receipt = self.federation.ask()
        assert isinstance(receipt, Receipt)
        self.receipt = receipt
        transcript = self.federation.aggregator.transcript(self.federation.request().batch_id)
        assert transcript is not None
        self.list = decode(transcript.ballot_list, BallotList)
        self.roster = decode(receipt.public_key, Roster)
        self.run: MaskedRun = masked_run(
            self.federation.task, self.roster, receipt, self.federation.request().batch_id
        )

    def transcript(
        self, receipt: Receipt | None = None, ballots: list[bytes] | None = None
    ) -> bytes:
        changed = self.list if ballots is None else replace(self.list, ballots=tuple(ballots))
        signed = sign(changed, self.federation.setting.aggregator_signer)
        return Transcript(
            receipt=(receipt or self.receipt).to_bytes(), ballot_list=encode(signed)
        ).to_bytes()

    def failing_check(self, **kwargs: object) -> str:
        with pytest.raises(TranscriptError) as failure:
            verify_transcript(
                self.transcript(**kwargs),  # type: ignore[arg-type]
                expected_task=self.federation.task.task_id,
            )
        return failure.value.check

    def shift_votes(self, amount: int) -> tuple[Receipt, list[bytes]]:
        """A colluder's ballot with another vote, in its own pad, and the receipt that follows."""
        parameters, run = self.federation.task.parameters, self.run
        place = self.receipt.participants.index(COLLUDER)
        ballot = decode(self.list.ballots[place], MaskedBallot)
        seed = seeds_from_bytes(self.receipt.openings[1], len(self.receipt.participants))[place]
        shape = {"degree": parameters.degree, "bits": parameters.modulus_bits}
        count = parameters.blocks_for(run.counts)
        bare = unpack_blocks(apply_pad(ballot.votes, seed), blocks=count, **shape)
        step = np.uint64(amount << parameters.scale_bits)
        mask = np.uint64((1 << parameters.modulus_bits) - 1)
        bare[0, 0] = (bare[0, 0] + step) & mask
        votes = apply_pad(pack_bits(bare, parameters.modulus_bits), seed)
        header = replace(Header.from_bytes(ballot.header), votes_digest=digest_of_votes(votes))
        forged = sign(
            replace(ballot, votes=votes, header=header.to_bytes()),
            self.federation.setting.signer(COLLUDER),
        )
        ballots = list(self.list.ballots)
        ballots[place] = encode(forged)
        sums = unpack_blocks(self.receipt.tallies, blocks=1 + count, **shape)
        sums[1, 0] = (sums[1, 0] + step) & mask
        return self.follow(sums), ballots

    def follow(self, sums: np.ndarray) -> Receipt:
        """The receipt with other sums, and the answers that follow from them."""
        parameters, run = self.federation.task.parameters, self.run
        secret = secret_from_bytes(parameters, self.receipt.openings[0])
        short = require_fits(parameters, run.epoch, sums[0], secret)
        seed = votes_seed(run.task.task_id, run.batch_id, run.attempt)
        counts = open_counts(parameters, seed, sums[1:], short, counts=run.counts).tolist()
        answers = make_releases(
            run.task,
            self.federation.request().query_ids,
            counts,
            participants=self.receipt.participants,
            of_list=self.receipt.list_hash,
        )
        return replace(self.receipt, tallies=write_sums(run, sums[0], sums[1:]), answers=answers)


@pytest.fixture(scope="module")
def released() -> Released:
    return Released()


def test_what_was_released_verifies(released: Released) -> None:
    verify_transcript(released.transcript(), expected_task=released.federation.task.task_id)


def test_a_redone_batch_verifies_as_the_attempt_it_is_and_as_no_other() -> None:
    redone = Released(is_redone=True)
    assert redone.receipt.attempt == 2
    verify_transcript(redone.transcript(), expected_task=redone.federation.task.task_id)
    for attempt in (1, 3):
        changed = replace(redone.receipt, attempt=attempt)
        assert redone.failing_check(receipt=changed) in ("labels", "ballots")


def test_a_forged_receipt_passes_alone_and_its_transcript_fails(released: Released) -> None:
    """Under masks the sums of a receipt are the aggregator's word; the ballots show the lie."""
    receipt, _ = released.shift_votes(3)
    assert receipt.answers != released.receipt.answers
    verify_receipt(receipt.to_bytes(), expected_task=released.federation.task.task_id)
    assert released.failing_check(receipt=receipt) == "ballots"


def test_a_colluders_header_exchanged_after_the_counts_is_refused(released: Released) -> None:
    receipt, ballots = released.shift_votes(3)
    assert released.failing_check(receipt=receipt, ballots=ballots) == "ballots"
    assert released.failing_check(ballots=ballots) == "ballots"
    read = [decode(each, MaskedBallot) for each in ballots]
    rehashed = replace(receipt, list_hash=list_hash_of(released.run, read))
    assert released.failing_check(receipt=rehashed, ballots=ballots) == "endorsements"


def test_colluders_alone_cannot_endorse_an_exchanged_list(released: Released) -> None:
    """Their own signatures on the new list, and honest ones on the old one."""
    receipt, ballots = released.shift_votes(3)
    read = [decode(each, MaskedBallot) for each in ballots]
    of_list = list_hash_of(released.run, read)
    statement = statement_of(
        released.federation.task,
        batch=released.run.batch_id,
        of_list=of_list,
        tallies=b"",
        participants=receipt.participants,
        key_id=released.roster.hash,
    )
    endorsers = tuple(
        replace(
            each,
            signature=sign(
                each.endorsement_of(statement), released.federation.setting.signer(each.teacher)
            ).signature,
        )
        if each.teacher in (1, 2)
        else each
        for each in receipt.endorsers
    )
    forged = replace(receipt, list_hash=of_list, endorsers=endorsers)
    assert released.failing_check(receipt=forged, ballots=ballots) == "endorsements"


Change = Callable[[Released], Receipt]


def other_roster(released: Released) -> bytes:
    shorter = replace(released.roster, keys=released.roster.keys[:-1])
    return encode(sign(shorter, released.federation.setting.aggregator_signer))


def later_epoch(released: Released) -> bytes:
    later = replace(released.roster, epoch=released.roster.epoch + 1)
    return encode(sign(later, released.federation.setting.aggregator_signer))


def swapped(data: bytes, length: int) -> bytes:
    return data[length : 2 * length] + data[:length] + data[2 * length :]


CHANGES: dict[str, tuple[Change, str]] = {
    "t - 1 signatures": (
        lambda r: replace(r.receipt, endorsers=r.receipt.endorsers[:-1]),
        "endorsements",
    ),
    "one signature twice": (
        lambda r: replace(r.receipt, endorsers=(*r.receipt.endorsers[:-1], r.receipt.endorsers[0])),
        "endorsements",
    ),
    "another list hash": (
        lambda r: replace(r.receipt, list_hash=ListHash(bytes(32))),
        "endorsements",
    ),
    "one participant fewer": (
        lambda r: replace(r.receipt, participants=r.receipt.participants[:-1]),
        "endorsements",
    ),
    "another roster": (
        lambda r: replace(r.receipt, public_key=other_roster(r)),
        "endorsements",
    ),
    "another epoch": (lambda r: replace(r.receipt, public_key=later_epoch(r)), "endorsements"),
    "another attempt": (lambda r: replace(r.receipt, attempt=2), "labels"),
    "no seeds": (lambda r: replace(r.receipt, openings=r.receipt.openings[:1]), "opening"),
    "another secret": (
        lambda r: replace(
            r.receipt, openings=(swapped(r.receipt.openings[0], 2), r.receipt.openings[1])
        ),
        "opening",
    ),
    "swapped seeds": (
        lambda r: replace(
            r.receipt, openings=(r.receipt.openings[0], swapped(r.receipt.openings[1], 32))
        ),
        "ballots",
    ),
    "swapped blocks": (
        lambda r: replace(
            r.receipt,
            tallies=swapped(r.receipt.tallies, r.federation.task.parameters.block_bytes),
        ),
        "opening",
    ),
    "other counts": (lambda r: replace(r.receipt, answers=r.receipt.answers[::-1]), "labels"),
    "other queries": (
        lambda r: replace(r.receipt, query_ids=swapped(r.receipt.query_ids, 32)),
        "endorsements",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_receipt_is_refused_by_the_right_check(released: Released, change: str) -> None:
    make, check = CHANGES[change]
    assert released.failing_check(receipt=make(released)) == check


def test_a_ballot_left_out_or_changed_in_the_list_is_refused(released: Released) -> None:
    ballots = list(released.list.ballots)
    assert released.failing_check(ballots=ballots[:-1]) == "ballots"
    assert released.failing_check(ballots=[ballots[1], ballots[0], *ballots[2:]]) == "ballots"
    honest = decode(ballots[0], MaskedBallot)
    for part in ("check_block", "votes", "secret_seals", "seed_seals"):
        data = getattr(honest, part)
        changed = replace(honest, **{part: bytes([data[0] ^ 1]) + data[1:]})
        assert released.failing_check(ballots=[encode(changed), *ballots[1:]]) == "ballots"
