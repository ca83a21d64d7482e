"""A federation of four, one role of it in a process that gets killed and comes back.

Each run asks a few batches and ends when all have an outcome. Everything that was ever said on the
wire is kept and held against the promises; everybody else is in this process and never fails, so
any refusal is a fault of the role under test.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.crash.killing import UnderTest
from tests.crash.roles import (
    ASK_OUTCOME,
    MESSAGE,
    OUTCOME,
    RECEIVE,
    REFUSAL,
    START,
    TICK,
    UNDER_TEST,
    read_send,
    request_frame,
)
from tests.crash.setting import (
    BATCHES,
    NOW,
    QUERIES_PER_BATCH,
    TEACHERS,
    request_of,
    teacher_of,
)
from tests.protocol.parties import certified_list_of, endorsed_by, list_of
from tests.small_federation import Setting, reply_of

from dppp.privacy.ledger.book import Book
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.records import Charge, EndorsedList, GivenAnswer
from dppp.privacy.ledger.store import LedgerStore, MemoryStore
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.events import Abort, Send
from dppp.protocol.messages import (
    WRAPPED_KEY_BYTES,
    Ballot,
    BallotList,
    BallotRequest,
    BatchId,
    BatchRequest,
    CertifiedList,
    Endorsement,
    ListHash,
    SignedShares,
    list_hash,
)
from dppp.protocol.receipt import Receipt, verify_receipt
from dppp.protocol.teacher import Teacher
from dppp.protocol.transcript import Transcript, verify_transcript
from dppp.protocol.wire import decode, encode, kind_of
from dppp.service.stores.sqlite.ledger import SqliteStore

ASKED = (BallotRequest.KIND, BallotList.KIND, CertifiedList.KIND)
"""What a teacher is asked for in every batch."""

_MOST_ROUNDS = 50
_SECONDS_A_ROUND = 5


@dataclass
class Wire:
    """All that was ever said; one thing said in two ways is a broken promise."""

    threshold: int
    said: dict[tuple[str, BatchId, int], bytes] = field(default_factory=dict)
    endorsers: dict[ListHash, set[int]] = field(default_factory=dict)
    helpers: dict[BatchId, dict[ListHash, set[int]]] = field(default_factory=dict)
    """Who gave decryption shares for which list of a batch."""

    def hear(self, teacher: int, data: bytes) -> None:
        """A message from a teacher: ballot, endorsement and shares are the same bytes for ever."""
        kind = kind_of(data)
        kinds: dict[str, type[Ballot | Endorsement | SignedShares]] = {
            each.KIND: each for each in (Ballot, Endorsement, SignedShares)
        }
        message = decode(data, kinds[kind])
        assert message.teacher == teacher
        first = self.said.setdefault((kind, message.batch_id, teacher), data)
        assert first == data, f"teacher {teacher} said two different {kind}s for one batch"
        if isinstance(message, Endorsement):
            endorsed = self.endorsers.setdefault(message.statement.list_hash, set())
            endorsed.add(teacher)
        if isinstance(message, SignedShares):
            said = self.said[Endorsement.KIND, message.batch_id, teacher]
            assert decode(said, Endorsement).statement.list_hash == message.list_hash
            assert len(self.endorsers[message.list_hash]) >= self.threshold, "not certified"
            lists = self.helpers.setdefault(message.batch_id, {})
            lists.setdefault(message.list_hash, set()).add(teacher)
            opened = [who for who in lists.values() if len(who) >= self.threshold]
            assert len(opened) <= 1, "two lists of one batch can be opened"

    def hear_aggregator(self, send: Send) -> None:
        """A message from the aggregator: one request and one list for each batch.

        After a restart the list may be certified by other teachers than before.
        """
        kind = kind_of(send.data)
        if kind == CertifiedList.KIND:
            certified = decode(send.data, CertifiedList)
            self.said.setdefault((kind, certified.batch_id, 0), send.data)
            listed = self.said[BallotList.KIND, certified.batch_id, 0]
            assert certified.list_hash == list_hash(decode(listed, BallotList))
            named = {each.teacher for each in certified.endorsers}
            assert named <= self.endorsers[certified.list_hash]
            assert len(named) >= self.threshold
            return
        if kind == BallotList.KIND:
            batch = decode(send.data, BallotList).batch_id
        else:
            batch = decode(send.data, BallotRequest).batch_id
        first = self.said.setdefault((kind, batch, 0), send.data)
        own = WRAPPED_KEY_BYTES if kind == BallotRequest.KIND else 0  # each teacher has its own
        assert first[: len(first) - own] == send.data[: len(send.data) - own], (
            f"the aggregator sent two different {kind}s for one batch"
        )


def run_with_teacher_killed(setting: Setting, teacher: UnderTest) -> list[Receipt | Abort]:
    """Teacher 1 is the process; the aggregator and the other teachers are here."""
    aggregator = setting.aggregator(MemoryBatchStore())
    others = _teachers_here(setting, set(range(1, TEACHERS + 1)) - {UNDER_TEST})
    run = _TeacherRun(setting, teacher, aggregator, others, Wire(setting.task.trust.threshold))
    run.come_back()
    outcomes = [run.ask(request_of(setting, number)) for number in range(BATCHES)]
    for kind in ASKED:  # all again: the same answers as before
        for number in range(BATCHES):
            run.repeat(run.wire.said[kind, identify(request_of(setting, number)), 0])
    teacher.leave()
    check_ledger_file(setting, teacher.folder, aggregator)
    return outcomes


@dataclass
class _TeacherRun:
    setting: Setting
    teacher: UnderTest
    aggregator: Aggregator
    others: dict[int, Teacher]
    wire: Wire

    def ask(self, request: BatchRequest) -> Receipt | Abort:
        sends = self.aggregator.start(request, now=NOW).sends
        for later in range(_MOST_ROUNDS):
            replies = [(send.teacher, each) for send in sends for each in self._deliver(send)]
            sends = tuple(
                each
                for who, data in replies
                for each in self.aggregator.receive(who, data, now=NOW).sends
            )
            outcome = self.aggregator.outcome(identify(request))
            if outcome is not None:
                return outcome
            if not self.teacher.is_alive:
                self.come_back()
            sends = sends or self.aggregator.tick(NOW + _SECONDS_A_ROUND * later).sends
            sends = sends or self.aggregator.remind().sends
        raise AssertionError("the batch came to no end")

    def come_back(self) -> None:
        """Start the teacher on its files; the aggregator tries to have another list opened.

        It asks for an endorsement, and then, with a colluder's, for shares.
        """
        self.teacher.live()
        while not self.teacher.is_alive:
            check_ledger_file(self.setting, self.teacher.folder, self.aggregator)
            self.teacher.live()
        for (kind, _, _), data in list(self.wire.said.items()):
            if kind == BallotList.KIND:
                self._ask_for_another_list(_another_list(self.setting, data))

    def _ask_for_another_list(self, another: bytes) -> None:
        endorsements = self._ask_teacher(another) if self.teacher.is_alive else []
        if self.teacher.is_alive:
            self._ask_teacher(_certified_by_few(self.setting, another, endorsements))

    def repeat(self, data: bytes) -> None:
        """Say something once more, until the teacher lives to answer it."""
        for _ in range(_MOST_ROUNDS):
            if self.teacher.is_alive:
                self._ask_teacher(data)
            if self.teacher.is_alive:
                return
            self.come_back()
        raise AssertionError("the teacher never came back")

    def _deliver(self, send: Send) -> list[bytes]:
        self.wire.hear_aggregator(send)
        if send.teacher == UNDER_TEST:
            return self._ask_teacher(send.data) if self.teacher.is_alive else []
        reply = reply_of(self.others[send.teacher], send.data, now=NOW)
        self.wire.hear(send.teacher, reply)
        return [reply]

    def _ask_teacher(self, data: bytes) -> list[bytes]:
        """What left the teacher; it may refuse a second list or one without it, nothing else."""
        frames = self.teacher.ask(data)
        replies = [frame[1:] for frame in frames if frame[:1] == MESSAGE]
        for reply in replies:
            self.wire.hear(UNDER_TEST, reply)
        for refusal in frames[len(replies) :]:
            assert refusal.startswith(tuple(self._reasons_to_refuse(data))), refusal
        return replies

    def _reasons_to_refuse(self, data: bytes) -> list[bytes]:
        match kind_of(data):
            case BallotList.KIND:
                return _reasons_to_refuse_list(data)
            case CertifiedList.KIND:
                return self._reasons_to_refuse_certified(decode(data, CertifiedList))
        return []

    def _reasons_to_refuse_certified(self, certified: CertifiedList) -> list[bytes]:
        """That it has too few endorsements, or, if it has enough, that this teacher gave none."""
        if len(certified.endorsers) < self.wire.threshold:
            return [
                REFUSAL + each
                for each in (b"ListNotCertified", b"ListNotEndorsed", b"SecondList", b"BallotUn")
            ]
        said = self.wire.said.get((Endorsement.KIND, certified.batch_id, UNDER_TEST))
        if said and decode(said, Endorsement).statement.list_hash == certified.list_hash:
            return []
        return [REFUSAL + b"SecondList", REFUSAL + b"ListNotEndorsed", REFUSAL + b"BallotUnknown"]


def _reasons_to_refuse_list(data: bytes) -> list[bytes]:
    """Of a list as good as any: that another was endorsed, or that voting closed without it."""
    ballots = decode(data, BallotList).ballots
    if any(decode(ballot, Ballot).teacher == UNDER_TEST for ballot in ballots):
        return [REFUSAL + b"SecondList"]
    return [REFUSAL + b"OwnBallotMissing", REFUSAL + b"BallotUnknown"]


def _another_list(setting: Setting, data: bytes) -> bytes:
    """A list of the same batch that is as good, but for one ballot less."""
    found = decode(data, BallotList)
    return list_of(setting, found.batch_id, found.ballots[: TEACHERS - 1])


def _certified_by_few(setting: Setting, data: bytes, endorsements: list[bytes]) -> bytes:
    """The list as certified by a colluder and whoever else endorsed it: fewer than t."""
    found = decode(data, BallotList)
    of_colluder = endorsed_by(setting, decode(found.ballots[-1], Ballot).teacher, data)
    wanted = decode(of_colluder, Endorsement).statement
    others = [each for each in endorsements if decode(each, Endorsement).statement == wanted]
    assert len(others) + 1 < setting.task.trust.threshold
    return certified_list_of(setting, data, [*others, of_colluder])


def run_with_aggregator_killed(setting: Setting, aggregator: UnderTest) -> list[Transcript | Abort]:
    """The aggregator is the process; all teachers are here."""
    stores = {index: MemoryStore() for index in range(1, TEACHERS + 1)}
    teachers = _teachers_here(setting, set(stores), stores)
    run = _AggregatorRun(setting, aggregator, teachers, stores, Wire(setting.task.trust.threshold))
    run.take(aggregator.live())
    outcomes = [run.ask(request_of(setting, number)) for number in range(BATCHES)]
    aggregator.leave()
    if aggregator.kills:  # also when it was killed while it was leaving
        while not aggregator.is_alive:
            aggregator.live()
        for number, outcome in enumerate(outcomes):
            assert run.recall(identify(request_of(setting, number))) == outcome
        aggregator.leave()
    return outcomes


@dataclass
class _AggregatorRun:
    setting: Setting
    aggregator: UnderTest
    teachers: dict[int, Teacher]
    stores: Mapping[int, LedgerStore]
    wire: Wire
    on_the_way: deque[Send] = field(default_factory=deque)

    def ask(self, request: BatchRequest) -> Transcript | Abort:
        identifier = identify(request)
        for later in count():
            assert later < _MOST_ROUNDS, "the batch came to no end"
            # The querier asks again whenever it hears nothing: the same batch, so free of charge.
            self._request(request_frame(START, data=encode(request)))
            self._deliver()
            outcome = self.find_outcome(identifier)
            if outcome is not None:
                return outcome
            self._request(request_frame(TICK, now=NOW + _SECONDS_A_ROUND * later))
        raise AssertionError

    def recall(self, identifier: BatchId) -> Transcript | Abort | None:
        """The outcome; asked once more when it died over the question."""
        deaths = self.aggregator.kills
        found = self.find_outcome(identifier)
        return self.recall(identifier) if self.aggregator.kills > deaths else found

    def find_outcome(self, identifier: BatchId) -> Transcript | Abort | None:
        frames = self._request(request_frame(ASK_OUTCOME, data=identifier))
        for data in (frame[1:] for frame in frames if frame[:1] == OUTCOME):
            first = self.wire.said.setdefault(("outcome", identifier, 0), data)
            assert first == data, "a batch came to two different ends"
            if kind_of(data) == Abort.KIND:
                return decode(data, Abort)
            transcript = decode(data, Transcript)
            check_release(self.setting, transcript, self.stores)
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
            if self._is_silent(send):
                continue
            reply = reply_of(self.teachers[send.teacher], send.data, now=NOW)
            self.wire.hear(send.teacher, reply)
            self._request(request_frame(RECEIVE, teacher=send.teacher, data=reply))

    def _is_silent(self, send: Send) -> bool:
        """Other teachers vote after a kill than before: who forgets the list makes another."""
        silent = TEACHERS - 1 if self.aggregator.kills else TEACHERS
        return send.teacher == silent and kind_of(send.data) == BallotRequest.KIND

    def _request(self, request: bytes) -> list[bytes]:
        """Ask; if it is dead, or dies over it, the request is lost and it is started again."""
        frames = self.aggregator.ask(request) if self.aggregator.is_alive else []
        self.take(frames)
        while not self.aggregator.is_alive:
            self.take(self.aggregator.live())
        return frames


def identify(request: BatchRequest) -> BatchId:
    return request.batch_id


def check_release(
    setting: Setting, released: Transcript, stores: Mapping[int, LedgerStore]
) -> None:
    """Checks by itself, and every teacher in it had charged the batch before it could exist."""
    verify_receipt(released.receipt, insecure_testing=True)
    verify_transcript(encode(released), insecure_testing=True)
    ballot_list = decode(released.ballot_list, BallotList)
    voters = {decode(data, Ballot).teacher: data for data in ballot_list.ballots}
    assert len(voters) >= setting.task.trust.ballots_needed
    for index, data in voters.items():
        if index in stores:
            ledger = Ledger.open(stores[index])
            assert ledger.find_ballot(ballot_list.batch_id) == data
            assert_one_charge_per_query(stores[index])


def assert_one_charge_per_query(store: LedgerStore) -> int:
    """Of the whole chain, which is checked on the way; the number of queries charged."""
    book = Book()
    queries: list[bytes] = []
    endorsed: list[bytes] = []
    answered: list[bytes] = []
    with store.transaction() as transaction:
        for entry in transaction.read_entries(0):
            match book.apply(entry):
                case Charge(query_ids=ids):
                    queries += ids
                case EndorsedList(batch_id=batch):
                    endorsed.append(batch)
                case GivenAnswer(batch_id=batch):
                    answered.append(batch)
    assert len(set(queries)) == len(queries), "a query was charged twice"
    assert len(set(endorsed)) == len(endorsed), "two lists were endorsed for one batch"
    assert len(set(answered)) == len(answered), "two answers were given for one batch"
    assert set(answered) <= set(endorsed), "an answer to a list that was not endorsed"
    return len(queries)


def check_ledger_file(setting: Setting, folder: Path, aggregator: Aggregator) -> None:
    """What a dead teacher left: a chain that holds, and a charge for all that was released."""
    batches = [identify(request_of(setting, each)) for each in range(BATCHES)]
    found = [aggregator.transcript(each) for each in batches]
    released = [each for each in found if each is not None]
    store = SqliteStore(folder / "ledger")
    try:
        charged = assert_one_charge_per_query(store)
        Ledger.open(store).check()
        for transcript in released:
            check_release(setting, transcript, {UNDER_TEST: store})
    finally:
        store.close()
    assert QUERIES_PER_BATCH * len(released) <= charged <= QUERIES_PER_BATCH * BATCHES


def _teachers_here(
    setting: Setting, indices: set[int], stores: dict[int, MemoryStore] | None = None
) -> dict[int, Teacher]:
    teachers = {}
    for index in indices:
        store = MemoryStore() if stores is None else stores[index]
        teachers[index] = teacher_of(setting, index, setting.new_ledger(index, store))
    return teachers
