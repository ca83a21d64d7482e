"""Small federations under masks: real roles, one loop that carries messages, and colluders.

A colluder is a real teacher whose side of the cryptosystem was changed (colluders.py): what it
sends is signed with its own key and stored in its own ledger, so it goes on as if it were honest.
"""

import functools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray
from tests.small_federation import (
    asked_of,
    kept_certificate,
    seal_table,
    seeded,
    teacher_entries,
)

from dppp.errors import DpppError
from dppp.privacy.ledger.agreement import Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.cryptosystem import Asked
from dppp.protocol.events import Abort, Aborted, Event, Output, Redone, Released, TeacherBlamed
from dppp.protocol.messages import BatchId, BatchRequest
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import ballots_offset
from dppp.protocol.signing import Signer, sign, signer_of
from dppp.protocol.task import Task, agree
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import encode, kind_of
from dppp.protocol.with_masks.keys import MemoryEpochSecrets
from dppp.protocol.with_masks.messages import (
    CastRequest,
    KeyRequest,
    MaskedFromAggregator,
    Roster,
)
from dppp.protocol.with_masks.teacher import MaskKeys, MaskSide

BEGIN = 1_000_000
QUERIES = 40
CLASSES = ("a", "b")
Answer = Callable[[bytes, bytes | None], list[bytes]]
"""What a colluder sends: from the message that it got and what an honest teacher would answer."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A task under masks, with everybody's signing keys."""

    task: Task
    signing_keys: tuple[Ed25519PrivateKey, ...] = field(repr=False)
    row_keys: tuple[X25519PrivateKey, ...] = field(repr=False)
    aggregator_key: Ed25519PrivateKey = field(repr=False)

    @property
    def everybody(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.task.teachers) + 1))

    @property
    def aggregator_signer(self) -> Signer:
        return signer_of(self.aggregator_key)

    def signer(self, teacher: int) -> Signer:
        return signer_of(self.signing_keys[teacher - 1])


@functools.cache
def set_up(
    teachers: int = 5,
    colluders: int = 1,
    dropouts: int = 1,
    *,
    name: str = "fruit",
    epoch_seconds: int = 86_400,
    question: Question = CHOICE,
) -> Setting:
    source = seeded("masks", "signing keys")
    *signing_keys, aggregator_key = (
        Ed25519PrivateKey.from_private_bytes(source.randbytes(32)) for _ in range(teachers + 1)
    )
    row_keys = [X25519PrivateKey.from_private_bytes(source.randbytes(32)) for _ in signing_keys]
    certificate = kept_certificate(
        "skellam",
        epsilon=8,
        delta=1e-5,
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        queries=QUERIES,
        classes=len(CLASSES),
        levels=question.levels or None,
        max_labels=question.most_labels or None,
    )
    task = agree(
        name=name,
        data_id="data",
        class_names=("weight in grams",) if question.kind == "number" else CLASSES,
        question=question,
        features=["weight"],
        teachers=teacher_entries(signing_keys, row_keys),
        aggregator_key=_public_half(aggregator_key),
        certificate=certificate,
        labels_per_batch=2,
        epoch_seconds=epoch_seconds,
    )
    return Setting(
        task=task,
        signing_keys=tuple(signing_keys),
        row_keys=tuple(row_keys),
        aggregator_key=aggregator_key,
    )


@dataclass(kw_only=True)
class Home:
    """What of a teacher outlives a restart."""

    store: MemoryStore
    secrets: MemoryEpochSecrets


