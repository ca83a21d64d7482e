"""A federation of four that every process under test knows: the same terms and keys every time.

One colluder and one dropout. Each process makes the setting for itself, so that what breaks once
can be tried again. Ballots are drawn by the system's randomness: a teacher that forgot its ballot
must not make the same one by chance.
"""

import functools
import os

from tests.small_federation import (
    Setting,
    dealt_key,
    kept_certificate,
    make_setting,
    seal_table,
    seeded,
)

from dppp.privacy.ledger.ledger import Ledger
from dppp.protocol.messages import BatchRequest
from dppp.protocol.signing import sign
from dppp.protocol.teacher import Teacher

TEACHERS = 4
BATCHES = 2
QUERIES_PER_BATCH = 2
NOW = 1_000_000
DEADLINE = NOW + 600


@functools.cache
def crash_setting() -> Setting:
    certificate = kept_certificate(
        "polya",
        epsilon=4,
        delta=1e-6,
        teachers=TEACHERS,
        colluders=1,
        dropouts=1,
        queries=BATCHES * QUERIES_PER_BATCH,
        classes=2,
    )
    return make_setting(
        certificate,
        dealt_key(TEACHERS, certificate.trust.threshold),
        name="crashes",
        class_names=("yes", "no"),
        features=("x",),
        source=seeded("crashes").randbytes,
    )


def teacher_of(setting: Setting, index: int, ledger: Ledger) -> Teacher:
    """A teacher whose model knows one answer."""
    return setting.teacher(
        index, ledger, predict=lambda rows: [index % 2] * len(rows), randomness=os.urandom
    )


def request_of(setting: Setting, number: int) -> BatchRequest:
    """Batch `number`, the same whoever makes it, signed by the aggregator."""
    rows = [[number + 0.5], [number + 0.25]][:QUERIES_PER_BATCH]
    queries = seal_table(setting.task, rows, seed=number)
    return sign(BatchRequest(deadline=DEADLINE, queries=queries), setting.aggregator_signer)
