"""What tests need that attack real roles: known votes and randomness, and messages of any kind.

The test holds the primes, so it can open any ballot by itself: what a teacher really encrypted is
known without asking the code under test.
"""

import functools
import random
from collections.abc import Sequence

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray
from tests.small_federation import (
    Setting,
    asked_of,
    deal_short_key,
    kept_certificate,
    make_setting,
    seal_table,
    seeded,
)
from tests.vectors.make_paillier import PRIMES

from dppp.paillier.encryption import (
    add_ballots,
    encrypt,
    read_ciphertexts,
    write_ciphertexts,
)
from dppp.paillier.proofs.ballots import prove_ballot
from dppp.privacy.ledger.chain import Head
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.store import HeadMemory, LedgerStore
from dppp.privacy.sampling import sampling_table
from dppp.protocol.lists import statement_of
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BatchId,
    BatchRequest,
    CertifiedList,
    Endorsement,
    Endorser,
    ballot_context,
    list_hash,
)
from dppp.protocol.signing import sign
from dppp.protocol.task import Task
from dppp.protocol.teacher import Teacher
from dppp.protocol.votes import Predict
from dppp.protocol.wire import decode, encode
from dppp.randomness import RandomSource

CLASSES = ("a", "b", "c")
QUERIES = 60


__all__ = ["Setting", "seeded"]


@functools.cache
def set_up(teachers: int, colluders: int, dropouts: int, name: str = "test") -> Setting:
    """The setting of a small federation, always the same one for the same arguments."""
    certificate = kept_certificate(
        "skellam",
        epsilon=30,
        delta=1e-3,
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        queries=QUERIES,
        classes=len(CLASSES),
    )
    source = seeded("setting", teachers, colluders, dropouts, name).randbytes
    key = deal_short_key(teachers, certificate.trust.threshold, s=1, source=source)
    return make_setting(
        certificate, key, name=name, class_names=CLASSES, features=("x",), source=source
    )


class RememberedHead:
    """A head memory that survives what happens to the store."""

    def __init__(self) -> None:
        self.head: Head | None = None

    def recall(self) -> Head | None:
        return self.head

    def remember(self, head: Head) -> None:
        if self.head is None or head.index > self.head.index:
            self.head = head


