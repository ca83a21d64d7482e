"""The same event loop, network, stores and plans under masks, with adversaries of their own."""

import functools
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray
from tests.crash.masked_setting import MaskedSetting
from tests.protocol.parties import CLASSES, QUERIES, RecordedRandomness, label_of, seeded
from tests.simulation.masked_adversaries import MaskedColluder, MaskedForger, MaskedLiar
from tests.simulation.network import Message
from tests.simulation.operations import AGGREGATOR, Plan
from tests.simulation.stores import Fuse, FusedHead, FusedLedgerStore
from tests.simulation.world import TeacherHome, World
from tests.small_federation import kept_certificate, teacher_entries

from dppp.privacy.ledger.ledger import Ledger
from dppp.protocol.cryptosystem import Asked
from dppp.protocol.messages import BatchRequest, Endorsement
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.task import agree
from dppp.protocol.teacher import Teacher
from dppp.protocol.votes import Predict
from dppp.protocol.wire import decode, kind_of
from dppp.protocol.with_masks.keys import EpochSecrets, MemoryEpochSecrets
from dppp.protocol.with_masks.messages import (
    MaskedBallot,
    PublishedKey,
    SeedRows,
    Withdrawal,
)
from dppp.protocol.with_masks.teacher import MaskKeys, MaskSide

A_DAY = 86_400
STORED = (MaskedBallot.KIND, Endorsement.KIND, SeedRows.KIND, Withdrawal.KIND)
"""What a teacher says only after its ledger has it."""
QUESTIONS = (
    CHOICE,
    Question.of_labels(most_labels=2),
    Question.of_number(low=0, high=len(CLASSES) - 1, levels=len(CLASSES) - 1),
)
"""Which of them a plan's federation is asked follows from the plan's seed."""


def votes_of(question: Question, teacher: int, value: float) -> list[int]:
    """The counts of a teacher's vote: its class, that and the next label, or a number."""
    label = label_of(teacher, value)
    if question.kind == "number":
        return [label]
    named = {label} if question.kind == "choice" else {label, (label + 1) % len(CLASSES)}
    return [int(place in named) for place in range(len(CLASSES))]


def model_of(question: Question, teacher: int) -> Predict:
    """Answers of which these votes are made."""

    def answer(value: float) -> object:
        votes = votes_of(question, teacher, value)
        return {
            "choice": votes.index(max(votes)),
            "labels": [place for place, vote in enumerate(votes) if vote],
            "number": float(votes[0]),
        }[question.kind]

    return lambda rows: [answer(row[0]) for row in rows]


@functools.cache
def masked_set_up(
    teachers: int,
    colluders: int,
    dropouts: int,
    *,
    epoch_seconds: int = A_DAY,
    question: Question = CHOICE,
) -> MaskedSetting:
    """The setting of a small federation, always the same one for the same arguments."""
    source = seeded("masked setting", teachers, colluders, dropouts)
    *keys, aggregator_key = (
        Ed25519PrivateKey.from_private_bytes(source.randbytes(32)) for _ in range(teachers + 1)
    )
    row_keys = [X25519PrivateKey.from_private_bytes(source.randbytes(32)) for _ in keys]
    certificate = kept_certificate(
        "skellam",
        epsilon=30,
        delta=1e-3,
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        queries=QUERIES,
        classes=len(CLASSES),
        max_labels=question.most_labels or None,
        levels=question.levels or None,
    )
    task = agree(
        name="masked simulation",
        data_id="data",
        class_names=("parts",) if question.kind == "number" else CLASSES,
        question=question,
        features=("x",),
        teachers=teacher_entries(keys, row_keys),
        aggregator_key=aggregator_key.public_key().public_bytes_raw(),
        certificate=certificate,
        labels_per_batch=16,
        epoch_seconds=epoch_seconds,
    )
    return MaskedSetting(
        task=task,
        signing_keys=tuple(keys),
        row_keys=tuple(row_keys),
        aggregator_key=aggregator_key,
    )


