"""Bare SecAgg masks: the least that any aggregation by pairwise masks costs; a floor, no protocol.

Each pair of teachers has a key already. Each teacher expands it, adds the stream where its index is
the lower one and subtracts it where it is the higher one, and the aggregator adds all vectors: the
streams cancel (Bonawitz et al. 2017). There is no key agreement, no signature, no noise, no message
and no way to go on when one teacher is missing.
"""

import hashlib
import secrets
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dppp.errors import DpppError
from dppp.experiments.costs.processor_time import fastest
from dppp.randomness import expand_key

Vector = NDArray[np.uint16]
Expand = Callable[[bytes, int], bytes]

_KEY_BYTES = 32
_SEED = 20213


def measure_bare_masks(*, teachers: int, entries: int, repeats: int = 2) -> float:
    """The least processor seconds of all parties for one vector of entries from each teacher."""
    keys = pair_keys(teachers)
    generator = np.random.default_rng(_SEED)  # made-up entries
    vectors = generator.integers(0, 2**16 // teachers, (teachers, entries)).astype(np.uint16)
    expand = faster_expansion(2 * entries)

    def run() -> None:
        total = add_masked(vectors, keys, expand)
        if not np.array_equal(total, vectors.sum(axis=0, dtype=np.uint16)):
            raise DpppError("bare masks have a wrong sum; do not trust the benchmark")

    return fastest([run], repeats)[0]


def pair_keys(teachers: int) -> list[list[bytes]]:
    """A key for each pair of teachers, known to both."""
    keys = [[b""] * teachers for _ in range(teachers)]
    for one in range(teachers):
        for other in range(one):
            keys[one][other] = keys[other][one] = secrets.token_bytes(_KEY_BYTES)
    return keys


def add_masked(vectors: NDArray[np.uint16], keys: list[list[bytes]], expand: Expand) -> Vector:
    """Every teacher masks its vector, and the aggregator adds them up."""
    masked = [_mask(index, vector, keys[index], expand) for index, vector in enumerate(vectors)]
    total: Vector = np.zeros_like(vectors[0])
    for each in masked:
        total += each
    return total


def _mask(own: int, vector: Vector, keys: list[bytes], expand: Expand) -> Vector:
    masked = vector.copy()
    for other, key in enumerate(keys):
        if other == own:
            continue
        stream = np.frombuffer(expand(key, vector.nbytes), dtype=np.uint16)
        if own < other:
            masked += stream
        else:
            masked -= stream
    return masked


def faster_expansion(count: int) -> Expand:
    """SHAKE-128 or AES-256-CTR, whichever is faster for this many bytes: a floor must be low."""
    key = secrets.token_bytes(_KEY_BYTES)
    shake, aes = fastest([lambda: expand_by_shake(key, count), lambda: expand_key(key, count)], 50)
    return expand_by_shake if shake < aes else expand_key


def expand_by_shake(key: bytes, count: int) -> bytes:
    """The first bytes of SHAKE-128 of this key."""
    return hashlib.shake_128(key).digest(count)
