"""A federation of five under masks, one role of it in a process that gets killed and comes back.

Teacher 5 never says anything, so every other teacher is needed, the one under test too. Everything
that was ever said on the wire is kept and held against the promises.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from tests.crash.killing import UnderTest
from tests.crash.masked_setting import (
    BATCHES,
    NOW,
    QUERIES_PER_BATCH,
    TEACHERS,
    MaskedSetting,
)
from tests.crash.roles import (
    ASK_OUTCOME,
    MESSAGE,
    OUTCOME,
    RECEIVE,
    REMIND,
    START,
    TICK,
    UNDER_TEST,
    read_send,
    request_frame,
)
from tests.crash.runs import assert_one_charge_per_query

from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.events import Abort, Send
from dppp.protocol.messages import BatchId, Endorsement, ListHash
from dppp.protocol.receipt import Receipt
from dppp.protocol.teacher import Teacher
from dppp.protocol.transcript import Transcript, verify_transcript
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.keys import MemoryEpochSecrets
from dppp.protocol.with_masks.messages import (
    CastRequest,
    CertifiedSum,
    DeliveredList,
    MaskedBallot,
    PublishedKey,
    SeedRows,
    Withdrawal,
)
from dppp.service.stores.sqlite.ledger import SqliteStore

SILENT = TEACHERS
_MOST_ROUNDS = 60
_SECONDS_A_ROUND = 5
_Said = MaskedBallot | Endorsement | SeedRows | Withdrawal


@dataclass
class MaskedWire:
    """All that was ever said; one thing said in two ways is a broken promise."""

    threshold: int
    said: dict[tuple[str, bytes, int, int], bytes] = field(default_factory=dict)
    endorsers: dict[ListHash, set[int]] = field(default_factory=dict)
    lists: dict[tuple[BatchId, int], ListHash] = field(default_factory=dict)

    def hear(self, teacher: int, data: bytes) -> None:
        """A message from a teacher: for a batch and attempt, the same bytes for ever."""
        kind = kind_of(data)
        if kind == PublishedKey.KIND:
            key = decode(data, PublishedKey)
            self._once((kind, key.task_id, key.epoch, teacher), key.public)
            return
        kinds: dict[str, type[_Said]] = {
            each.KIND: each for each in (MaskedBallot, Endorsement, SeedRows, Withdrawal)
        }
        message = decode(data, kinds[kind])
        assert message.teacher == teacher
        if isinstance(message, Endorsement):
            of_list = message.statement.list_hash
            self._once((kind, of_list, 0, teacher), data)
            self.endorsers.setdefault(of_list, set()).add(teacher)
            return
        place = (message.batch_id, message.attempt, teacher)
        self._once((kind, *place), data)
        assert not {(SeedRows.KIND, *place), (Withdrawal.KIND, *place)} <= self.said.keys(), (
            f"teacher {teacher} answered and withdrew"
        )
        if isinstance(message, SeedRows):
            assert teacher in self.endorsers[message.list_hash], "answered and not endorsed"
            assert len(self.endorsers[message.list_hash]) >= self.threshold, "not certified"

    def hear_aggregator(self, send: Send) -> None:
        """One request and one list for each attempt, and nothing certified before t endorsed it."""
        kind = kind_of(send.data)
        if kind == CastRequest.KIND:
            cast = decode(send.data, CastRequest)
            self._once((kind, cast.request, cast.attempt, 0), send.data)
        elif kind == DeliveredList.KIND:
            found = decode(send.data, DeliveredList)
            first = self.lists.setdefault((found.batch_id, found.attempt), found.list_hash)
            assert first == found.list_hash, "two lists of one attempt"
        elif kind == CertifiedSum.KIND:
            certified = decode(send.data, CertifiedSum)
            assert set(certified.endorsers) <= self.endorsers[certified.list_hash]
            assert len(set(certified.endorsers)) >= self.threshold

    def _once(self, place: tuple[str, bytes, int, int], data: bytes) -> None:
        first = self.said.setdefault(place, data)
        assert first == data, f"two different {place[0]}s for one batch"


def _teachers(
    setting: MaskedSetting, indices: Iterable[int], stores: dict[int, MemoryStore]
) -> dict[int, Teacher]:
    return {
        index: setting.teacher(
            index, setting.new_ledger(index, stores[index]), MemoryEpochSecrets()
        )
        for index in indices
    }


def _check_release(setting: MaskedSetting, released: Transcript) -> None:
    verify_transcript(encode(released), expected_task=setting.task.task_id)


def run_with_masked_teacher_killed(
    setting: MaskedSetting, teacher: UnderTest
) -> list[Receipt | Abort]:
    """Teacher 1 is the process; the aggregator and the other teachers are here."""
    run = _TeacherRun(setting, teacher)
    run.come_back()
    outcomes = [run.ask(number) for number in range(BATCHES)]
    teacher.leave()
    for number in range(BATCHES):
        transcript = run.aggregator.transcript(setting.request(number).batch_id)
        assert transcript is not None
        _check_release(setting, transcript)
    run.check_ledger(BATCHES)
    return outcomes


class _TeacherRun:
    def __init__(self, setting: MaskedSetting, teacher: UnderTest) -> None:
        self.setting, self.teacher = setting, teacher
        self.aggregator = setting.aggregator(MemoryBatchStore())
        others = [each for each in setting.everybody if each not in (UNDER_TEST, SILENT)]
        self.others = _teachers(setting, others, {each: MemoryStore() for each in others})
        self.wire = MaskedWire(setting.task.trust.threshold)
        self.now = NOW

    def ask(self, number: int) -> Receipt | Abort:
        request = self.setting.request(number)
        sends = self.aggregator.start(request, now=self.now).sends
        for _ in range(_MOST_ROUNDS):
            sends = tuple(
                each
                for send in sends
                for reply in self._deliver(send)
                for each in self.aggregator.receive(send.teacher, reply, now=self.now).sends
            )
            outcome = self.aggregator.outcome(request.batch_id)
            if outcome is not None:
                return outcome
            if not self.teacher.is_alive:
                self.come_back()
            if not sends:
                self.now += _SECONDS_A_ROUND
                sends = self.aggregator.tick(self.now).sends or self.aggregator.remind().sends
        raise AssertionError("the batch came to no end")

    def come_back(self) -> None:
        """Start the teacher on its files, until it is up."""
        self.teacher.live()
        while not self.teacher.is_alive:
            self.check_ledger(0)
            self.teacher.live()

    def check_ledger(self, batches: int) -> None:
        """What a dead teacher left: a chain that holds, and no charge twice."""
        store = SqliteStore(self.teacher.folder / "ledger")
        try:
            charged = assert_one_charge_per_query(store)
            Ledger.open(store).check()
        finally:
            store.close()
        assert QUERIES_PER_BATCH * batches <= charged <= QUERIES_PER_BATCH * BATCHES

    def _deliver(self, send: Send) -> list[bytes]:
        self.wire.hear_aggregator(send)
        if send.teacher == SILENT:
            return []
        if send.teacher != UNDER_TEST:
            reply = self.others[send.teacher].handle(send.data, now=self.now)
            replies = [] if reply is None else [reply]
        else:
            frames = self.teacher.ask(send.data) if self.teacher.is_alive else []
            replies = [frame[1:] for frame in frames if frame[:1] == MESSAGE]
            refusals = [frame for frame in frames if frame[:1] != MESSAGE]
            # A teacher that came back has forgotten roster and list, and is told them again.
            assert all(b"RosterUnknown" in each for each in refusals), refusals
        for reply in replies:
            self.wire.hear(send.teacher, reply)
        return replies


def run_with_masked_aggregator_killed(
    setting: MaskedSetting, aggregator: UnderTest
) -> list[Transcript | Abort]:
    """The aggregator is the process; all teachers are here."""
    run = _AggregatorRun(setting, aggregator)
    run.take(aggregator.live())
    outcomes = [run.ask(number) for number in range(BATCHES)]
    aggregator.leave()
    for store in run.stores.values():
        assert_one_charge_per_query(store)
    return outcomes


class _AggregatorRun:
    def __init__(self, setting: MaskedSetting, aggregator: UnderTest) -> None:
        self.setting, self.aggregator = setting, aggregator
        speaking = [each for each in setting.everybody if each != SILENT]
        self.stores = {each: MemoryStore() for each in speaking}
        self.teachers = _teachers(setting, speaking, self.stores)
        self.wire = MaskedWire(setting.task.trust.threshold)
        self.on_the_way: deque[Send] = deque()
        self.now = NOW

    def ask(self, number: int) -> Transcript | Abort:
        request = self.setting.request(number)
        for _ in count():
            assert self.now < NOW + _SECONDS_A_ROUND * _MOST_ROUNDS, "the batch came to no end"
            self._request(request_frame(START, now=self.now, data=encode(request)))
            self._deliver()
            outcome = self._outcome(request.batch_id)
            if outcome is not None:
                return outcome
            self.now += _SECONDS_A_ROUND
            for kind in (TICK, REMIND):
                self._request(request_frame(kind, now=self.now))
        raise AssertionError

    def _outcome(self, batch: BatchId) -> Transcript | Abort | None:
        for frame in self._request(request_frame(ASK_OUTCOME, data=batch)):
            if frame[:1] != OUTCOME:
                continue
            if kind_of(frame[1:]) == Abort.KIND:
                return decode(frame[1:], Abort)
            transcript = decode(frame[1:], Transcript)
            _check_release(self.setting, transcript)
            return transcript
        return None

    def take(self, frames: list[bytes]) -> None:
        """What left the process is on its way, even if the process is dead by now."""
        for frame in frames:
            assert frame[:1] in (MESSAGE, OUTCOME), frame
            if frame[:1] == MESSAGE:
                send = read_send(frame)
                self.wire.hear_aggregator(send)
                self.on_the_way.append(send)

    def _deliver(self) -> None:
        while self.on_the_way:
            send = self.on_the_way.popleft()
            if send.teacher == SILENT:
                continue
            reply = self.teachers[send.teacher].handle(send.data, now=self.now)
            if reply is not None:
                self.wire.hear(send.teacher, reply)
                frame = request_frame(RECEIVE, now=self.now, teacher=send.teacher, data=reply)
                self._request(frame)

    def _request(self, request: bytes) -> list[bytes]:
        """Ask; if it is dead, or dies over it, the request is lost and it is started again."""
        frames = self.aggregator.ask(request) if self.aggregator.is_alive else []
        self.take(frames)
        while not self.aggregator.is_alive:
            self.take(self.aggregator.live())
        return frames
