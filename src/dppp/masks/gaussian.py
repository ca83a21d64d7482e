"""Secrets and errors of masks: the discrete Gaussian of deviation 6.4, exactly and fast.

Each teacher draws them from bytes that its root expands to; in a dispute everyone draws them again,
so a draw is the same bit for bit on every machine. The cumulative distribution is worked out to 256
bits and rounded to 128-bit integer thresholds. A draw is `lowest` plus the number of thresholds
that are ≤ 128 random bits.

Most draws are decided by the 16 highest of these bits, and only those are read at first: `count`
numbers of two bytes, little-endian. Where a threshold has the same 16 bits, 14 more bytes are read
for each undecided draw, in order, big-endian. So the source of bytes must be a stream: each call
goes on where the last one ended.
"""

import bisect
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import gmpy2
import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.masks.parameters import SIGMA

RandomStream = Callable[[int], bytes]
"""Gives that many bytes, and others at the next call."""

_BITS = 128
_FIRST_BITS = 16
_REST_BYTES = (_BITS - _FIRST_BITS) // 8
_TABLE_TAIL_BITS = 116


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianTable:
    """Thresholds of the cumulative distribution, in units of 2^-128."""

    lowest: int
    thresholds: tuple[int, ...]
    distance: float
    _decided: NDArray[np.int64] = field(init=False, repr=False, compare=False)
    _is_undecided: NDArray[np.bool_] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        firsts = np.array([each >> (_BITS - _FIRST_BITS) for each in self.thresholds])
        below = np.searchsorted(firsts, np.arange(2**_FIRST_BITS), side="left")
        undecided = np.zeros(2**_FIRST_BITS, dtype=np.bool_)
        undecided[firsts] = True
        object.__setattr__(self, "_decided", below + self.lowest)
        object.__setattr__(self, "_is_undecided", undecided)

    @property
    def highest(self) -> int:
        """The largest value that can be drawn."""
        return self.lowest + len(self.thresholds)

    def draw(self, count: int, random_stream: RandomStream) -> NDArray[np.int64]:
        """Draw this many values."""
        firsts = np.frombuffer(_read(random_stream, 2 * count), dtype="<u2")
        drawn: NDArray[np.int64] = self._decided[firsts]
        undecided = np.flatnonzero(self._is_undecided[firsts])
        rest = _read(random_stream, _REST_BYTES * len(undecided))
        for number, place in enumerate(undecided):
            low = rest[_REST_BYTES * number : _REST_BYTES * (number + 1)]
            bits = int(firsts[place]) << (_BITS - _FIRST_BITS) | int.from_bytes(low)
            drawn[place] = self.lowest + bisect.bisect_right(self.thresholds, bits)
        return drawn


def draw(count: int, random_stream: RandomStream) -> NDArray[np.int64]:
    """Draw coefficients of a secret or of an error."""
    return gaussian_table().draw(count, random_stream)


@functools.cache
def gaussian_table() -> GaussianTable:
    """The table of deviation 6.4, with its statistical distance from the unbounded Gaussian."""
    reach = math.ceil(SIGMA * math.sqrt(2 * _TABLE_TAIL_BITS * math.log(2))) + 1
    with gmpy2.context(precision=256):
        cells = _masses(reach)
        thresholds = _thresholds(cells)
        # Past the table each mass is less than this part of the one before.
        ratio = gmpy2.exp(-(2 * reach + 1) / (2 * gmpy2.mpfr(SIGMA) * gmpy2.mpfr(SIGMA)))
        tail = 2 * cells[-1] / (1 / ratio - 1)
        distance = float(_distance(cells, thresholds) + tail) * (1 + 2.0**-50)
    return GaussianTable(lowest=-reach, thresholds=tuple(thresholds), distance=distance)


def _masses(reach: int) -> list[gmpy2.mpfr]:
    """The masses of -reach … reach; their sum is 1."""
    precision = 1 / (2 * gmpy2.mpfr(SIGMA) * gmpy2.mpfr(SIGMA))
    upper = [gmpy2.exp(-(k * k) * precision) for k in range(reach + 1)]
    cells = [*upper[:0:-1], *upper]
    total = gmpy2.fsum(cells)
    return [cell / total for cell in cells]


def _thresholds(cells: list[gmpy2.mpfr]) -> list[int]:
    """The cumulative distribution below the last cell, rounded to multiples of 2^-128."""
    sums = itertools.accumulate(cells[:-1])
    return [min(int(gmpy2.rint(each * 2**_BITS)), 2**_BITS - 1) for each in sums]


def _distance(cells: list[gmpy2.mpfr], thresholds: list[int]) -> gmpy2.mpfr:
    """Half the sum of differences between the table's masses and the true ones."""
    edges = [0, *thresholds, 2**_BITS]
    drawn = [gmpy2.mpfr(high - low) / 2**_BITS for low, high in itertools.pairwise(edges)]
    return gmpy2.fsum([abs(one - other) for one, other in zip(drawn, cells, strict=True)]) / 2


def _read(random_stream: RandomStream, count: int) -> bytes:
    data = random_stream(count)
    if len(data) != count:
        raise InputError(f"the source of randomness gave {len(data)} of {count} bytes")
    return data
