"""One batch at an aggregator, with teachers that keep the rules; the test plays the network."""

from dataclasses import dataclass

from tests.protocol.parties import (
    Setting,
    batch_of,
    certified_list_of,
    list_of,
    new_ledger,
    new_teacher,
    request_for,
    sent_to,
    set_up,
)
from tests.protocol.recording import RecordingAggregator
from tests.small_federation import reply_of

from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.events import Abort, BatchStatus
from dppp.protocol.messages import Ballot, BatchId, Endorsement, SignedShares
from dppp.protocol.receipt import Receipt
from dppp.protocol.signing import sign
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import decode, encode

NOW = 0
DEADLINE = 1_000


@dataclass(frozen=True, kw_only=True)
class OneBatch:
    """A batch of one query."""

    setting: Setting
    aggregator: RecordingAggregator
    teachers: dict[int, Teacher]
    batch: BatchId
    ballots: dict[int, bytes]

    def vote(self, *teachers: int, now: int = NOW) -> None:
        for teacher in teachers:
            self.aggregator.receive(teacher, self.ballots[teacher], now=now)

    def list_of(self, *voters: int) -> bytes:
        """The list of these voters' ballots, or of all."""
        chosen = [self.ballots[each] for each in voters or self.teachers]
        return list_of(self.setting, self.batch, chosen)

    def endorsement_of(self, teacher: int, *, voters: tuple[int, ...] = ()) -> bytes:
        """What a teacher answers to the list of these voters' ballots, or of all."""
        return reply_of(self.teachers[teacher], self.list_of(*voters), now=NOW)

    def endorse(self, *teachers: int, voters: tuple[int, ...] = (), now: int = NOW) -> None:
        for teacher in teachers:
            endorsement = self.endorsement_of(teacher, voters=voters)
            self.aggregator.receive(teacher, endorsement, now=now)

    def shares_of(self, teacher: int, *, voters: tuple[int, ...] = ()) -> SignedShares:
        """What a teacher answers to that list once t teachers, itself among them, endorsed it."""
        t = self.setting.task.trust.threshold
        others = [each for each in voters or self.teachers if each != teacher]
        endorsers = [teacher, *others][:t]
        endorsements = [self.endorsement_of(each, voters=voters) for each in endorsers]
        data = certified_list_of(self.setting, self.list_of(*voters), endorsements)
        return decode(reply_of(self.teachers[teacher], data, now=NOW), SignedShares)

    def signed(self, message: Ballot | Endorsement | SignedShares, *, by: int) -> bytes:
        return encode(sign(message, self.setting.signer(by)))

    @property
    def faults(self) -> dict[int, str]:
        return self.aggregator.faults(self.batch)

    @property
    def status(self) -> BatchStatus:
        found = self.aggregator.status(self.batch)
        assert found is not None
        return found

    @property
    def outcome(self) -> Receipt | Abort | None:
        return self.aggregator.outcome(self.batch)


def start_batch(teachers: int = 5, colluders: int = 1, dropouts: int = 1) -> OneBatch:
    """The aggregator has asked; all ballots are cast, and none has arrived."""
    setting = set_up(teachers, colluders, dropouts)
    aggregator = RecordingAggregator(setting, MemoryBatchStore())
    roles = {
        index: new_teacher(setting, index, new_ledger(setting, index, MemoryStore()))
        for index in setting.everybody
    }
    request = request_for(setting, [1], deadline=DEADLINE)
    aggregator.start(request, now=NOW)
    return OneBatch(
        setting=setting,
        aggregator=aggregator,
        teachers=roles,
        batch=batch_of(setting, request),
        ballots={
            index: reply_of(role, sent_to(setting, request, index), now=NOW)
            for index, role in roles.items()
        },
    )
