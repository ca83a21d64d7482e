"""What a receipt or a transcript under masks shows, checked by anyone who has it.

A receipt holds the sums of the blocks and the sum of the secrets: that they open to these counts
is checked here. That these sums are those of the endorsed list is the aggregator's word in a
receipt, and is checked in a transcript, which holds every ballot: a receipt whose sums are others
convicts the aggregator. No key opens a ballot of a transcript later, since there is none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.errors import BallotFault, DpppError, ListFault, WrongTask, message_of
from dppp.masks.ballots import Body, Header, require_body
from dppp.masks.dealing import digest_of_seed
from dppp.masks.epoch_keys import Epoch
from dppp.masks.opening import (
    add_blocks,
    add_votes,
    open_counts,
    require_fits,
    secret_from_bytes,
    seeds_from_bytes,
)
from dppp.masks.packing import pack_bits, unpack_blocks
from dppp.protocol.lists import require_complete
from dppp.protocol.messages import BatchId, ListHash
from dppp.protocol.signing import verify_signature
from dppp.protocol.task import Task
from dppp.protocol.wire import decode
from dppp.protocol.with_masks.messages import (
    MaskedBallot,
    PublishedKey,
    Roster,
    masked_list_hash,
    votes_seed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRun:
    """One attempt at a batch: what all its ballots have in common."""

    task: Task
    roster: Roster
    batch_id: BatchId
    attempt: int
    counts: int

    @property
    def epoch(self) -> Epoch:
        """The epoch of its keys."""
        return Epoch(task_id=self.task.task_id, number=self.roster.epoch)

    @property
    def votes_seed(self) -> bytes:
        """From what the public polynomials of its vote blocks are made; seals are bound to it."""
        return votes_seed(self.task.task_id, self.batch_id, self.attempt)

    @property
    def members(self) -> tuple[int, ...]:
        """The teachers of its roster, in order."""
        return tuple(decode(each, PublishedKey).teacher for each in self.roster.keys)


def read_roster_of(task: Task, data: bytes) -> Roster:
    """The roster in a receipt; that its keys are good is the word of those who endorsed it."""
    roster = decode(data, Roster)
    if roster.task_id != task.task_id:
        raise WrongTask("the roster is for another task")
    return roster


def read_masked_ballot(run: MaskedRun, data: bytes, *, members: int) -> MaskedBallot:
    """A ballot of this attempt whose body is the one that its teacher signed."""
    ballot = decode(data, MaskedBallot)
    verify_signature(run.task, ballot)
    require_masked_ballot(run, ballot, members=members)
    return ballot


def require_masked_ballot(run: MaskedRun, ballot: MaskedBallot, *, members: int) -> None:
    """Refuse a ballot of another attempt, or another body than the one that its teacher signed.

    That it did sign it has been checked.
    """
    require_of_attempt(run, ballot)
    require_signed_body(run, ballot, members=members)


def require_of_attempt(run: MaskedRun, ballot: MaskedBallot) -> None:
    """Refuse a ballot of another attempt: its teacher signed that it is."""
    expected = (run.task.task_id, run.batch_id, run.attempt, run.roster.hash)
    if (ballot.task_id, ballot.batch_id, ballot.attempt, ballot.roster_hash) != expected:
        raise BallotFault(
            f"teacher {ballot.teacher}'s ballot is for another task, batch, attempt or roster",
            culprits=(ballot.teacher,),
        )


def require_signed_body(run: MaskedRun, ballot: MaskedBallot, *, members: int) -> None:
    """Refuse another body than that of the header.

    The signature is over the header, so whoever carried the ballot may have changed the body.
    """
    require_body(
        run.task.parameters,
        Header.from_bytes(ballot.header),
        body_of(ballot),
        dealer=ballot.teacher,
        recipients=members,
        counts=run.counts,
    )


def body_of(ballot: MaskedBallot) -> Body:
    """What the header of a ballot covers."""
    return Body(
        check_block=ballot.check_block,
        votes=ballot.votes,
        secret_seals=ballot.secret_seals,
        seed_seals=ballot.seed_seals,
    )


def list_hash_of(run: MaskedRun, ballots: Sequence[MaskedBallot]) -> ListHash:
    """The hash of the list of these ballots."""
    return masked_list_hash(
        run.task.task_id,
        run.batch_id,
        run.attempt,
        run.roster.hash,
        [ballot.teacher for ballot in ballots],
        digests_of_headers(ballots),
    )


def digests_of_headers(ballots: Iterable[MaskedBallot]) -> bytes:
    """What a list says of its ballots' headers, one after the other."""
    return b"".join([Header.from_bytes(each.header).digests for each in ballots])


def write_sums(
    run: MaskedRun, check_sum: NDArray[np.uint64], votes_sum: NDArray[np.uint64]
) -> bytes:
    """The sum of the check blocks, and after it those of the vote blocks."""
    return pack_bits(np.concatenate([check_sum[None], votes_sum]), run.task.parameters.modulus_bits)


def open_sums(run: MaskedRun, tallies: bytes, openings: Sequence[bytes]) -> tuple[int, ...]:
    """The sums of all entries, if the sum of secrets opens the check blocks of these tallies."""
    if len(openings) != 2:
        raise ListFault("an opening under masks is the sum of the secrets, and the seeds")
    parameters = run.task.parameters
    blocks = unpack_blocks(
        tallies,
        blocks=1 + parameters.blocks_for(run.counts),
        degree=parameters.degree,
        bits=parameters.modulus_bits,
    )
    secret = secret_from_bytes(parameters, openings[0])
    short = require_fits(parameters, run.epoch, blocks[0], secret)
    opened = open_counts(parameters, run.votes_seed, blocks[1:], short, counts=run.counts)
    return tuple(opened.tolist())


def require_tallies(
    run: MaskedRun, ballots: Sequence[bytes], *, of_list: ListHash, tallies: bytes, seeds: bytes
) -> None:
    """Refuse ballots that are not those of the endorsed list, or do not add up to these tallies."""
    members = run.members
    try:
        read = [read_masked_ballot(run, data, members=len(members)) for data in ballots]
    except DpppError as error:
        culprits = getattr(error, "culprits", ())
        raise ListFault(
            f"the list holds a ballot that is not good: {message_of(error)}", culprits=culprits
        ) from error
    require_complete(run.task, [ballot.teacher for ballot in read])
    if list_hash_of(run, read) != of_list:
        raise ListFault("these are other ballots than those of the list that the teachers endorsed")
    if write_sums(run, *add_all(run, read, seeds)) != tallies:
        raise ListFault("the ballots do not add up to the sums that were opened")


def add_all(
    run: MaskedRun, ballots: Sequence[MaskedBallot], seeds: bytes
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The sums of check blocks and of vote blocks, with pads off; each seed is its header's."""
    parameters = run.task.parameters
    of_dealers = seeds_from_bytes(seeds, len(ballots))
    for ballot, seed in zip(ballots, of_dealers, strict=True):
        if digest_of_seed(seed) != Header.from_bytes(ballot.header).seed_digest:
            raise ListFault(f"the seed of teacher {ballot.teacher} is not the one of its header")
    check_sum = add_blocks(parameters, (each.check_block for each in ballots), count=1)[0]
    votes = [ballot.votes for ballot in ballots]
    return check_sum, add_votes(parameters, votes, of_dealers, counts=run.counts)