class RecordedRandomness:
    """A teacher's source of randomness, which the test can read afterwards."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._drawn: list[bytes] = []

    def __call__(self, count: int) -> bytes:
        data = self._source.randbytes(count)
        self._drawn.append(data)
        return data

    def noise(self, task: Task, size: int) -> list[tuple[int, ...]]:
        """Every draw of `size` noise shares, shifted to be non-negative as in a ballot."""
        table = sampling_table(task.noise)
        return [
            tuple((table.draw(size, _again(data)) - table.lowest).tolist())
            for data in self._drawn
            if len(data) == 16 * size
        ]


def _again(data: bytes) -> RandomSource:
    return lambda _: data


def label_of(teacher: int, value: float) -> int:
    """What the model of a teacher says: known, and not the same for all."""
    return (int(value) + teacher % 2) % len(CLASSES)


def model_of(teacher: int) -> Predict:
    def predict(rows: NDArray[np.float64]) -> list[int]:
        return [label_of(teacher, row[0]) for row in rows]

    return predict


def new_ledger(
    setting: Setting, index: int, store: LedgerStore, heads: HeadMemory | None = None
) -> Ledger:
    """The ledger of a teacher that has accepted the task."""
    return setting.new_ledger(index, store, heads)


def new_teacher(
    setting: Setting,
    index: int,
    ledger: Ledger,
    *,
    predict: Predict | None = None,
    randomness: RandomSource | None = None,
    notes: list[str] | None = None,
) -> Teacher:
    """A teacher whose votes are known and whose randomness is the same every time."""
    return setting.teacher(
        index,
        ledger,
        predict=predict or model_of(index),
        randomness=randomness or seeded("teacher", index, setting.task.name).randbytes,
        notes=notes,
    )


def request_for(
    setting: Setting, values: Sequence[float], *, nonce: object = 0, deadline: int = 1000
) -> BatchRequest:
    """A batch with one query for each value, under a row key that `nonce` determines; signed."""
    rows = [[value + place / 1024] for place, value in enumerate(values)]  # no row twice
    queries = seal_table(setting.task, rows, seed=nonce)
    return sign(BatchRequest(deadline=deadline, queries=queries), setting.aggregator_signer)


def batch_of(_: Setting, request: BatchRequest) -> BatchId:
    return request.batch_id


def sent_to(setting: Setting, request: BatchRequest, teacher: int) -> bytes:
    """What the aggregator sends one teacher of a request."""
    return asked_of(request, teacher, setting.aggregator_signer)


def list_of(setting: Setting, batch: BatchId, ballots: Sequence[bytes]) -> bytes:
    """These ballots as a list, in the order in which they are given, signed by the aggregator."""
    unsigned = BallotList(task_id=setting.task.task_id, batch_id=batch, ballots=tuple(ballots))
    return encode(sign(unsigned, setting.aggregator_signer))


def certified_list_of(setting: Setting, ballot_list: bytes, endorsements: Sequence[bytes]) -> bytes:
    """A list as certified by these endorsements, whatever they endorse; signed."""
    found = decode(ballot_list, BallotList)
    unsigned = CertifiedList(
        task_id=found.task_id,
        batch_id=found.batch_id,
        list_hash=list_hash(found),
        tallies=tallies_of(setting, found.ballots),
        endorsers=tuple(
            Endorser(teacher=each.teacher, signature=each.signature)
            for each in (decode(data, Endorsement) for data in endorsements)
        ),
    )
    return encode(sign(unsigned, setting.aggregator_signer))


def tallies_of(setting: Setting, ballots: Sequence[bytes]) -> bytes:
    """The products of these ballots."""
    public = setting.public
    read = [read_ciphertexts(public, decode(each, Ballot).ciphertexts) for each in ballots]
    return write_ciphertexts(public, add_ballots(public, read))


def endorsed_by(setting: Setting, teacher: int, ballot_list: bytes) -> bytes:
    """What a colluder endorses: anything."""
    found = decode(ballot_list, BallotList)
    statement = statement_of(
        setting.task,
        batch=found.batch_id,
        of_list=list_hash(found),
        tallies=tallies_of(setting, found.ballots),
        participants=[decode(each, Ballot).teacher for each in found.ballots],
    )
    unsigned = Endorsement(statement=statement, teacher=teacher)
    return encode(sign(unsigned, setting.signer(teacher)))


def pack_unchecked(setting: Setting, entries: Sequence[int]) -> list[mpz]:
    """What `Packing.pack` does, for whoever ignores the bound of an entry."""
    packing = setting.task.packing
    return [
        sum((mpz(each) << slot * packing.slot_bits for slot, each in enumerate(part)), mpz(0))
        for part in (
            entries[start : start + packing.slots]
            for start in range(0, len(entries), packing.slots)
        )
    ]


def cast_anything(
    setting: Setting,
    teacher: int,
    batch: BatchId,
    plaintexts: Sequence[mpz],
    *,
    source: RandomSource,
    claimed: int | None = None,
    context: bytes | None = None,
) -> bytes:
    """The ballot of a teacher that does not keep the rules, proved and signed all the same.

    `claimed` is whose ballot it says to be, `context` what its proof is bound to.
    """
    public, task_id = setting.public, setting.task.task_id
    index = teacher if claimed is None else claimed
    blindings = [setting.table.draw(source) for _ in plaintexts]
    ciphertexts = [
        encrypt(public, plaintext, blinding)
        for plaintext, blinding in zip(plaintexts, blindings, strict=True)
    ]
    bound_to = ballot_context(task_id, batch, index) if context is None else context
    proof = prove_ballot(public, ciphertexts, blindings, context=bound_to, randomness=source)
    unsigned = Ballot(
        task_id=task_id,
        batch_id=batch,
        teacher=index,
        ciphertexts=write_ciphertexts(public, ciphertexts),
        proof=proof.to_bytes(public),
    )
    return encode(sign(unsigned, setting.signer(teacher)))


def open_by_primes(setting: Setting, ballot: bytes) -> list[mpz]:
    """The plaintexts of a ballot, by factoring: Eq. 1 of the paper undone, without any share."""
    public = setting.public
    order = gmpy2.lcm(PRIMES[0] - 1, PRIMES[1] - 1)
    modulus = public.modulus
    assert public.s == 1
    return [
        (gmpy2.powmod(each, order, modulus**2) - 1)
        // modulus
        * gmpy2.invert(order, modulus)
        % modulus
        for each in read_ciphertexts(public, decode(ballot, Ballot).ciphertexts)
    ]


def entries_of(setting: Setting, ballot: bytes, queries: int) -> tuple[int, ...]:
    """The entries of one ballot that was packed by the rules."""
    count = queries * len(CLASSES)
    return setting.task.packing.unpack(open_by_primes(setting, ballot), count, contributions=1)
