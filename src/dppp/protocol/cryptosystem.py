"""What a role asks of its cryptosystem: masks (with_masks/) or paillier (with_paillier/).

A teacher's role checks what is the same for both (task, budget, one list per attempt, what is in
the ledger) and leaves to its side of the cryptosystem what ballots, endorsements and answers are
made of. Nothing that a side returns is sent before the role has stored it.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dppp.privacy.ledger.ledger import Ledger
from dppp.protocol.messages import BallotRequest, BatchId, ListHash, Signed
from dppp.protocol.signing import Signer
from dppp.protocol.task import Task
from dppp.randomness import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a teacher works with, whatever the cryptosystem."""

    index: int
    task: Task
    signer: Signer = field(repr=False)
    ledger: Ledger = field(repr=False)
    randomness: RandomSource = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for a ballot. `evidence` allows an attempt after the first at no new charge."""

    message: Signed
    request: BallotRequest
    attempt: int = 1
    evidence: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutList:
    """A message about one list of a batch: the list itself, or that it is certified."""

    message: Signed
    batch_id: BatchId
    list_hash: ListHash
    attempt: int = 1


class TeacherSide(Protocol):
    """A teacher's side of a cryptosystem."""

    request_kind: str
    list_kind: str
    certified_kind: str

    def forget(self, *, now: int) -> None:
        """Delete all keys whose time is over, before anything else is done at this time."""

    def read_request(self, data: bytes) -> Asked:
        """A request for a ballot, by its form only."""

    def require_castable(self, asked: Asked, *, now: int) -> None:
        """Refuse what this side cannot cast a ballot for; before the rows are opened."""

    def cast(self, asked: Asked, entries: NDArray[np.int64]) -> bytes:
        """A signed ballot that holds these entries."""

    def read_list(self, data: bytes) -> AboutList:
        """A list, by its form only."""

    def endorse(self, listed: AboutList, own_ballot: bytes) -> bytes:
        """A signed endorsement of a list that was found good; or an objection, which is final."""

    def recall(self, listed: AboutList, own_ballot: bytes) -> None:
        """The list was endorsed before: have ready what an answer takes."""

    def is_endorsement(self, data: bytes) -> bool:
        """Whether this is to be stored as the endorsement of the one list."""

    def read_certified(self, data: bytes) -> AboutList:
        """A certified list, by its form only."""

    def answer(self, certified: AboutList, endorsement: bytes) -> bytes:
        """What opens the certified list, signed."""

    def settle(self, kind: str, data: bytes, *, now: int) -> bytes | None:
        """Any other message: keys of epochs, and disputes. None: there is nothing to say."""

    def prepare(self, *, now: int) -> bool:
        """Use a quiet moment: forget what is over, and work ahead; whether there may be more."""


class TeacherKeys(Protocol):
    """What a teacher has of its cryptosystem before the first batch."""

    def take_part(self, desk: Desk) -> TeacherSide:
        """The side that works at this desk."""
