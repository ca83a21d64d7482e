"""The batch that both cryptosystems are measured with: who takes part, and how much is asked."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.federation import Parties, create_federation
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS, deal
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate

MOST_RUNS = 3
_LEAST_QUERIES = 5_000
"""A task is for many batches: its noise is that of this many queries, or of all measured ones."""
WARM_UP_LABELS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLoad:
    """N teachers answer batches of labels, with Skellam noise for (8, 1e-5) over the task."""

    teachers: int
    classes: int
    labels: int
    modulus_bits: int = DEFAULT_MODULUS_BITS
    s: int = 4
    now: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        if self.teachers < 2 or self.classes < 2 or self.labels < 1:
            raise InputError("a benchmark needs 2 teachers, 2 classes and 1 label at least")

    def certificate(self) -> Certificate:
        """Noise for a task in which all measured batches are asked."""
        return calibrate(
            "skellam",
            epsilon=8,
            delta=1e-5,
            teachers=self.teachers,
            queries=max(_LEAST_QUERIES, MOST_RUNS * self.labels) + WARM_UP_LABELS,
            classes=self.classes,
        )

    def create(self, cryptosystem: str) -> Parties:
        """All roles, keys dealt where there is a dealer; ledgers are in memory."""
        certificate, classes = self.certificate(), self.classes
        key = None
        if cryptosystem == "paillier":
            key = deal(
                teachers=self.teachers,
                threshold=certificate.trust.threshold,
                modulus_bits=self.modulus_bits,
                s=self.s,
                insecure_testing=True,
            )
        return create_federation(
            name="benchmark",
            class_names=[f"class {number}" for number in range(classes)],
            features=["record"],
            certificate=certificate,
            models=[lambda rows: _number_of(rows, classes)] * self.teachers,
            cryptosystem=cryptosystem,
            key=key,
            labels_per_batch=self.labels,
        )


def _number_of(rows: NDArray[np.float64], classes: int) -> Any:
    """A model that costs nothing to speak of: the row's number decides."""
    return rows[:, 0].astype(np.int64) % classes
