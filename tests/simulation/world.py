"""A seeded event loop: real roles, bytes between them, one virtual clock, faults from a plan.

No threads, no real time, no real randomness where it matters: a plan gives the same run every time.
A crash kills a role's object; what its stores hold is all that the next one has.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.protocol.parties import (
    RecordedRandomness,
    Setting,
    batch_of,
    new_ledger,
    new_teacher,
    request_for,
    seeded,
    set_up,
)
from tests.protocol.recording import RecordingAggregator
from tests.simulation.byzantine import ByzantineTeacher
from tests.simulation.forging import ForgingBroker
from tests.simulation.lying import LyingAggregator
from tests.simulation.network import Message, Network
from tests.simulation.operations import AGGREGATOR, CrashAtSend, CrashAtWrite, Plan, TurnClock
from tests.simulation.stores import Crashed, Fuse, FusedBatchStore, FusedHead, FusedLedgerStore

from dppp.errors import DpppError, InputError
from dppp.privacy.ledger.ledger import Ledger
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import Kind
from dppp.protocol.events import Abort, Output
from dppp.protocol.messages import BatchId, BatchRequest
from dppp.protocol.receipt import Receipt
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import kind_of

EPOCH = 1_000_000
REMIND_SECONDS = 7
ASK_AGAIN_SECONDS = 11
LONGEST_SECONDS = 1500
LINGER_SECONDS = 100
BATCH_GAP_SECONDS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The aggregator never took the batch, and told the querier so."""

    reason: str


Ending = Receipt | Abort | Refused


@dataclass(kw_only=True)
class TeacherHome:
    """What of an honest teacher outlives a crash."""

    store: FusedLedgerStore
    heads: FusedHead
    randomness: RecordedRandomness


@dataclass(kw_only=True)
class Asked:
    """A batch as the querier sees it."""

    request: BatchRequest
    batch: BatchId
    values: tuple[int, ...]
    endings: list[Ending] = field(default_factory=list)


