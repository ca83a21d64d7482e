"""The one maker of small federations for tests: real roles, on a short key that anyone can factor.

What is slow or must be the same everywhere is made once per process: the key is dealt from fixed
primes, calibrations and tables of blindings are kept. A `Setting` is what is fixed before the first
query; with fixed randomness it is the same in every process, so that a process under test can make
its own. `small_federation` puts roles with ledgers in memory on top. All that is Paillier's is in
`deal_short_key`, `blinding_table` and `Setting.teacher`.
"""

import functools
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import ArrayLike, NDArray
from tests.vectors.make_paillier import PRIMES

from dppp.federation import Parties
from dppp.paillier.blinding import BlindingTable
from dppp.paillier.dealer import DealtKey, deal_from_primes
from dppp.paillier.keys import Decryption, PublicKey
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate
from dppp.privacy.ledger.agreement import Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import HeadMemory, LedgerStore, MemoryStore
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import BatchStore, MemoryBatchStore
from dppp.protocol.inputs import encode_rows
from dppp.protocol.messages import BatchRequest, SealedQueries
from dppp.protocol.rows import ROW_KEY_BYTES, ballot_request, seal_rows, wrapped_key_of
from dppp.protocol.signing import Signer, sign, signer_of
from dppp.protocol.task import Task, TeacherEntry, agree
from dppp.protocol.teacher import Teacher
from dppp.protocol.votes import Predict, sum_votes
from dppp.protocol.wire import encode
from dppp.protocol.with_paillier.teacher import PaillierKeys
from dppp.randomness import RandomSource

kept_certificate = functools.cache(calibrate)
"""A calibration, worked out once per process for the same arguments."""


def seeded(*seed: object) -> random.Random:
    """Randomness that is the same in every run; nothing here is secret."""
    return random.Random(repr(seed))  # noqa: S311


def deal_short_key(teachers: int, threshold: int, *, s: int, source: RandomSource) -> DealtKey:
    """The dealer's part, with primes that everybody knows."""
    return deal_from_primes(
        PRIMES,
        teachers=teachers,
        threshold=threshold,
        s=s,
        decryption=Decryption.ROOT,
        randomness=source,
        insecure_testing=True,
    )


@functools.cache
def dealt_key(teachers: int, threshold: int, s: int = 1) -> DealtKey:
    """A key and its shares, always the same ones for the same arguments."""
    source = seeded("key", teachers, threshold, s)
    return deal_short_key(teachers, threshold, s=s, source=source.randbytes)


@functools.cache
def blinding_table(public: PublicKey) -> BlindingTable:
    return BlindingTable(public, bytes_limit=500_000)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is fixed before the first query, with everybody's secrets."""

    task: Task
    key: DealtKey = field(repr=False)
    signing_keys: tuple[Ed25519PrivateKey, ...] = field(repr=False)
    row_keys: tuple[X25519PrivateKey, ...] = field(repr=False)
    aggregator_key: Ed25519PrivateKey = field(repr=False)
    table: BlindingTable = field(repr=False)

    @property
    def public(self) -> PublicKey:
        return self.key.public

    @property
    def everybody(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.task.teachers) + 1))

    @property
    def aggregator_signer(self) -> Signer:
        return signer_of(self.aggregator_key)

    def signer(self, teacher: int) -> Signer:
        return signer_of(self.signing_keys[teacher - 1])

    def name(self, teacher: int) -> str:
        return self.task.teachers[teacher - 1].name

    def accept(self, ledger: Ledger) -> Ledger:
        """What an operator does with a new ledger: the cap, and the task reserved under it."""
        ledger.fix_cap(self.task.data_id, epsilon=self.task.epsilon, delta=self.task.delta)
        agreement = Agreement.on_one(self.task.certificate, task_id=self.task.task_id)
        ledger.accept(self.task.data_id, agreement)
        return ledger

    def new_ledger(
        self, teacher: int, store: LedgerStore, heads: HeadMemory | None = None
    ) -> Ledger:
        """The ledger of a teacher that has accepted the task."""
        return self.accept(Ledger.create(store, teacher=self.name(teacher), heads=heads))

    def teacher(
        self,
        index: int,
        ledger: Ledger,
        *,
        predict: Predict,
        randomness: RandomSource,
        notes: list[str] | None = None,
    ) -> Teacher:
        """A teacher on its ledger; one that comes back must not be given the same randomness."""
        return Teacher(
            index=index,
            task=self.task,
            keys=PaillierKeys(
                public=self.public,
                key_share=self.key.shares[index - 1],
                draw_blinding=lambda: self.table.draw(randomness),
            ),
            signer=self.signer(index),
            row_key=self.row_keys[index - 1],
            ledger=ledger,
            predict=predict,
            randomness=randomness,
            note=(notes if notes is not None else []).append,
        )

    def aggregator(self, store: BatchStore) -> Aggregator:
        return Aggregator(
            task=self.task, public=self.public, signer=self.aggregator_signer, store=store
        )


