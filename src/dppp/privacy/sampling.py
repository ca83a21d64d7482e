"""Drawing noise shares: exact integer tables, bits from a CSPRNG, no floats.

Each teacher runs this for its own share. The share's cumulative distribution is worked out once, to
256 bits, and stored as 128-bit integer thresholds; a draw compares 128 random bits with them. The
table ends where next to nothing is left, so a share has a hard range (`lowest` … `highest`), which
packing relies on. What bounding and rounding change is the table's statistical distance from the
true share; certificates add it to δ (`sampling_delta`).

Randomness is handed in as a function from a number of bytes to that many bytes.
"""

import functools
import itertools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field

import gmpy2
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.privacy.noise import Arithmetic, Noise, require_narrow

RandomSource = Callable[[int], bytes]
"""Gives that many random bytes. Deployments use `system_randomness`; tests hand in their own."""

_BITS = 128
_LOG_TABLE_TAIL = -116 * math.log(2)
_LONGEST_REACH = 2**20
"""Of one share: a table of this length takes a quarter of a minute and a gigabyte."""
_PRECISE = Arithmetic(number=gmpy2.mpfr, exp=gmpy2.exp, bits=256)


def system_randomness(count: int) -> bytes:
    """Random bytes: AES-256 in counter mode under a fresh key of the operating system's."""
    return expand_key(os.urandom(32), count)


def expand_key(key: bytes, count: int) -> bytes:
    """The first bytes of the AES-256-CTR key stream under this key, which must be used once."""
    encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
    return encryptor.update(bytes(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingTable:
    """128-bit thresholds of one share's cumulative distribution, as high and low words.

    A draw u is the value `lowest` plus the number of thresholds that are ≤ u.
    """

    lowest: int
    thresholds: tuple[int, ...]
    distance: float
    _high: NDArray[np.uint64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        high = [threshold >> 64 for threshold in self.thresholds]
        object.__setattr__(self, "_high", np.array([*high, 0], dtype=np.uint64))

    @property
    def highest(self) -> int:
        """The largest value that can be drawn."""
        return self.lowest + len(self.thresholds)

    def draw(self, count: int, randomness: RandomSource = system_randomness) -> NDArray[np.int64]:
        """Draw this many independent shares."""
        data = randomness(16 * count)
        if len(data) != 16 * count:
            raise InputError(f"the source of randomness gave {len(data)} of {16 * count} bytes")
        words = np.frombuffer(data, dtype="<u8")
        high, low = words[:count], words[count:]
        index = np.searchsorted(self._high[:-1], high, side="left")
        # The high word alone decides but once in about 2^54 draws.
        for tie in np.flatnonzero(self._high[index] == high):
            index[tie] = self._count_below(int(high[tie]) << 64 | int(low[tie]))
        return index + self.lowest

    def _count_below(self, drawn: int) -> int:
        return sum(threshold <= drawn for threshold in self.thresholds)


@functools.lru_cache(maxsize=64)
def sampling_table(noise: Noise) -> SamplingTable:
    """The table of one teacher's share of this noise."""
    share = noise.one_share()
    require_narrow(share, _LONGEST_REACH)
    reach = share.reach(_LOG_TABLE_TAIL)
    with gmpy2.context(precision=256):
        masses = _upper_masses(share, reach)
        lower = masses[::-1] if share.is_half_centred else masses[:0:-1]
        cells = [*lower, *masses]
        total = gmpy2.fsum(cells)
        cells = [cell / total for cell in cells]
        thresholds = _thresholds(cells)
        limit = share.limit_ratio(reach)
        tail = 2 * cells[-1] * limit / (1 - limit)
        distance = _distance(cells, thresholds) + tail
    return SamplingTable(
        lowest=share.centre - len(lower),
        thresholds=tuple(thresholds),
        distance=float(distance) * (1 + 2.0**-50),
    )


def sampling_delta(noise: Noise, *, epsilon: float, queries: int, classes: int) -> float:
    """What bounded, rounded sampling adds to δ (docs/privacy.md, section 2).

    Every honest share of every class and query may be off by the table's distance; two neighbouring
    inputs both are, and the second enters multiplied by e^ε.
    """
    draws = queries * classes * noise.shares
    return min(1.0, (1 + math.exp(epsilon)) * draws * sampling_table(noise).distance * (1 + 1e-12))


def _upper_masses(share: Noise, reach: int) -> list[gmpy2.mpfr]:
    masses = [gmpy2.mpfr(1)]
    for ratio in share.ratios(reach, _PRECISE):
        masses.append(masses[-1] * ratio)
    return masses


def _thresholds(cells: list[gmpy2.mpfr]) -> list[int]:
    """The cumulative distribution below the last cell, rounded to multiples of 2^-128."""
    cumulative = gmpy2.mpfr(0)
    thresholds = []
    for cell in cells[:-1]:
        cumulative += cell
        thresholds.append(min(int(gmpy2.rint(cumulative * 2**_BITS)), 2**_BITS - 1))
    return thresholds


def _distance(cells: list[gmpy2.mpfr], thresholds: list[int]) -> gmpy2.mpfr:
    """Half the sum of differences between the table's masses and the true ones."""
    edges = [0, *thresholds, 2**_BITS]
    drawn = [gmpy2.mpfr(high - low) / 2**_BITS for low, high in itertools.pairwise(edges)]
    return gmpy2.fsum([abs(one - other) for one, other in zip(drawn, cells, strict=True)]) / 2
