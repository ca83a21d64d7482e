"""The ballots of one attempt at a batch, as they come in, and the list that is closed with them.

Run by the aggregator. Each ballot is checked when it comes; those that are there in time are in the
list. Each teacher is sent digests of all headers, and the rows that are sealed to it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dppp.errors import DpppError
from dppp.masks.ballots import Header
from dppp.masks.opening import add_blocks
from dppp.protocol.lists import statement_of
from dppp.protocol.messages import BallotList, ListStatement
from dppp.protocol.signing import Signer, sign
from dppp.protocol.wire import encode
from dppp.protocol.with_masks.messages import DeliveredList, MaskedBallot
from dppp.protocol.with_masks.verification import (
    MaskedRun,
    digests_of_headers,
    list_hash_of,
    read_masked_ballot,
    require_of_attempt,
    require_signed_body,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedList:
    """The ballots that are opened together, and what teachers endorse of them."""

    run: MaskedRun
    members: tuple[int, ...]
    ballots: Mapping[int, MaskedBallot] = field(repr=False)
    statement: ListStatement
    check_sum: NDArray[np.uint64] = field(repr=False)
    header_digests: bytes = field(repr=False)

    @property
    def participants(self) -> tuple[int, ...]:
        """Teachers whose ballots are in it, in order."""
        return self.statement.participants

    @property
    def seed_digests(self) -> list[bytes]:
        """What each dealer said of its seed, in order."""
        return [Header.from_bytes(each.header).seed_digest for each in self.ballots.values()]

    def deliver(self, teacher: int, signer: Signer) -> bytes:
        """The list as one teacher gets it: digests of headers, and the rows sealed to it."""
        secret_seals, seed_seals = seals_to(teacher, self.members, self.ballots.values())
        unsigned = DeliveredList(
            task_id=self.run.task.task_id,
            batch_id=self.run.batch_id,
            attempt=self.run.attempt,
            roster_hash=self.run.roster.hash,
            recipient=teacher,
            participants=self.participants,
            header_digests=self.header_digests,
            secret_seals=secret_seals,
            seed_seals=seed_seals,
        )
        return encode(sign(unsigned, signer))


class Ballots:
    """Good ballots of one attempt."""

    def __init__(self, run: MaskedRun) -> None:
        self._run = run
        self._data: dict[int, bytes] = {}
        self.members = run.members
        self.taken: dict[int, MaskedBallot] = {}

    def take(self, ballot: MaskedBallot, data: bytes) -> bool:
        """Keep a ballot that its teacher signed; whether its body is the one that it signed.

        Whoever carried it may have changed another body: then its teacher is asked again.
        """
        require_of_attempt(self._run, ballot)
        try:
            require_signed_body(self._run, ballot, members=len(self.members))
        except DpppError:
            return False
        self.taken[ballot.teacher], self._data[ballot.teacher] = ballot, data
        return True

    def as_list(self, signer: Signer) -> BallotList:
        """All of them, in the order of the teachers, to be stored."""
        unsigned = BallotList(
            task_id=self._run.task.task_id,
            batch_id=self._run.batch_id,
            ballots=tuple(self._data[each] for each in sorted(self.taken)),
        )
        return sign(unsigned, signer)

    def close(self, ballot_list: BallotList) -> ClosedList:
        """Go on with this list: the one just made, or the one stored before a restart."""
        read = self._read(ballot_list.ballots)
        statement = statement_of(
            self._run.task,
            batch=self._run.batch_id,
            of_list=list_hash_of(self._run, read),
            tallies=b"",
            participants=tuple(ballot.teacher for ballot in read),
            key_id=self._run.roster.hash,
        )
        blocks = (each.check_block for each in read)
        return ClosedList(
            run=self._run,
            members=self.members,
            ballots={ballot.teacher: ballot for ballot in read},
            statement=statement,
            check_sum=add_blocks(self._run.task.parameters, blocks, count=1)[0],
            header_digests=digests_of_headers(read),
        )

    def _read(self, ballots: tuple[bytes, ...]) -> list[MaskedBallot]:
        """The ballots of a list: checked now, unless they are the ones checked as they came."""
        here = sorted(self.taken)
        if ballots == tuple(self._data[each] for each in here):
            return [self.taken[each] for each in here]
        members = len(self.members)
        return [read_masked_ballot(self._run, each, members=members) for each in ballots]


def seals_to(
    teacher: int, members: Sequence[int], listed: Collection[MaskedBallot]
) -> tuple[bytes, bytes]:
    """The seals to one teacher as the dealers of these ballots signed them, of both kinds."""
    place, count = members.index(teacher), len(members)
    return (
        _seals_at(place, count, [each.secret_seals for each in listed]),
        _seals_at(place, count, [each.seed_seals for each in listed]),
    )


def _seals_at(place: int, members: int, of_dealers: Sequence[bytes]) -> bytes:
    """The seals of all dealers to the member at this place; each dealer's have the same length."""
    length = len(of_dealers[0]) // members
    start, stop = place * length, (place + 1) * length
    return b"".join([seals[start:stop] for seals in of_dealers])