class FusedSecrets(MemoryEpochSecrets):
    """Secrets of epochs; a new one is a write."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self._fuse = fuse

    def put_once(self, task_id: bytes, epoch: int, secret: bytes) -> bytes:
        if self.get(task_id, epoch) is None:
            put = super().put_once
            self._fuse.write(lambda: put(task_id, epoch, secret))
        return super().put_once(task_id, epoch, secret)


class MaskedWorld(World):
    """All roles of a plan under masks."""

    setting: Any
    secrets: dict[int, EpochSecrets]

    def __init__(self, plan: Plan, *, epoch_seconds: int = A_DAY) -> None:
        self._epoch_seconds = epoch_seconds
        self.secrets = {}
        self.entries: dict[bytes, NDArray[np.int64]] = {}
        """What was masked, by the vote blocks that came out."""
        self.unstored: list[tuple[int, str]] = []
        """What honest teachers said before they had stored it."""
        super().__init__(plan)

    def _set_up(self) -> Any:
        trust = (self.plan.teachers, self.plan.colluders, self.plan.dropouts)
        question = QUESTIONS[self.plan.seed % len(QUESTIONS)]
        return masked_set_up(*trust, epoch_seconds=self._epoch_seconds, question=question)

    def _move_in(self, index: int) -> TeacherHome:
        fuse = Fuse()
        store, heads = FusedLedgerStore(fuse), FusedHead(fuse)
        self.setting.new_ledger(index, store, heads)
        self.secrets[index] = FusedSecrets(fuse)
        fuse.light(self._planned_crashes(index))
        randomness = RecordedRandomness(seeded(self.plan.seed, "teacher", index))
        return TeacherHome(store=store, heads=heads, randomness=randomness)

    def _make_teacher(self, index: int, ledger: Ledger, home: TeacherHome) -> Teacher:
        return self.make_masking_teacher(index, ledger, home.randomness)

    def make_masking_teacher(
        self, index: int, ledger: Ledger, randomness: RecordedRandomness
    ) -> Teacher:
        """A teacher whose entries are noted when they are masked."""
        teacher = Teacher(
            index=index,
            task=self.setting.task,
            keys=MaskKeys(secrets=self.secrets[index]),
            signer=self.setting.signer(index),
            row_key=self.setting.row_keys[index - 1],
            ledger=ledger,
            predict=model_of(self.setting.task.question, index),
            randomness=randomness,
        )
        side = teacher._side
        assert isinstance(side, MaskSide)
        honest = side.cast

        def cast(asked: Asked, entries: NDArray[np.int64]) -> bytes:
            ballot = honest(asked, entries)
            self.entries[decode(ballot, MaskedBallot).votes] = entries
            return ballot

        side.cast = cast  # type: ignore[method-assign]
        return teacher

    def _meet_adversaries(self, requests: list[BatchRequest]) -> None:  # noqa: ARG002
        for index in self.plan.byzantine:
            self.secrets[index] = MemoryEpochSecrets()
        self.byzantine = {
            index: MaskedColluder(self, index, how) for index, how in self.plan.byzantine.items()
        }
        self._liar = MaskedLiar(self)
        self.broker = MaskedForger(self)

    def writes(self, role: int) -> int:
        """How often a role wrote into its stores."""
        store = self.batch_store if role == AGGREGATOR else self.homes[role].store
        return store.fuse.writes

    def sends(self, role: int) -> int:
        """How many messages a role was about to send."""
        return self._sent[role]

    def _every_second(self, second: int) -> None:
        """Every other teacher deals secrets ahead in quiet moments; the others when asked."""
        super()._every_second(second)
        for index, teacher in self._teachers.items():
            if teacher is not None and index % 2:
                teacher.prepare(now=self.seconds(index))

    def _leave(self, message: Message) -> bool:
        if message.sender in self.homes:
            self._require_stored(message.sender, message.data)
        return super()._leave(message)

    def _require_stored(self, teacher: int, data: bytes) -> None:
        """At this moment, and not only at the end: a crash may come right after."""
        kind = kind_of(data)
        is_stored = True
        if kind in STORED:
            is_stored = self.homes[teacher].store.holds(data)
        elif kind == PublishedKey.KIND:
            published = decode(data, PublishedKey)
            is_stored = self.secrets[teacher].get(published.task_id, published.epoch) is not None
        if not is_stored:
            self.unstored.append((teacher, kind))