class Federation:
    """All roles of a setting, and the channel between them."""

    def __init__(self, setting: Setting, *, store: MemoryBatchStore | None = None) -> None:
        self.setting = setting
        self.task = setting.task
        self.now = BEGIN
        self.store = store or MemoryBatchStore()
        self.homes = {each: self._move_in(each) for each in setting.everybody}
        self.entries: dict[tuple[int, BatchId, int], NDArray[np.int64]] = {}
        self.teachers: dict[int, Teacher] = {}
        self.answers: dict[int, Answer] = {}
        self.changes: dict[int, Callable[[MaskSide], None]] = {}
        for each in setting.everybody:
            self.start_teacher(each)
        self.aggregator = self.new_aggregator()
        self.events: list[Event] = []
        self.refusals: list[tuple[int, str, DpppError]] = []
        self.received: dict[int, list[bytes]] = {each: [] for each in setting.everybody}
        self.sent: dict[int, list[bytes]] = {each: [] for each in setting.everybody}
        self.remind_seconds = 7
        self.before_delivery: Callable[[int, bytes], None] = lambda *_: None

    # Roles, new and restarted.

    def new_aggregator(self) -> Aggregator:
        return Aggregator(task=self.task, signer=self.setting.aggregator_signer, store=self.store)

    def restart_aggregator(self) -> Output:
        self.aggregator = self.new_aggregator()
        output = Output()
        for each in self.aggregator.unfinished():
            output += self.aggregator.adopt(each, now=self.now)
        self.events += output.events
        return output

    def start_teacher(self, index: int) -> Teacher:
        home = self.homes[index]
        teacher = Teacher(
            index=index,
            task=self.task,
            keys=MaskKeys(secrets=home.secrets),
            signer=self.setting.signer(index),
            row_key=self.setting.row_keys[index - 1],
            ledger=Ledger.open(home.store),
            predict=lambda rows: [self._answer_of(index)] * len(rows),
        )
        self.teachers[index] = teacher
        self._watch_entries(index, self.side(index))
        if index in self.changes:
            self.changes[index](self.side(index))
        return teacher

    def _answer_of(self, index: int) -> int | list[int]:
        label = index % 2
        return [label] if self.task.question.kind == "labels" else label

    def side(self, index: int) -> MaskSide:
        side = self.teachers[index]._side
        assert isinstance(side, MaskSide)
        return side

    def corrupt(self, index: int, change: Callable[[MaskSide], None]) -> None:
        """Change a teacher's side, now and after every restart."""
        self.changes[index] = change
        change(self.side(index))

    def _move_in(self, index: int) -> Home:
        store = MemoryStore()
        ledger = Ledger.create(store, teacher=self.task.teachers[index - 1].name)
        ledger.fix_cap(self.task.data_id, epsilon=self.task.epsilon, delta=self.task.delta)
        agreement = Agreement.on_one(self.task.certificate, task_id=self.task.task_id)
        ledger.accept(self.task.data_id, agreement)
        return Home(store=store, secrets=MemoryEpochSecrets())

    def _watch_entries(self, index: int, side: MaskSide) -> None:
        honest_cast = side.cast

        def cast(asked: Asked, entries: NDArray[np.int64]) -> bytes:
            self.entries[index, asked.request.batch_id, asked.attempt] = entries
            return honest_cast(asked, entries)

        side.cast = cast  # type: ignore[method-assign]

    # The channel.

    def request(self, *, queries: int = 2, seed: object = 0, deadline: int = 900) -> BatchRequest:
        rows = [[float(n)] for n in range(queries)]
        return BatchRequest(
            deadline=BEGIN + deadline, queries=seal_table(self.task, rows, seed=seed)
        )

    def start(self, request: BatchRequest) -> Output:
        output = self.aggregator.start(request, now=self.now)
        self.events += output.events
        return output

    def deliver(self, teacher: int, data: bytes) -> list[bytes]:
        """What comes back from a teacher for one message."""
        self.received[teacher].append(data)
        answer: bytes | None = None
        try:
            answer = self.teachers[teacher].handle(data, now=self.now)
        except DpppError as refusal:
            self.refusals.append((teacher, kind_of(data), refusal))
        if teacher in self.answers:
            replies = self.answers[teacher](data, answer)
        else:
            replies = [] if answer is None else [answer]
        self.sent[teacher] += replies
        return replies

    def step(self, output: Output) -> Output:
        """Deliver these messages and hand the replies over; what is to be sent next."""
        after = Output()
        for send in output.sends:
            self.before_delivery(send.teacher, send.data)
            for reply in self.deliver(send.teacher, send.data):
                after += self.aggregator.receive(send.teacher, reply, now=self.now)
        if not after.sends:
            self.now += 1
            after += self.aggregator.tick(self.now)
            if not after.sends and self.now % self.remind_seconds == 0:
                after += self.aggregator.remind()
        self.events += after.events
        return after

    def run(
        self, output: Output, *, until: Callable[[], bool] = lambda: False, longest: int = 1500
    ) -> Output:
        """Carry messages until the batch has ended, or until this holds."""
        last = self.now + longest
        while self.end is None and not until() and self.now < last:
            output = self.step(output)
        for send in output.sends:  # farewells
            if self.end is not None:
                self.deliver(send.teacher, send.data)
        return output

    def ask(self, **request: int) -> Receipt | Abort:
        self.run(self.start(self.request(**request)))
        assert self.end is not None, "the batch has not ended"
        return self.end

    # What happened.

    @property
    def end(self) -> Receipt | Abort | None:
        for event in self.events:
            if isinstance(event, Released):
                return event.receipt
            if isinstance(event, Aborted):
                return event.abort
        return None

    @property
    def blamed(self) -> dict[int, str]:
        return {
            each.teacher: each.reason for each in self.events if isinstance(each, TeacherBlamed)
        }

    @property
    def attempts(self) -> int:
        return 1 + sum(isinstance(each, Redone) for each in self.events)

    def charged(self, teacher: int) -> int:
        return QUERIES - self.teachers[teacher].queries_left

    def require_right_sums(self, receipt: Receipt, *, shifts: Sequence[int] | None = None) -> None:
        """The counts are the plain sums of what the listed teachers entered."""
        batch = self.request().batch_id
        entered = [self.entries[each, batch, receipt.attempt] for each in receipt.participants]
        expected = np.sum(entered, axis=0) - ballots_offset(self.task, len(entered))
        if shifts is not None:
            expected = expected + np.array(shifts)
        counts = [count for answer in receipt.answers for count in answer.counts]
        assert counts == expected.tolist()

    def kinds_sent_to(self, teacher: int) -> Counter[str]:
        return Counter(map(kind_of, self.received[teacher]))

    # Messages in the aggregator's name, for tests that lie as it.

    def sign(self, message: MaskedFromAggregator) -> bytes:
        return encode(sign(message, self.setting.aggregator_signer))

    def take_keys(
        self, epoch: int | None = None, *, members: Sequence[int] | None = None
    ) -> Roster:
        """Have everybody publish a key and take the roster of them."""
        epoch = self.task.epoch_at(self.now) if epoch is None else epoch
        asked = self.sign(KeyRequest(task_id=self.task.task_id, epoch=epoch))
        keys = []
        for each in members or self.setting.everybody:
            answer = self.teachers[each].handle(asked, now=self.now)
            assert answer is not None
            keys.append(answer)
        roster = sign(
            Roster(task_id=self.task.task_id, epoch=epoch, keys=tuple(keys)),
            self.setting.aggregator_signer,
        )
        for each in members or self.setting.everybody:
            self.teachers[each].handle(encode(roster), now=self.now)
        return roster

    def cast_request(
        self,
        roster: Roster,
        *,
        attempt: int = 1,
        withdrawals: Sequence[bytes] = (),
        request: BatchRequest | None = None,
        teacher: int = 1,
    ) -> bytes:
        """What the aggregator sends this teacher."""
        asked = request or self.request()
        return self.sign(
            CastRequest(
                task_id=self.task.task_id,
                batch_id=asked.batch_id,
                request=asked_of(asked, teacher, self.setting.aggregator_signer),
                attempt=attempt,
                epoch=roster.epoch,
                roster_hash=roster.hash,
                withdrawals=tuple(withdrawals),
            )
        )


def _public_half(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def shuffled(values: Sequence[int], source: random.Random) -> list[int]:
    return source.sample(list(values), len(values))
