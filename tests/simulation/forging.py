"""A broker that makes up messages in the aggregator's name, without the aggregator's key.

What it makes up would do harm if it were believed: a request for other inputs spends budget, a list
without one ballot keeps a teacher from the true list, a certified list or a proof request gets
answers that the aggregator did not ask for.
"""

from collections.abc import Sequence
from dataclasses import replace

from tests.protocol.parties import Setting, batch_of
from tests.simulation.lying import with_other_inputs
from tests.simulation.operations import Forge, Plan

from dppp.protocol.events import Send
from dppp.protocol.messages import (
    UNSIGNED,
    Ballot,
    BallotList,
    BallotRequest,
    BatchRequest,
    CertifiedList,
    ProofRequest,
)
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode, kind_of

_SEEN_AS = {ProofRequest.KIND: CertifiedList.KIND}
"""A proof request is made up from a certified list: the true one is asked for rarely."""

_KINDS: dict[str, type[BallotRequest] | type[BallotList] | type[CertifiedList]] = {
    each.KIND: each for each in (BallotRequest, BallotList, CertifiedList)
}


class ForgingBroker:
    """Sees all that the aggregator sends, and puts messages of its own beside it."""

    def __init__(self, setting: Setting, plan: Plan, requests: Sequence[BatchRequest]) -> None:
        self._setting = setting
        self._forgeries = [each for each in plan.operations if isinstance(each, Forge)]
        self._times = [0] * len(self._forgeries)
        self._batches = [batch_of(setting, each) for each in requests]
        self.forged: list[bytes] = []

    def forge(self, send: Send) -> list[bytes]:
        """What this teacher is told in the aggregator's name, beside what the aggregator sent."""
        found = []
        for place, each in enumerate(self._forgeries):
            is_meant = send.teacher in each.victims and kind_of(send.data) == _SEEN_AS.get(
                each.kind, each.kind
            )
            if is_meant and self._times[place] < each.times * len(each.victims):
                message = decode(send.data, _KINDS[kind_of(send.data)])
                if message.batch_id == self._batches[each.batch]:
                    self._times[place] += 1
                    found.append(encode(self._made_up(message, send.teacher, each)))
        self.forged += found
        return found

    def _made_up(
        self, seen: BallotRequest | BallotList | CertifiedList, victim: int, forge: Forge
    ) -> BallotRequest | BallotList | CertifiedList | ProofRequest:
        message: BallotRequest | BallotList | CertifiedList | ProofRequest
        signature = seen.signature
        match seen:
            case BallotRequest():
                message = with_other_inputs(self._setting, seen, victim)
            case BallotList():
                message = replace(seen, ballots=_without_one(seen, victim))
            case CertifiedList():
                proof = ProofRequest(
                    task_id=seen.task_id,
                    batch_id=seen.batch_id,
                    list_hash=seen.list_hash,
                    tallies=seen.tallies,
                )
                if forge.kind == ProofRequest.KIND:
                    message = proof
                else:
                    message = seen
                    signature = sign(proof, self._setting.aggregator_signer).signature
        if forge.how == "unsigned":
            return replace(message, signature=UNSIGNED)
        if forge.how == "signature of another":
            return replace(message, signature=signature)
        another = victim % len(self._setting.everybody)
        return sign(message, self._setting.signer(another + 1))


def _without_one(ballot_list: BallotList, victim: int) -> tuple[bytes, ...]:
    """A list as good as the true one where there is a ballot to spare."""
    others = [each for each in ballot_list.ballots if decode(each, Ballot).teacher != victim]
    return tuple(each for each in ballot_list.ballots if each != others[0])
