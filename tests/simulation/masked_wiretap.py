"""What an eavesdropper makes of a run under masks: all that left a role, sorted by what it is.

Signatures of the aggregator are checked here with the key of the setting; that a teacher was shown
t endorsements is read off the bytes that the endorsers sent, and not asked of the code under test.
"""

from collections import defaultdict
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from tests.simulation.masked_world import MaskedWorld
from tests.simulation.network import Message
from tests.simulation.operations import AGGREGATOR

from dppp.errors import DpppError
from dppp.masks.dealing import secret_row_bytes
from dppp.masks.sealing import Purpose
from dppp.protocol.messages import (
    SIGNATURE_BYTES,
    BatchId,
    Endorsement,
    ListHash,
    signed_bytes,
)
from dppp.protocol.wire import decode, kind_of
from dppp.protocol.with_masks.messages import (
    MAC_BYTES,
    CastRequest,
    CertifiedSum,
    Complaint,
    DeliveredList,
    KeyRequest,
    MaskedBallot,
    Objection,
    PublishedKey,
    RootRequest,
    Roster,
    RowRequest,
    SealEvidence,
    SeedRows,
    ShownRoot,
    ShownRows,
    Withdrawal,
    WithdrawalRequest,
)


class Attempt(NamedTuple):
    """One try at a batch."""

    batch: BatchId
    number: int


_ASKS: dict[type[Any], tuple[type[Any], ...]] = {
    CastRequest: (MaskedBallot,),
    DeliveredList: (Endorsement, Objection),
    CertifiedSum: (SeedRows,),
    WithdrawalRequest: (Withdrawal,),
    RootRequest: (ShownRoot,),
    RowRequest: (ShownRows,),
    SealEvidence: (Complaint,),
    KeyRequest: (PublishedKey,),
}
"""What the aggregator says, and what a teacher says to that and to nothing else."""
_ASKING = {each.KIND: each for each in _ASKS}
_SAID = {each.KIND: each for answers in _ASKS.values() for each in answers}


