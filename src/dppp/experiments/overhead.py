"""Time and bytes for each teacher and the aggregator, against N and the length of the key.

The paper's way: one ciphertext a class, Equations 1 to 3 with N! in the exponent, t = ⌊2N/3⌋, no
proofs; one class of one label is run with every party's work, its sum is checked, and all classes
cost that many times as much. Ours: a whole batch through the protocol, every message real, with
signatures, proofs and the list of ballots checked by each teacher that helps to decrypt. Times are
processor times of one party.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from gmpy2 import mpz

from dppp.errors import DpppError, WeakModulusWarning
from dppp.federation import Federation, Parties, Reply, create_federation, in_process
from dppp.paillier.blinding import full_blinding
from dppp.paillier.dealer import DealtKey, deal
from dppp.paillier.decryption import paper
from dppp.paillier.decryption.shares import make_decryption_shares
from dppp.paillier.encryption import add, encrypt, write_ciphertexts
from dppp.paillier.keys import Decryption
from dppp.privacy.calibration import calibrate
from dppp.protocol.events import Send
from dppp.protocol.messages import BatchRequest
from dppp.protocol.wire import kind_of

TEACHERS = (20, 100, 250)
MODULUS_BITS = (1024, 2048)
CLASSES = 10
LABELS = 50
"""Labels in a batch of ours: about as many as one ciphertext holds at 2048 bits."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What one label costs one teacher that votes and helps to decrypt, and the aggregator."""

    way: str
    modulus_bits: int
    teachers: int
    classes: int
    labels: int
    teacher_cpu_ms: float
    aggregator_cpu_ms: float
    teacher_sends_bytes: float
    teacher_receives_bytes: float


def measure_overhead(
    *,
    teachers: Sequence[int] = TEACHERS,
    modulus_bits: Sequence[int] = MODULUS_BITS,
    classes: int = CLASSES,
    labels: int = LABELS,
    report: Callable[[int, int], object] = lambda *_: None,
) -> list[Overhead]:
    """Both ways at every N and length of key."""
    points = [(bits, number) for bits in modulus_bits for number in teachers]
    rows = []
    for done, (bits, number) in enumerate(points):
        report(done, len(points))
        rows.append(as_the_paper(number, bits, classes))
        rows.append(as_we_do(number, bits, classes, labels))
    report(len(points), len(points))
    return rows


def as_the_paper(teachers: int, modulus_bits: int, classes: int) -> Overhead:
    """One class of one label from votes to the sum; raise if that is wrong."""
    threshold = max(2, 2 * teachers // 3)
    key = _deal(teachers, threshold, modulus_bits, Decryption.PAPER)
    public = key.public
    entries = [mpz(index % 2) for index in range(teachers)]
    ciphertexts, encryption = _timed(
        lambda: [encrypt(public, entry, full_blinding(public)) for entry in entries]
    )
    tally, adding = _timed(lambda: add(public, ciphertexts))
    chosen = key.shares[:threshold]
    shares, sharing = _timed(
        lambda: [make_decryption_shares(public, share, [tally]).elements[0] for share in chosen]
    )
    subset = tuple(share.index for share in chosen)
    total, combining = _timed(lambda: paper.combine(public, subset, shares))
    if total != sum(entries):
        raise DpppError("the sum is wrong; do not trust these times")
    size = len(write_ciphertexts(public, [tally]))
    return Overhead(
        way="paper",
        modulus_bits=modulus_bits,
        teachers=teachers,
        classes=classes,
        labels=1,
        teacher_cpu_ms=1e3 * classes * (encryption / teachers + sharing / threshold),
        aggregator_cpu_ms=1e3 * classes * (adding + combining),
        teacher_sends_bytes=2 * size * classes,
        teacher_receives_bytes=size * classes,
    )


@dataclass(slots=True)
class _Meter:
    """What teachers spend, send and receive, by whether they vote or decrypt."""

    seconds: dict[bool, float]
    asked: dict[bool, int]
    sent: dict[bool, int]
    received: dict[bool, int]

    @classmethod
    def new(cls) -> "_Meter":
        nothing = {True: 0, False: 0}
        return cls({True: 0.0, False: 0.0}, dict(nothing), dict(nothing), dict(nothing))

    def a_teacher(self, amounts: dict[bool, float] | dict[bool, int]) -> float:
        """The mean of those who vote plus the mean of those who decrypt."""
        return sum(amounts[step] / max(1, self.asked[step]) for step in (True, False))


def as_we_do(teachers: int, modulus_bits: int, classes: int, labels: int) -> Overhead:
    """A whole batch; the default colluders and dropouts, Skellam noise for (8, 1e-5)."""
    parties = _found(teachers, modulus_bits, classes, labels)
    here, meter = in_process(parties.teachers), _Meter.new()

    def deliver(sends: Sequence[Send], now: int) -> list[Reply]:
        is_voting = bool(sends) and kind_of(sends[0].data) == BatchRequest.KIND
        replies, seconds = _timed(lambda: here(sends, now))
        meter.seconds[is_voting] += seconds
        meter.asked[is_voting] += len(sends)
        meter.received[is_voting] += sum(len(send.data) for send in sends)
        meter.sent[is_voting] += sum(len(data) for _, data in replies)
        return replies

    federation = Federation(aggregator=parties.aggregator, deliver=deliver)
    _, total = _timed(lambda: federation.ask(np.arange(labels, dtype=float)[:, None]))
    return Overhead(
        way="dppp",
        modulus_bits=modulus_bits,
        teachers=teachers,
        classes=classes,
        labels=labels,
        teacher_cpu_ms=1e3 * meter.a_teacher(meter.seconds) / labels,
        aggregator_cpu_ms=1e3 * (total - sum(meter.seconds.values())) / labels,
        teacher_sends_bytes=meter.a_teacher(meter.sent) / labels,
        teacher_receives_bytes=meter.a_teacher(meter.received) / labels,
    )


def _found(teachers: int, modulus_bits: int, classes: int, labels: int) -> Parties:
    certificate = calibrate(
        "skellam", epsilon=8, delta=1e-5, teachers=teachers, queries=labels, classes=classes
    )
    return create_federation(
        name="overhead",
        class_names=[f"class {number}" for number in range(classes)],
        features=["record"],
        certificate=certificate,
        models=[lambda rows: [int(row[0]) % classes for row in rows]] * teachers,
        key=_deal(teachers, certificate.trust.threshold, modulus_bits, Decryption.ROOT, s=4),
    )


def _deal(
    teachers: int, threshold: int, modulus_bits: int, decryption: Decryption, s: int = 1
) -> DealtKey:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModulusWarning)  # 1024 bits are the paper's
        return deal(
            teachers=teachers,
            threshold=threshold,
            modulus_bits=modulus_bits,
            s=s,
            decryption=decryption,
            insecure_testing=True,
        )


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    started = time.process_time()
    result = work()
    return result, time.process_time() - started
