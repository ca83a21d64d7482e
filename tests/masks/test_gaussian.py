import itertools

import gmpy2
import numpy as np
import pytest
from scipy import stats
from tests.masks.streams import fixed_stream

from dppp.errors import InputError
from dppp.masks.gaussian import GaussianTable, draw, gaussian_table

FALSE_ALARM = 1e-6
DRAWS = 4_000_000


def masses() -> list[float]:
    with gmpy2.context(precision=256):
        weights = [gmpy2.exp(-gmpy2.mpfr(k * k) / (2 * gmpy2.mpfr(6.4) ** 2)) for k in range(400)]
        total = 2 * gmpy2.fsum(weights) - 1
        upper = [float(weight / total) for weight in weights[:84]]
    return [*upper[:0:-1], *upper]


def p_value(drawn: np.ndarray) -> float:
    expected = np.array(masses()) * len(drawn)
    seen = np.bincount(drawn + 83, minlength=167).astype(float)
    body = expected >= 100
    observed = np.append(seen[body], len(drawn) - seen[body].sum())
    wanted = np.append(expected[body], len(drawn) - expected[body].sum())
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    return float(stats.chi2.sf(statistic, len(wanted) - 1))


def test_the_table_holds_the_masses() -> None:
    edges = [0, *gaussian_table().thresholds, 2**128]
    cells = [(high - low) / 2**128 for low, high in itertools.pairwise(edges)]
    assert cells == pytest.approx(masses(), rel=1e-12, abs=2.0**-127)


def test_the_table_is_symmetric_to_the_last_bit_but_one() -> None:
    thresholds = gaussian_table().thresholds
    assert all(
        abs(low + high - 2**128) <= 1
        for low, high in zip(thresholds, reversed(thresholds), strict=True)
    )


def test_draws_follow_the_masses() -> None:
    assert p_value(draw(DRAWS, fixed_stream(1))) > FALSE_ALARM


def test_one_draw_in_a_hundred_that_is_too_wide_by_one_is_caught() -> None:
    drawn = draw(DRAWS, fixed_stream(1))
    changed = np.where(np.arange(DRAWS) % 100 == 0, drawn + np.sign(drawn), drawn)
    assert p_value(np.clip(changed, -83, 83)) < FALSE_ALARM


def test_a_draw_is_the_number_of_thresholds_that_are_not_above_the_bits() -> None:
    """Each draw is counted again from all of its 128 bits."""
    count, table = 20_000, gaussian_table()
    stream = fixed_stream(2)
    firsts = np.frombuffer(stream(2 * count), dtype="<u2")
    has_threshold = {threshold >> 112 for threshold in table.thresholds}
    read_again = 0
    drawn = draw(count, fixed_stream(2))
    for first, value in zip(firsts.tolist(), drawn.tolist(), strict=True):
        # Where the first bits decide, any rest gives the same value.
        rests = [0, 2**112 - 1]
        if first in has_threshold:
            rests, read_again = [int.from_bytes(stream(14))], read_again + 1
        for rest in rests:
            bits = first << 112 | rest
            assert value == -83 + sum(threshold <= bits for threshold in table.thresholds)
    assert read_again > 5


def test_the_bits_after_the_first_decide_where_a_threshold_is() -> None:
    threshold = (5 << 112) | 1000
    table = GaussianTable(lowest=-1, thresholds=(threshold, threshold + 1), distance=0.0)

    def drawn(first: int, rest: int) -> int:
        data = iter([first.to_bytes(2, "little"), rest.to_bytes(14) if first == 5 else b""])
        return int(table.draw(1, lambda _: next(data))[0])

    assert [drawn(4, 0), drawn(5, 0), drawn(5, 999)] == [-1, -1, -1]
    assert [drawn(5, 1000), drawn(5, 1001), drawn(5, 2**112 - 1)] == [0, 1, 1]
    assert [drawn(6, 0), drawn(2**16 - 1, 0)] == [1, 1]


def test_a_source_that_runs_dry_is_refused() -> None:
    with pytest.raises(InputError, match="gave 19 of 20 bytes"):
        draw(10, lambda count: bytes(count - 1))
    with pytest.raises(InputError, match="gave 20 of 140 bytes"):
        draw(10, lambda _: bytes(20))  # all in the lowest cells, where thresholds are
