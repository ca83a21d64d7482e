"""A small federation as files: what every process under test starts from.

Four teachers, one colluder and one dropout, a 512-bit key that anyone can factor. The terms are the
same every time, so that what breaks once can be tried again. They lie in a folder; each process
reads them as it would in earnest.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.vectors.make_paillier import PRIMES, fixed_random

from dppp.paillier.blinding import BlindingTable
from dppp.paillier.dealer import deal_from_primes
from dppp.paillier.keys import Decryption, KeyShare, PublicKey
from dppp.privacy.calibration import calibrate
from dppp.privacy.ledger.agreement import Agreement
from dppp.privacy.ledger.ledger import Ledger
from dppp.protocol.inputs import encode_inputs
from dppp.protocol.messages import NONCE_BYTES, BatchRequest, Query
from dppp.protocol.signing import Signer, sign, signer_of
from dppp.protocol.task import Task, TeacherEntry, agree
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import decode, encode

AGGREGATOR = 0
TEACHERS = 4
BATCHES = 2
QUERIES_PER_BATCH = 2
NOW = 1_000_000
DEADLINE = NOW + 600


@dataclass(frozen=True)
class World:
    """The terms, and all secrets of this testing federation."""

    task: Task
    public: PublicKey
    key_shares: tuple[KeyShare, ...]
    table: BlindingTable

    def teacher(self, index: int, ledger: Ledger) -> Teacher:
        return Teacher(
            index=index,
            task=self.task,
            public=self.public,
            key_share=self.key_shares[index - 1],
            signer=self.teacher_signer(index),
            ledger=ledger,
            predict=lambda rows: [index % 2] * len(rows),
            draw_blinding=self.table.draw,
        )

    def teacher_signer(self, index: int) -> Signer:
        return signer_of(_signing_key(index))

    @property
    def aggregator_signer(self) -> Signer:
        return signer_of(_signing_key(AGGREGATOR))

    def agree_on_task(self, ledger: Ledger) -> None:
        """What an operator does with a new ledger: the cap, and the task reserved under it."""
        ledger.fix_cap(self.task.data_id, epsilon=self.task.epsilon, delta=self.task.delta)
        ledger.accept(
            self.task.data_id, Agreement.on_one(self.task.certificate, task_id=self.task.task_id)
        )

    def request(self, number: int) -> BatchRequest:
        """Batch `number`, the same whoever makes it, signed by the aggregator."""
        inputs = encode_inputs([[number + 0.5], [number + 0.25]][:QUERIES_PER_BATCH], 1)
        queries = tuple(
            Query(nonce=bytes([number, place]) * (NONCE_BYTES // 2), input=each)
            for place, each in enumerate(inputs)
        )
        unsigned = BatchRequest(task_id=self.task.task_id, deadline=DEADLINE, queries=queries)
        return sign(unsigned, self.aggregator_signer)


def write_world(folder: Path) -> None:
    """Deal the key, agree on the task, and write both down."""
    certificate = calibrate(
        "polya",
        epsilon=4,
        delta=1e-6,
        teachers=TEACHERS,
        colluders=1,
        dropouts=1,
        queries=BATCHES * QUERIES_PER_BATCH,
        classes=2,
    )
    key = deal_from_primes(
        PRIMES,
        teachers=TEACHERS,
        threshold=certificate.trust.threshold,
        s=1,
        decryption=Decryption.ROOT,
        random_bytes=fixed_random("crashes"),
        insecure_testing=True,
    )
    entries = [
        TeacherEntry(
            name=f"teacher {index}",
            signing_key=_signing_key(index).public_key().public_bytes_raw(),
        )
        for index in range(1, TEACHERS + 1)
    ]
    task = agree(
        name="crashes",
        data_id="data",
        class_names=["yes", "no"],
        features=["x"],
        teachers=entries,
        aggregator_key=_signing_key(AGGREGATOR).public_key().public_bytes_raw(),
        certificate=certificate,
        public=key.public,
    )
    (folder / "task").write_bytes(encode(task))
    (folder / "public").write_bytes(key.public.to_bytes())
    for share in key.shares:
        (folder / f"share {share.index}").write_bytes(share.to_bytes())


def read_world(folder: Path) -> World:
    public = PublicKey.from_bytes((folder / "public").read_bytes(), insecure_testing=True)
    return World(
        task=decode((folder / "task").read_bytes(), Task),
        public=public,
        key_shares=tuple(
            KeyShare.from_bytes((folder / f"share {index}").read_bytes())
            for index in range(1, TEACHERS + 1)
        ),
        table=BlindingTable(public, bytes_limit=500_000),
    )


def _signing_key(index: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"%d" % index).digest())
