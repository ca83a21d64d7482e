"""Drawing noise shares: the exact integer table of one teacher's share of some noise.

Each teacher runs this for its own share. The table ends where next to nothing is left, so a share
has a hard range (`lowest` … `highest`), which packing relies on. What bounding and rounding change
is the table's statistical distance from the true share; certificates add it to δ
(`sampling_delta`).
"""

import functools
import math

import gmpy2
import numpy as np
from numpy.typing import NDArray

from dppp.privacy.noise import Arithmetic, Noise, require_narrow
from dppp.randomness import RandomSource, system_randomness
from dppp.sampling_table import MASS_BITS, SamplingTable, make_sampling_table

_LOG_TABLE_TAIL = -116 * math.log(2)
_LONGEST_REACH = 2**20
"""Of one share: a table of this length takes a quarter of a minute and a gigabyte."""
_DRAWS_AT_ONCE = 2**13
"""What these take fits a processor's cache: more at once take three times as long."""
_PRECISE = Arithmetic(number=gmpy2.mpfr, exp=gmpy2.exp, bits=MASS_BITS)


@functools.lru_cache(maxsize=64)
def sampling_table(noise: Noise) -> SamplingTable:
    """The table of one teacher's share of this noise."""
    share = noise.one_share()
    require_narrow(share, _LONGEST_REACH)
    reach = share.reach(_LOG_TABLE_TAIL)
    with gmpy2.context(precision=MASS_BITS):
        masses = _upper_masses(share, reach)
        lower = masses[::-1] if share.is_half_centred else masses[:0:-1]
        limit = share.limit_ratio(reach)
        outside = 2 * masses[-1] * limit / (1 - limit)
    return make_sampling_table([*lower, *masses], lowest=share.centre - len(lower), outside=outside)


def draw_raised_shares(
    noise: Noise, count: int, randomness: RandomSource = system_randomness
) -> NDArray[np.int64]:
    """Shares of this noise, raised by as much as the lowest is below zero: none is negative.

    Run by a teacher for a whole batch. `randomness` gives other bytes at each call.
    """
    table = sampling_table(noise)
    shares = np.empty(count, dtype=np.int64)
    for start in range(0, count, _DRAWS_AT_ONCE):
        some = shares[start : start + _DRAWS_AT_ONCE]
        np.subtract(table.draw(len(some), randomness), table.lowest, out=some)
    return shares


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
