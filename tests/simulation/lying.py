"""An aggregator that keeps no rule: it has its own key, and tells teachers what it likes.

It lies about requests, lists, certified lists and proofs as a plan says (operations.py). Where a
lie was a list, it does its best to have that one opened as well: it shows it to all victims, keeps
their answers to itself, and sends it out as certified as soon as t teachers have endorsed it,
colluders among them.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from tests.protocol.parties import (
    CLASSES,
    Setting,
    batch_of,
    certified_list_of,
    endorsed_by,
    list_of,
    tallies_of,
)
from tests.simulation.byzantine import ByzantineTeacher
from tests.simulation.network import Network
from tests.simulation.operations import AGGREGATOR, Equivocate, Plan
from tests.small_federation import seal_table

from dppp.errors import WireError
from dppp.protocol.events import Send
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BallotRequest,
    BatchId,
    BatchRequest,
    CertifiedList,
    Endorsement,
    Endorser,
    ListHash,
    ProofRequest,
    SignedShares,
    list_hash,
)
from dppp.protocol.rows import ballot_request, wrapped_key_of
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode, kind_of

LIES_ABOUT_LISTS = ("without one", "below quorum", "alone", "twice", "colluder votes anew")
LIES_ABOUT_CERTIFIED = (
    "too few endorsers",
    "endorser twice",
    "foreign endorser",
    "endorsed elsewhere",
    "other tallies",
    "another list certified",
    "other tallies to prove",
)


class LyingAggregator:
    """Stands between the real aggregator and the wire."""

    def __init__(
        self,
        setting: Setting,
        plan: Plan,
        requests: Sequence[BatchRequest],
        byzantine: dict[int, ByzantineTeacher],
        network: Network,
    ) -> None:
        self._setting = setting
        self._lies = [each for each in plan.operations if isinstance(each, Equivocate)]
        self._times_told = [0] * len(self._lies)
        self._requests = {batch_of(setting, each): each for each in requests}
        self._batches = tuple(self._requests)
        self._byzantine = byzantine
        self._network = network
        self._lists: dict[ListHash, bytes] = {}
        self._other_lists: dict[ListHash, bytes] = {}
        self._certified: set[ListHash] = set()
        self._offers: list[Send] = []

    def tell(self, send: Send) -> list[bytes]:
        """What is really sent to this teacher; a lie is told as it is."""
        match kind_of(send.data):
            case BallotList.KIND:
                of_list = list_hash(decode(send.data, BallotList))
                if of_list in self._other_lists:
                    return [send.data]
                self._lists[of_list] = send.data
            case CertifiedList.KIND:
                if decode(send.data, CertifiedList).list_hash in self._other_lists:
                    return [send.data]
        for place, lie in enumerate(self._lies):
            is_meant = send.teacher in lie.victims
            if is_meant and self._times_told[place] < lie.times * len(lie.victims):
                data = self._told_instead(send, lie)
                if data != send.data:
                    self._times_told[place] += 1
                    return [data] if lie.is_instead else [data, send.data]
        return [send.data]

    def keeps(self, data: bytes) -> bool:
        """Whether this is an answer to a lie, which the true aggregator must not hear of."""
        try:
            match kind_of(data):
                case Endorsement.KIND:
                    return decode(data, Endorsement).statement.list_hash in self._other_lists
                case SignedShares.KIND:
                    return decode(data, SignedShares).list_hash in self._other_lists
        except WireError:
            pass
        return False

    def push_other_lists(self) -> list[Send]:
        """Other lists for whoever has not seen them; as certified, where t endorsed them by now."""
        sends, self._offers = self._offers, []
        for of_list in self._other_lists.keys() - self._certified:
            data = self._other_lists[of_list]
            voters = [decode(each, Ballot).teacher for each in decode(data, BallotList).ballots]
            found = self._endorsements(of_list, voters)
            if len(found) >= self._setting.task.trust.threshold:
                self._certified.add(of_list)
                certified = certified_list_of(self._setting, data, list(found.values()))
                sends += [Send(teacher=each, data=certified) for each in sorted(set(voters))]
        return sends

    def _endorsements(self, of_list: ListHash, voters: Collection[int]) -> dict[int, bytes]:
        """What honest teachers said of a list, and what colluders say of any."""
        data = self._other_lists[of_list]
        found = {
            each: endorsed_by(self._setting, each, data)
            for each in sorted(self._byzantine.keys() & set(voters))
        }
        for message in self._heard_endorsements():
            if message.statement.list_hash == of_list and message.teacher not in self._byzantine:
                found[message.teacher] = encode(message)
        return found

    def _heard_endorsements(self) -> list[Endorsement]:
        found = []
        for message in self._network.delivered:
            if message.receiver == AGGREGATOR:
                try:
                    found.append(decode(message.data, Endorsement))
                except WireError:
                    continue
        return found

    def _told_instead(self, send: Send, lie: Equivocate) -> bytes:
        batch, kind = self._batches[lie.batch], kind_of(send.data)
        if kind == BallotRequest.KIND and lie.how == "other input":
            asked = decode(send.data, BallotRequest)
            if asked.batch_id == batch:
                other = with_other_inputs(self._setting, asked, send.teacher)
                return encode(sign(other, self._setting.aggregator_signer))
        if kind == BallotList.KIND and lie.how in LIES_ABOUT_LISTS:
            ballot_list = decode(send.data, BallotList)
            if ballot_list.batch_id == batch:
                return self._other_list(ballot_list, send.teacher, lie)
        if kind == CertifiedList.KIND and lie.how in LIES_ABOUT_CERTIFIED:
            certified = decode(send.data, CertifiedList)
            if certified.batch_id == batch:
                return self._other_certified(certified, send.teacher, lie.how)
        return send.data

    def _other_list(self, ballot_list: BallotList, victim: int, lie: Equivocate) -> bytes:
        ballots = self._other_ballots(ballot_list, victim, lie)
        data = list_of(self._setting, ballot_list.batch_id, ballots)
        of_list = list_hash(decode(data, BallotList))
        if of_list != list_hash(ballot_list) and of_list not in self._other_lists:
            self._other_lists[of_list] = data
            if lie.how in ("without one", "colluder votes anew"):
                voters = {decode(each, Ballot).teacher for each in ballots}
                others = sorted(voters & set(lie.victims) - {victim})
                self._offers += [Send(teacher=each, data=data) for each in others]
        return data

    def _other_ballots(self, ballot_list: BallotList, victim: int, lie: Equivocate) -> list[bytes]:
        """Another list with the victim's ballot in it; the same for all victims if possible."""
        ballots = {decode(each, Ballot).teacher: each for each in ballot_list.ballots}
        others = sorted(ballots.keys() - {victim}, key=lambda index: index in lie.victims)
        match lie.how:
            case "without one":
                del ballots[others[0]]
            case "below quorum":
                spare = len(ballots) - self._setting.task.trust.ballots_needed
                for index in others[: spare + 1]:
                    del ballots[index]
            case "alone":
                ballots = {victim: ballots[victim]}
            case "twice":
                ballots[others[0]] = ballots[others[-1]]
            case _:
                size = len(CLASSES) * self._queries_in(ballot_list.batch_id)
                for index in sorted(self._byzantine.keys() & ballots.keys())[:1]:
                    ballots[index] = self._byzantine[index].vote_anew(ballot_list.batch_id, size)
        return list(ballots.values())

    def _other_certified(self, certified: CertifiedList, victim: int, how: str) -> bytes:
        endorsers, signer = certified.endorsers, self._setting.aggregator_signer
        match how:
            case "too few endorsers":
                other = replace(certified, endorsers=endorsers[:-1])
            case "endorser twice":
                other = replace(certified, endorsers=(*endorsers[:-1], endorsers[0]))
            case "foreign endorser":
                other = replace(certified, endorsers=(*endorsers[:-1], self._outsider(certified)))
            case "endorsed elsewhere":
                other = replace(certified, endorsers=self._endorsers_elsewhere(certified))
            case "other tallies":
                other = replace(certified, tallies=self._ballot_alone(certified, victim))
            case "another list certified":
                ballots = decode(self._lists[certified.list_hash], BallotList).ballots[1:]
                data = list_of(self._setting, certified.batch_id, ballots)
                other = replace(certified, list_hash=list_hash(decode(data, BallotList)))
            case _:
                request = ProofRequest(
                    task_id=certified.task_id,
                    batch_id=certified.batch_id,
                    list_hash=certified.list_hash,
                    tallies=self._ballot_alone(certified, victim),
                )
                return encode(sign(request, signer))
        return encode(sign(other, signer))

    def _outsider(self, certified: CertifiedList) -> Endorser:
        """A colluder whose ballot is not in the list, or somebody whom the task does not know."""
        data = self._lists[certified.list_hash]
        voters = {decode(each, Ballot).teacher for each in decode(data, BallotList).ballots}
        for outsider in self._byzantine.keys() - voters:
            made = decode(endorsed_by(self._setting, outsider, data), Endorsement)
            return Endorser(teacher=outsider, signature=made.signature)
        stranger = len(self._setting.everybody) + 1
        return Endorser(teacher=stranger, signature=certified.endorsers[-1].signature)

    def _endorsers_elsewhere(self, certified: CertifiedList) -> tuple[Endorser, ...]:
        """Signatures of the same teachers on another list; where there is none, each other's."""
        elsewhere = {
            each.teacher: each.signature
            for each in self._heard_endorsements()
            if each.statement.list_hash != certified.list_hash
        }
        rotated = (*certified.endorsers[1:], certified.endorsers[0])
        return tuple(
            replace(each, signature=elsewhere.get(each.teacher, other.signature))
            for each, other in zip(certified.endorsers, rotated, strict=True)
        )

    def _ballot_alone(self, certified: CertifiedList, victim: int) -> bytes:
        ballots = decode(self._lists[certified.list_hash], BallotList).ballots
        own = [each for each in ballots if decode(each, Ballot).teacher == victim]
        return tallies_of(self._setting, own)

    def _queries_in(self, batch: BatchId) -> int:
        return len(self._requests[batch].query_ids)


def with_other_inputs(setting: Setting, asked: BallotRequest, teacher: int) -> BallotRequest:
    """As many other rows, sealed to this teacher by somebody else: another batch; unsigned."""
    rows = [[100.0 + place] for place in range(asked.queries)]
    queries = seal_table(setting.task, rows, seed="other rows")
    request = BatchRequest(deadline=asked.deadline, queries=queries)
    return replace(ballot_request(request), wrapped_key=wrapped_key_of(queries, teacher))
