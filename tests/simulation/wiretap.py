"""What an eavesdropper makes of a run: everything that left a role, sorted by what it is.

Signatures are checked here with the keys of the setting, and not by the code under test.
"""

from collections import defaultdict

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.protocol.parties import tallies_of
from tests.simulation.network import Message
from tests.simulation.operations import AGGREGATOR
from tests.simulation.world import World

from dppp.errors import WireError
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BallotRequest,
    BatchId,
    CertifiedList,
    Endorsement,
    ListHash,
    ListStatement,
    Signed,
    SignedShareProof,
    SignedShares,
    list_hash,
    signed_bytes,
    tally_hash,
)
from dppp.protocol.wire import decode, kind_of


class Wiretap:
    """Messages of honest teachers by what they are about, and what they were told before."""

    def __init__(self, world: World) -> None:
        self._setting = world.setting
        self._honest = set(world.honest)
        self.ballots: dict[tuple[int, BatchId], set[bytes]] = defaultdict(set)
        self.endorsements: dict[tuple[int, BatchId], set[bytes]] = defaultdict(set)
        self.shares: dict[tuple[int, BatchId], set[bytes]] = defaultdict(set)
        self.proofs: set[tuple[int, BatchId, ListHash]] = set()
        self.sharers: dict[tuple[BatchId, ListHash], set[int]] = defaultdict(set)
        self.lists: dict[ListHash, BallotList] = {}
        self.requests: dict[int, dict[BatchId, int]] = defaultdict(dict)
        """Batches that the aggregator asked a teacher for, with their number of queries."""
        self.uncertified: list[tuple[int, BatchId]] = []
        """Shares that left before their teacher was shown t endorsements of their list."""
        self._statements: dict[ListHash, ListStatement] = {}
        self._shown: dict[int, set[tuple[BatchId, ListHash]]] = defaultdict(set)
        for message in world.network.left:
            if message.sender == AGGREGATOR and kind_of(message.data) == BallotList.KIND:
                ballot_list = decode(message.data, BallotList)
                self.lists[list_hash(ballot_list)] = ballot_list
        for is_arrival, message in world.network.history:
            if is_arrival and message.receiver in self._honest:
                self._arrives(message.receiver, message.data)
            elif not is_arrival and message.sender in self._honest:
                self._leaves(message)

    def _arrives(self, teacher: int, data: bytes) -> None:
        try:
            match kind_of(data):
                case BallotRequest.KIND:
                    request = decode(data, BallotRequest)
                    if self._is_from_aggregator(request):
                        self.requests[teacher][request.batch_id] = request.queries
                case CertifiedList.KIND:
                    certified = decode(data, CertifiedList)
                    if self._is_from_aggregator(certified) and self._is_certified(certified):
                        self._shown[teacher].add((certified.batch_id, certified.list_hash))
        except WireError:
            pass  # changed on its way

    def _leaves(self, message: Message) -> None:
        teacher, data = message.sender, message.data
        match kind_of(data):
            case Ballot.KIND:
                self.ballots[teacher, decode(data, Ballot).batch_id].add(data)
            case Endorsement.KIND:
                self.endorsements[teacher, decode(data, Endorsement).batch_id].add(data)
            case SignedShares.KIND:
                shares = decode(data, SignedShares)
                self.shares[teacher, shares.batch_id].add(data)
                self.sharers[shares.batch_id, shares.list_hash].add(teacher)
                if (shares.batch_id, shares.list_hash) not in self._shown[teacher]:
                    self.uncertified.append((teacher, shares.batch_id))
            case _:
                proof = decode(data, SignedShareProof)
                self.proofs.add((teacher, proof.batch_id, proof.list_hash))

    def statement(self, of_list: ListHash) -> ListStatement:
        """What there is to endorse in a list that left the aggregator, from its ballots."""
        if of_list not in self._statements:
            found, setting = self.lists[of_list], self._setting
            self._statements[of_list] = ListStatement(
                task_id=setting.task.task_id,
                batch_id=found.batch_id,
                key_id=setting.task.key_id,
                list_hash=of_list,
                tally_hash=tally_hash(tallies_of(setting, found.ballots)),
                participants=tuple(decode(each, Ballot).teacher for each in found.ballots),
            )
        return self._statements[of_list]

    def _is_certified(self, certified: CertifiedList) -> bool:
        """Whether t distinct teachers in the list signed what is in the list."""
        if certified.list_hash not in self.lists:
            return False
        statement = self.statement(certified.list_hash)
        signed = {
            each.teacher
            for each in certified.endorsers
            if each.teacher in statement.participants
            and _is_signed(
                self._setting.signing_keys[each.teacher - 1], each.endorsement_of(statement)
            )
        }
        is_about_list = tally_hash(certified.tallies) == statement.tally_hash
        return is_about_list and len(signed) >= self._setting.task.trust.threshold

    def _is_from_aggregator(self, message: Signed) -> bool:
        return _is_signed(self._setting.aggregator_key, message)


def _is_signed(key: Ed25519PrivateKey, message: Signed | Endorsement) -> bool:
    try:
        key.public_key().verify(message.signature, signed_bytes(message))
    except InvalidSignature:
        return False
    return True