def make_setting(
    certificate: Certificate,
    key: DealtKey,
    *,
    name: str,
    class_names: Sequence[str],
    features: Sequence[str],
    source: RandomSource,
    abstain_below: int | None = None,
) -> Setting:
    """Signing and row keys from `source`, and the task that all agree on."""
    *signing_keys, aggregator_key = (
        Ed25519PrivateKey.from_private_bytes(source(32))
        for _ in range(certificate.trust.teachers + 1)
    )
    row_keys = [X25519PrivateKey.from_private_bytes(source(32)) for _ in signing_keys]
    task = agree(
        name=name,
        data_id="data",
        class_names=class_names,
        features=features,
        teachers=teacher_entries(signing_keys, row_keys),
        aggregator_key=_public_half(aggregator_key),
        certificate=certificate,
        public=key.public,
        abstain_below=abstain_below,
    )
    return Setting(
        task=task,
        key=key,
        signing_keys=tuple(signing_keys),
        row_keys=tuple(row_keys),
        aggregator_key=aggregator_key,
        table=blinding_table(key.public),
    )


def reply_of(teacher: Teacher, data: bytes, *, now: int = 0) -> bytes:
    """What a teacher answers to a message to which there is an answer."""
    reply = teacher.handle(data, now=now)
    assert reply is not None, "there is no answer to this message"
    return reply


def cast_each_vote(teacher: Teacher, *, times: int) -> None:
    """Make a teacher that has its real keys cast every vote this many times, where it has one."""
    honest, classes = teacher._entries, len(teacher.task.class_names)

    def entries(inputs: Any) -> NDArray[np.int64]:
        votes = sum_votes(teacher._models, inputs, classes, note=lambda _: None)
        return honest(inputs) + (times - 1) * votes.ravel().astype(np.int64)

    teacher._entries = entries  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFederation(Parties):
    """Roles with ledgers in memory, and everybody's signatures for tests that forge."""

    key: DealtKey = field(repr=False)
    setting: Setting
    signers: dict[int, Signer]


def small_federation(
    setting: Setting, *, models: Sequence[Predict], randomness: RandomSource = os.urandom
) -> SmallFederation:
    """New roles for a setting, one teacher per model."""
    ledgers = {each: setting.new_ledger(each, MemoryStore()) for each in setting.everybody}
    return SmallFederation(
        task=setting.task,
        key=setting.key,
        row_keys=setting.row_keys,
        teachers={
            index: setting.teacher(index, ledgers[index], predict=model, randomness=randomness)
            for index, model in zip(setting.everybody, models, strict=True)
        },
        ledgers=ledgers,
        aggregator=setting.aggregator(MemoryBatchStore()),
        aggregator_signer=setting.aggregator_signer,
        setting=setting,
        signers={each: setting.signer(each) for each in setting.everybody},
    )


def teacher_entries(
    signing_keys: Sequence[Ed25519PrivateKey], row_keys: Sequence[X25519PrivateKey]
) -> list[TeacherEntry]:
    """Teachers with these keys, as they stand in a task."""
    return [
        TeacherEntry(
            name=f"teacher {index}",
            signing_key=_public_half(signing_key),
            row_key=_public_half(row_key),
        )
        for index, (signing_key, row_key) in enumerate(
            zip(signing_keys, row_keys, strict=True), start=1
        )
    ]


def seal_table(task: Task, rows: ArrayLike, *, seed: object = 0) -> SealedQueries:
    """The rows of a querier whose row key follows from the seed, sealed for all teachers."""
    return _sealed_once(task, encode_rows(rows, len(task.features)), repr(seed))


@functools.lru_cache(maxsize=256)
def _sealed_once(task: Task, rows: tuple[bytes, ...], seed: str) -> SealedQueries:
    """HPKE draws its own keys; here the same rows are the same bytes, as long as a process runs."""
    row_key = seeded("row key", seed).randbytes(ROW_KEY_BYTES)
    return seal_rows(task, row_key, rows)


def asked_of(request: BatchRequest, teacher: int, signer: Signer) -> bytes:
    """What the aggregator sends one teacher of a request."""
    wrapped_key = wrapped_key_of(request.queries, teacher)
    return encode(replace(sign(ballot_request(request), signer), wrapped_key=wrapped_key))


def _public_half(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()