class World:
    """All roles of a plan and what happens to them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.setting = self._set_up()
        self.network = Network(plan)
        self.time = 0
        self.asked = [self._querier_draws(number) for number in range(len(plan.batches))]
        self.batch_store = FusedBatchStore(self._fuse(AGGREGATOR))
        self.honest = [each for each in self.setting.everybody if each not in plan.byzantine]
        self.homes = {index: self._move_in(index) for index in self.honest}
        self.crashes = 0
        self._meet_adversaries([each.request for each in self.asked])
        self.refusals: list[tuple[int, DpppError]] = []
        self._teachers: dict[int, Teacher | None] = {}
        self._aggregator: RecordingAggregator | None = None
        self._down_until: dict[int, int] = {}
        self._sent = dict.fromkeys((AGGREGATOR, *self.setting.everybody), 0)

    def _set_up(self) -> Setting:
        return set_up(self.plan.teachers, self.plan.colluders, self.plan.dropouts)

    def _meet_adversaries(self, requests: list[BatchRequest]) -> None:
        self.byzantine: dict[int, Any] = {
            index: ByzantineTeacher(
                self.setting,
                index,
                how,
                seen=self._seen,
                source=seeded(self.plan.seed, "byzantine", index),
            )
            for index, how in self.plan.byzantine.items()
        }
        self._liar: Any = LyingAggregator(
            self.setting, self.plan, requests, self.byzantine, self.network
        )
        self.broker: Any = ForgingBroker(self.setting, self.plan, requests)

    def run(self) -> None:
        """Until every batch has ended and what was still in flight has arrived."""
        for index in self.honest:
            self._start_teacher(index)
        self._start_aggregator()
        last_second, linger_until = -1, None
        while linger_until is None or self.time < linger_until:
            second = self.time // 1000
            if second > LONGEST_SECONDS:
                return
            if second > last_second:
                last_second = second
                self._every_second(second)
            for message in self.network.arrived(self.time):
                self._deliver(message)
            if linger_until is None and all(each.endings for each in self.asked):
                linger_until = self.time + 1000 * LINGER_SECONDS
            self.time = self._next_moment(linger_until is not None)

    def ledger_of(self, index: int) -> Ledger:
        """A look into an honest teacher's store, by a process of its own."""
        return Ledger.open(self.homes[index].store)

    def faults(self, batch: BatchId) -> dict[int, str]:
        """Whom the aggregator blames in a batch, as far as it has not forgotten by a crash."""
        return {} if self._aggregator is None else self._aggregator.faults(batch)

    def seconds(self, role: int) -> int:
        """What the clock of a role shows."""
        jumps = sum(
            each.seconds
            for each in self.plan.operations
            if isinstance(each, TurnClock) and each.role == role and self.time >= 1000 * each.at
        )
        return EPOCH + self.time // 1000 + jumps

    def _next_moment(self, is_over: bool) -> int:
        next_second = (self.time // 1000 + 1) * 1000
        arrival = self.network.next_arrival()
        if is_over and arrival is None:
            return next_second + 1000 * LINGER_SECONDS
        return next_second if arrival is None else max(self.time + 1, min(next_second, arrival))

    def _every_second(self, second: int) -> None:
        for role, until in list(self._down_until.items()):
            if second >= until:
                del self._down_until[role]
                self._restart(role)
        for number, asked in enumerate(self.asked):
            start = number * BATCH_GAP_SECONDS
            is_due = second >= start and (second - start) % ASK_AGAIN_SECONDS == 0
            if is_due and not asked.endings:
                self._ask(asked)
        self._at_aggregator(lambda role: role.tick(self.seconds(AGGREGATOR)))
        if second % REMIND_SECONDS == 0:
            self._at_aggregator(lambda role: role.remind())
        self._at_aggregator(lambda _: Output(sends=tuple(self._liar.push_other_lists())))

    def _querier_draws(self, number: int) -> Asked:
        source = seeded(self.plan.seed, "inputs", number)
        values = tuple(source.randrange(100) for _ in range(self.plan.batches[number]))
        request = request_for(
            self.setting,
            values,
            nonce=(self.plan.seed, number),
            deadline=EPOCH + number * BATCH_GAP_SECONDS + self.plan.deadline_seconds,
        )
        return Asked(request=request, batch=batch_of(self.setting, request), values=values)

    def _ask(self, asked: Asked) -> None:
        """The querier asks, and asks again until it is told an ending."""

        def start(role: Aggregator) -> Output:
            try:
                return role.start(asked.request, now=self.seconds(AGGREGATOR))
            except InputError as refusal:
                if self.batch_store.get(asked.batch, Kind.REQUEST) is None:
                    asked.endings.append(Refused(reason=str(refusal)))
                return Output()

        self._at_aggregator(start)

    def _at_aggregator(self, act: Callable[[Aggregator], Output]) -> None:
        if self._aggregator is None:
            return
        try:
            output = act(self._aggregator)
        except Crashed as crash:
            self._go_down(AGGREGATOR, crash.down_seconds)
            return
        for asked in self.asked:
            outcome = self._aggregator.outcome(asked.batch)
            if outcome is not None and outcome not in asked.endings:
                asked.endings.append(outcome)
        for send in output.sends:
            for data in self.broker.forge(send):
                forged = Message(sender=AGGREGATOR, receiver=send.teacher, data=data)
                self.network.forge(forged, self.time)
            for data in self._liar.tell(send):
                if not self._leave(Message(sender=AGGREGATOR, receiver=send.teacher, data=data)):
                    return

    def _deliver(self, message: Message) -> None:
        if message.receiver == AGGREGATOR and self._liar.keeps(message.data):
            return
        if message.receiver == AGGREGATOR:
            self._at_aggregator(
                lambda role: role.receive(
                    message.sender, message.data, now=self.seconds(AGGREGATOR)
                )
            )
            return
        index = message.receiver
        for data in self._answers(index, message.data):
            if not self._leave(Message(sender=index, receiver=AGGREGATOR, data=data)):
                return

    def _answers(self, index: int, data: bytes) -> list[bytes]:
        try:
            if index in self.byzantine:
                return [] if index in self._down_until else self.byzantine[index].handle(data)
            teacher = self._teachers[index]
            reply = None if teacher is None else teacher.handle(data, now=self.seconds(index))
            return [] if reply is None else [reply]
        except DpppError as refusal:
            self.refusals.append((index, refusal))
        except Crashed as crash:
            self._go_down(index, crash.down_seconds)
        return []

    def _leave(self, message: Message) -> bool:
        """Send, unless the role dies on the doorstep; whether it lives on."""
        role = message.sender
        self._sent[role] += 1
        for each in self.plan.operations:
            if isinstance(each, CrashAtSend) and (each.role, each.send) == (role, self._sent[role]):
                self._go_down(role, each.down_seconds)
                return False
        self.network.send(message, self.time)
        return True

    def _go_down(self, role: int, seconds: int) -> None:
        self.crashes += 1
        if role == AGGREGATOR:
            self._aggregator = None
        else:
            self._teachers[role] = None
        self._down_until[role] = self.time // 1000 + 1 + seconds

    def _restart(self, role: int) -> None:
        if role == AGGREGATOR:
            self._start_aggregator()
        elif role in self.homes:
            self._start_teacher(role)

    def _start_aggregator(self) -> None:
        self._aggregator = RecordingAggregator(self.setting, self.batch_store)
        self._at_aggregator(self._go_on)

    def _go_on(self, aggregator: Aggregator) -> Output:
        """What a process does after a restart."""
        now, output = self.seconds(AGGREGATOR), Output()
        for batch in aggregator.unfinished():
            output += aggregator.adopt(batch, now=now)
        return output

    def _start_teacher(self, index: int) -> None:
        home = self.homes[index]
        try:
            ledger = Ledger.open(
                home.store,
                teacher=self.setting.task.teachers[index - 1].name,
                heads=home.heads,
            )
        except Crashed as crash:
            self._go_down(index, crash.down_seconds)
            return
        self._teachers[index] = self._make_teacher(index, ledger, home)

    def _make_teacher(self, index: int, ledger: Ledger, home: TeacherHome) -> Teacher:
        return new_teacher(self.setting, index, ledger, randomness=home.randomness)

    def _move_in(self, index: int) -> TeacherHome:
        """A ledger with the task accepted, before the fuse is lit."""
        fuse = Fuse()
        store, heads = FusedLedgerStore(fuse), FusedHead(fuse)
        new_ledger(self.setting, index, store, heads)
        fuse.light(self._planned_crashes(index))
        randomness = RecordedRandomness(seeded(self.plan.seed, "teacher", index))
        return TeacherHome(store=store, heads=heads, randomness=randomness)

    def _fuse(self, role: int) -> Fuse:
        fuse = Fuse()
        fuse.light(self._planned_crashes(role))
        return fuse

    def _planned_crashes(self, role: int) -> list[CrashAtWrite]:
        crashes = (each for each in self.plan.operations if isinstance(each, CrashAtWrite))
        return [each for each in crashes if each.role == role]

    def _seen(self, kind: str) -> list[bytes]:
        return [
            message.data
            for message in self.network.left
            if message.sender in self.honest and kind_of(message.data) == kind
        ]