class MaskedWiretap:
    """Messages of honest teachers by what they are about, and what they were told before."""

    def __init__(self, world: MaskedWorld) -> None:
        self._world = world
        self._honest = set(world.honest)
        self._row_bytes = secret_row_bytes(world.setting.task.parameters)
        self._threshold = world.setting.task.trust.threshold
        self.said: dict[tuple[str, int, Attempt], set[bytes]] = defaultdict(set)
        """By kind, honest teacher and attempt."""
        self.ballots: dict[bytes, MaskedBallot] = {}
        """Those of honest teachers, by their bytes."""
        self.answered: dict[Attempt, dict[ListHash, set[int]]] = defaultdict(dict)
        """Which lists honest teachers helped to open."""
        self.told: set[Attempt] = set()
        """Attempts in which an honest teacher showed a root, or rows of secrets."""
        self.unasked: list[tuple[int, str]] = []
        self.uncertified: list[tuple[int, BatchId]] = []
        self.untimely: list[tuple[int, str]] = []
        """What t withdrawals, or an answer, have to come before, and did not."""
        self.lists: dict[ListHash, DeliveredList] = {}
        self.withdrawn: dict[Attempt, set[int]] = defaultdict(set)
        self._members: dict[bytes, tuple[int, ...]] = {}
        self._endorsed: dict[tuple[ListHash, int], list[Endorsement]] = defaultdict(list)
        self._asked: dict[int, set[tuple[str, object]]] = defaultdict(set)
        self._certified: dict[int, set[ListHash]] = defaultdict(set)
        for message in world.network.left:
            if message.sender == AGGREGATOR:
                self._learn(message.data)
        for is_arrival, message in world.network.history:
            if is_arrival and message.receiver in self._honest:
                self._arrives(message.receiver, message.data)
            elif not is_arrival and message.sender != AGGREGATOR:
                self._leaves(message)

    def members_of(self, roster_hash: bytes) -> tuple[int, ...]:
        return self._members[roster_hash]

    def _learn(self, data: bytes) -> None:
        if kind_of(data) == DeliveredList.KIND:
            delivered = decode(data, DeliveredList)
            self.lists[delivered.list_hash] = delivered
        elif kind_of(data) == Roster.KIND:
            roster = decode(data, Roster)
            members = tuple(decode(each, PublishedKey).teacher for each in roster.keys)
            self._members[roster.hash] = members

    def _arrives(self, teacher: int, data: bytes) -> None:
        try:
            asking = _ASKING.get(kind_of(data))
            if asking is None:
                return
            asked = decode(data, asking)
        except DpppError:
            return  # changed on its way
        if not self._is_from_aggregator(asked):
            return
        self._asked[teacher] |= {(each.KIND, self._about(asked)) for each in _ASKS[asking]}
        if isinstance(asked, CertifiedSum) and self._shows_t_endorsements(asked, teacher):
            self._certified[teacher].add(asked.list_hash)

    def _is_from_aggregator(self, asked: Any) -> bool:
        public = self._world.setting.aggregator_key.public_key()
        try:
            public.verify(asked.signature, signed_bytes(asked))
        except InvalidSignature:
            return False
        return True

    def _about(self, message: Any) -> object:
        if isinstance(message, KeyRequest | PublishedKey):
            return message.epoch
        if isinstance(message, Endorsement):
            listed = self.lists.get(message.statement.list_hash)
            return Attempt(message.batch_id, 0 if listed is None else listed.attempt)
        return Attempt(message.batch_id, message.attempt)

    def _shows_t_endorsements(self, shown: CertifiedSum, teacher: int) -> bool:
        """T teachers of the list, each by bytes that it sent before about exactly this list."""
        listed = self.lists.get(shown.list_hash)
        if listed is None:
            return False
        named = {
            endorser
            for place, endorser in enumerate(shown.endorsers)
            if endorser in listed.participants
            and any(
                self._is_shown(shown, place, said, listed, teacher)
                for said in self._endorsed[shown.list_hash, endorser]
            )
        }
        return len(named) >= self._threshold

    def _is_shown(
        self,
        shown: CertifiedSum,
        place: int,
        said: Endorsement,
        listed: DeliveredList,
        teacher: int,
    ) -> bool:
        if said.teacher == teacher:
            return True
        start = self._row_bytes + MAC_BYTES * self._members[listed.roster_hash].index(teacher)
        has_mac = shown.macs[place * MAC_BYTES :][:MAC_BYTES] == said.content[start:][:MAC_BYTES]
        return has_mac or shown.signatures[place * SIGNATURE_BYTES :][:SIGNATURE_BYTES] == (
            said.signature
        )

    def _leaves(self, message: Message) -> None:
        kind = kind_of(message.data)
        said = decode(message.data, _SAID[kind])
        teacher, is_honest = message.sender, message.sender in self._honest
        if isinstance(said, Endorsement):
            self._endorsed[said.statement.list_hash, teacher].append(said)
        if isinstance(said, Withdrawal):
            self.withdrawn[Attempt(said.batch_id, said.attempt)].add(teacher)
        if not is_honest:
            return
        about = self._about(said)
        if (kind, about) not in self._asked[teacher]:
            self.unasked.append((teacher, kind))
        if isinstance(about, Attempt):
            self.said[kind, teacher, about].add(message.data)
            self._note(said, teacher, about, message.data)

    def _note(self, said: Any, teacher: int, attempt: Attempt, data: bytes) -> None:
        match said:
            case MaskedBallot():
                self.ballots[data] = said
            case SeedRows():
                self.answered[attempt].setdefault(said.list_hash, set()).add(teacher)
                is_endorsed = bool(self._endorsed[said.list_hash, teacher])
                if not is_endorsed or said.list_hash not in self._certified[teacher]:
                    self.uncertified.append((teacher, said.batch_id))
            case ShownRows(purpose=Purpose.SEED_ROW):
                if (SeedRows.KIND, teacher, attempt) not in self.said:
                    self.untimely.append((teacher, "rows of seeds"))
            case ShownRoot() | ShownRows():
                self.told.add(attempt)
                if len(self.withdrawn[attempt]) < self._threshold:
                    self.untimely.append((teacher, said.KIND))
