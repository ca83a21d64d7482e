"""One attempt at a batch, at the aggregator: what it began with, and what has come in it.

What an attempt begins with is in the store before anybody is asked in it: several aggregators that
share a store go on with the same one, and so does one that was restarted.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from dppp.errors import InputError
from dppp.protocol.batch_store import StoredBatches
from dppp.protocol.events import Send
from dppp.protocol.messages import BallotList, BatchId
from dppp.protocol.signing import Signer, sign
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks.answers import Answers
from dppp.protocol.with_masks.ballots import Ballots, ClosedList
from dppp.protocol.with_masks.blaming import Blaming
from dppp.protocol.with_masks.endorsements import Endorsements
from dppp.protocol.with_masks.messages import CastRequest, MaskedBallot, RefundNotice, Roster
from dppp.protocol.with_masks.verification import MaskedRun


class Attempt:
    """Ballots first; once the list is closed, endorsements and answers; disputes if there are."""

    def __init__(self, task: Task, cast: CastRequest, roster: Roster, *, queries: int) -> None:
        self.cast = cast
        self.run = MaskedRun(
            task=task,
            roster=roster,
            batch_id=cast.batch_id,
            attempt=cast.attempt,
            counts=queries * len(task.class_names),
        )
        self.collected = Ballots(self.run)
        self.blaming: Blaming | None = None
        self._closed: ClosedList | None = None
        self._endorsements: Endorsements | None = None
        self._answers: Answers | None = None

    def close(self, ballot_list: BallotList) -> None:
        """Go on with this list: the one just made, or the one stored before a restart."""
        self._closed = self.collected.close(ballot_list)
        self._endorsements, self._answers = Endorsements(self._closed), Answers(self._closed)

    @property
    def members(self) -> tuple[int, ...]:
        """Teachers whose keys are in its roster."""
        return self.collected.members

    @property
    def ballots(self) -> Mapping[int, MaskedBallot]:
        """Those of the list, or those that have come while there is none."""
        return self.collected.taken if self._closed is None else self._closed.ballots

    @property
    def is_closed(self) -> bool:
        """Whether there is a list."""
        return self._closed is not None

    @property
    def closed(self) -> ClosedList:
        """The list."""
        assert self._closed is not None, "there is no list while teachers vote"
        return self._closed

    @property
    def endorsements(self) -> Endorsements:
        """Of the list."""
        assert self._endorsements is not None, "there is no list while teachers vote"
        return self._endorsements

    @property
    def answers(self) -> Answers:
        """To the certified list."""
        assert self._answers is not None, "there is no list while teachers vote"
        return self._answers

    @property
    def endorsers(self) -> AbstractSet[int]:
        """Who endorsed the list."""
        return set() if self._endorsements is None else self._endorsements.taken.keys()

    @property
    def answerers(self) -> AbstractSet[int]:
        """Who gave rows of seeds."""
        return set() if self._answers is None else self._answers.taken.keys()

    @property
    def objectors(self) -> AbstractSet[int]:
        """Those who objected and have not endorsed after all."""
        return set() if self.blaming is None else self.blaming.objectors - self.endorsers

    @property
    def is_certified(self) -> bool:
        """Whether the sum of the secrets is known, so that answers are asked for."""
        return self._endorsements is not None and self._endorsements.is_certified


def store_attempt(
    store: StoredBatches, cast: CastRequest, roster: Roster
) -> tuple[CastRequest, Roster]:
    """Store how an attempt begins; what counts is what was stored first."""
    store.put_roster(roster.hash, encode(roster))
    found = decode(store.put_attempt(cast.batch_id, cast.attempt, encode(cast)), CastRequest)
    if found.roster_hash == roster.hash:
        return found, roster
    return found, _roster_of(store, found)  # another aggregator was first


def last_attempt(store: StoredBatches, batch: BatchId) -> tuple[CastRequest, Roster] | None:
    """The last attempt at a batch that was begun, and its keys; None before the first."""
    attempt = 1
    while store.attempt(batch, attempt + 1) is not None:
        attempt += 1
    stored = store.attempt(batch, attempt)
    if stored is None:
        return None
    cast = decode(stored, CastRequest)
    return cast, _roster_of(store, cast)


def give_back(
    run: MaskedRun, attempt: int, withdrawals: tuple[bytes, ...], teachers: set[int], signer: Signer
) -> tuple[Send, ...]:
    """What these are told whose ballots of an attempt can never be opened."""
    notice = RefundNotice(
        task_id=run.task.task_id,
        batch_id=run.batch_id,
        attempt=attempt,
        withdrawals=withdrawals,
    )
    data = encode(sign(notice, signer))
    return tuple(Send(teacher=each, data=data) for each in sorted(teachers))


def _roster_of(store: StoredBatches, cast: CastRequest) -> Roster:
    found = store.roster(cast.roster_hash)
    if found is None:
        raise InputError("the roster of this batch is not in the store; somebody removed it")
    return decode(found, Roster)
