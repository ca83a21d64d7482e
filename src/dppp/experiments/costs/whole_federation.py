"""A whole federation in this process, every message real, with a meter on its messages.

Used by `dppp reproduce overhead` and `dppp bench`. The roles are the same objects as on a network:
signatures, proofs and the teachers' checks of the list of ballots are all in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dppp.experiments.costs.processor_time import time_once
from dppp.federation import Federation, Outcome, Parties, Reply, create_federation, in_process
from dppp.paillier.dealer import deal
from dppp.privacy.calibration import calibrate
from dppp.protocol.events import Send
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import kind_of


@dataclass(slots=True)
class Round:
    """Messages of one kind to teachers, what they answered, and their processor seconds."""

    asked_bytes: list[int] = field(default_factory=list)
    answer_bytes: list[int] = field(default_factory=list)
    cpu_seconds: float = 0.0


class MessageMeter:
    """Delivers to teachers in this process, and adds up every round by its kind of message."""

    def __init__(self, teachers: Mapping[int, Teacher]) -> None:
        self._deliver = in_process(teachers)
        self.rounds: dict[str, Round] = {}

    def deliver(self, sends: Sequence[Send], now: int) -> list[Reply]:
        """Carry messages to the teachers, as a `Federation` wants it done."""
        replies, seconds = time_once(lambda: self._deliver(sends, now))
        if sends:
            measured = self.rounds.setdefault(kind_of(sends[0].data), Round())
            measured.asked_bytes += [len(send.data) for send in sends]
            measured.answer_bytes += [len(data) for _, data in replies]
            measured.cpu_seconds += seconds
        return replies

    @property
    def teachers_cpu_seconds(self) -> float:
        """All teachers together; the rest of a batch is the aggregator's."""
        return sum(each.cpu_seconds for each in self.rounds.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationRun:
    """One batch: what came of it, its messages, and the processor seconds of all parties."""

    outcome: Outcome
    meter: MessageMeter
    cpu_seconds: float


def run_federation(
    *, teachers: int, classes: int, labels: int, modulus_bits: int, s: int
) -> FederationRun:
    """One batch; the default colluders and dropouts, Skellam noise for (8, 1e-5)."""
    parties = _create(teachers, classes, labels, modulus_bits, s)
    meter = MessageMeter(parties.teachers)
    federation = Federation(aggregator=parties.aggregator, deliver=meter.deliver)
    rows = np.arange(labels, dtype=float)[:, None]
    outcome, seconds = time_once(lambda: federation.ask(rows))
    return FederationRun(outcome=outcome, meter=meter, cpu_seconds=seconds)


def _create(teachers: int, classes: int, labels: int, modulus_bits: int, s: int) -> Parties:
    certificate = calibrate(
        "skellam", epsilon=8, delta=1e-5, teachers=teachers, queries=labels, classes=classes
    )
    key = deal(
        teachers=teachers,
        threshold=certificate.trust.threshold,
        modulus_bits=modulus_bits,
        s=s,
        insecure_testing=True,
    )
    return create_federation(
        name="costs",
        class_names=[f"class {number}" for number in range(classes)],
        features=["record"],
        certificate=certificate,
        models=[lambda rows: [int(row[0]) % classes for row in rows]] * teachers,
        key=key,
    )
