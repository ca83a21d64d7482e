"""Tables for any distribution; those of the noise families are in tests/privacy."""

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpfr
from hypothesis import example, given
from hypothesis import strategies as st

from dppp.errors import InputError
from dppp.sampling_table import MASS_BITS, SamplingTable, make_sampling_table

COIN = SamplingTable(lowest=0, thresholds=(2**127,), distance=0.0)


def test_the_low_words_decide_where_the_high_ones_are_equal() -> None:
    threshold = (5 << 64) | 1000
    table = SamplingTable(lowest=-1, thresholds=(threshold, threshold + 1), distance=0.0)

    def draw(high: int, low: int) -> int:
        words = np.array([high, low], dtype="<u8").tobytes()
        return int(table.draw(1, lambda _: words)[0])

    assert draw(4, 2**64 - 1) == -1
    assert draw(5, 999) == -1
    assert draw(5, 1000) == 0
    assert draw(5, 1001) == 1
    assert draw(6, 0) == 1
    assert draw(2**64 - 1, 2**64 - 1) == 1


NEAR = st.integers(0, 2**128 - 1) | st.builds(
    lambda top, low: top << 112 | low, st.integers(0, 7), st.integers(0, 3)
)


@given(thresholds=st.lists(NEAR, min_size=1, max_size=20), drawn=st.lists(NEAR, max_size=20))
@example(thresholds=[2**127], drawn=[2**127 - 1, 2**127, 2**127 + 1, 2**128 - 1, 0])
def test_a_draw_counts_the_thresholds_that_are_not_above_it(
    thresholds: list[int], drawn: list[int]
) -> None:
    drawn += thresholds + [each - 1 for each in thresholds if each]
    table = SamplingTable(lowest=-7, thresholds=tuple(sorted(thresholds)), distance=0.0)
    words = [each >> 64 for each in drawn] + [each & (2**64 - 1) for each in drawn]
    found = table.draw(len(drawn), lambda _: np.array(words, dtype="<u8").tobytes())
    assert found.tolist() == [sum(each <= one for each in thresholds) - 7 for one in drawn]


@pytest.mark.parametrize("missing", [-1, 1, 8, 16, 160])
def test_a_source_that_runs_dry_is_refused(missing: int) -> None:
    with pytest.raises(InputError, match=f"gave {160 - missing} of 160 bytes"):
        COIN.draw(10, lambda count: bytes(count - missing))


def test_masses_in_any_unit_give_the_same_table() -> None:
    with gmpy2.context(precision=MASS_BITS):
        small = make_sampling_table([mpfr(1), mpfr(2), mpfr(1)], lowest=-1, outside=mpfr(0))
        large = make_sampling_table([mpfr(8), mpfr(16), mpfr(8)], lowest=-1, outside=mpfr(0))
    assert small == large
    assert small == SamplingTable(lowest=-1, thresholds=(2**126, 3 * 2**126), distance=0.0)
    assert small.highest == 1


def test_the_mass_outside_counts_as_distance_in_the_unit_of_the_masses() -> None:
    with gmpy2.context(precision=MASS_BITS):
        table = make_sampling_table([mpfr(8), mpfr(8)], lowest=0, outside=mpfr(1))
    assert table.distance == pytest.approx(1 / 16, rel=1e-14)
    assert table.distance > 1 / 16


def test_rounding_to_thresholds_counts_as_distance() -> None:
    with gmpy2.context(precision=MASS_BITS):
        table = make_sampling_table([mpfr(1), mpfr(2)], lowest=0, outside=mpfr(0))
    assert table.thresholds == ((2**128 - 1) // 3,)
    assert table.distance == pytest.approx(1 / (3 * 2**128), rel=1e-14)
