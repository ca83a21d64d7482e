"""Exact draws from any distribution over integers: a table of thresholds, no floats.

Whoever draws noise or masks uses this. The cumulative distribution is worked out once, to 256 bits,
and stored as 128-bit integer thresholds; a draw compares 128 random bits with them. A table ends
somewhere, so what it draws has a hard range (`lowest` … `highest`). What ending and rounding change
is the table's statistical distance from the true distribution, which privacy claims have to add.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import gmpy2
import numpy as np
from gmpy2 import mpfr
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.randomness import RandomSource, system_randomness

MASS_BITS = 256
"""The precision of the masses that a table is made from."""
_BITS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingTable:
    """128-bit thresholds of a cumulative distribution, as high and low words.

    A draw u is the value `lowest` plus the number of thresholds that are ≤ u.
    """

    lowest: int
    thresholds: tuple[int, ...]
    distance: float
    _high: NDArray[np.uint64] = field(init=False, repr=False, compare=False)
    _guide: NDArray[np.int32] = field(init=False, repr=False, compare=False)
    """By the 16 highest bits of a draw: how many thresholds are ≤ it, or -1 if they do not say."""

    def __post_init__(self) -> None:
        high = [threshold >> 64 for threshold in self.thresholds]
        tops = np.array(
            [threshold >> (_BITS - 16) for threshold in self.thresholds], dtype=np.int64
        )
        guide = np.searchsorted(tops, np.arange(2**16), side="left").astype(np.int32)
        guide[tops] = -1
        object.__setattr__(self, "_high", np.array([*high, 0], dtype=np.uint64))
        object.__setattr__(self, "_guide", guide)

    @property
    def highest(self) -> int:
        """The largest value that can be drawn."""
        return self.lowest + len(self.thresholds)

    def draw(self, count: int, randomness: RandomSource = system_randomness) -> NDArray[np.int64]:
        """Draw this many independent values."""
        data = randomness(16 * count)
        if len(data) != 16 * count:
            raise InputError(f"the source of randomness gave {len(data)} of {16 * count} bytes")
        words = np.frombuffer(data, dtype="<u8")
        tops = words[:count].view("<u2")[3::4]
        index: NDArray[np.int64] = self._guide[tops].astype(np.int64)
        undecided = np.flatnonzero(index < 0)
        index[undecided] = self._find(words[undecided], words[count + undecided])
        index += self.lowest
        return index

    def _find(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many thresholds are ≤ each draw, given by its two words."""
        index = np.searchsorted(self._high[:-1], high, side="left")
        # The high word alone decides but once in about 2^54 draws.
        for tie in np.flatnonzero(self._high[index] == high):
            index[tie] = self._count_below(int(high[tie]) << 64 | int(low[tie]))
        return index

    def _count_below(self, drawn: int) -> int:
        return sum(threshold <= drawn for threshold in self.thresholds)


def make_sampling_table(masses: Sequence[mpfr], *, lowest: int, outside: mpfr) -> SamplingTable:
    """The table of a distribution given by its masses at `lowest`, `lowest` + 1, ….

    The masses have 256 bits and need not sum to one; `outside`, in the same unit, is at least the
    mass that the distribution has everywhere else.
    """
    with gmpy2.context(precision=MASS_BITS):
        total = gmpy2.fsum(list(masses))
        cells = [mass / total for mass in masses]
        thresholds = _thresholds(cells)
        distance = _distance(cells, thresholds) + outside / total
    return SamplingTable(
        lowest=lowest,
        thresholds=tuple(thresholds),
        distance=float(distance) * (1 + 2.0**-50),
    )


def _thresholds(cells: list[mpfr]) -> list[int]:
    """The cumulative distribution below the last cell, rounded to multiples of 2^-128."""
    cumulative = mpfr(0)
    thresholds = []
    for cell in cells[:-1]:
        cumulative += cell
        thresholds.append(min(int(gmpy2.rint(cumulative * 2**_BITS)), 2**_BITS - 1))
    return thresholds


def _distance(cells: list[mpfr], thresholds: list[int]) -> mpfr:
    """Half the sum of differences between the table's masses and the true ones."""
    edges = [0, *thresholds, 2**_BITS]
    drawn = [mpfr(high - low) / 2**_BITS for low, high in itertools.pairwise(edges)]
    return gmpy2.fsum([abs(one - other) for one, other in zip(drawn, cells, strict=True)]) / 2
