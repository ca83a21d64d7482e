import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from tests.privacy.strategies import noises

from dppp.errors import InputError
from dppp.privacy.noise import Binomial, DiscreteGaussian, Noise, Polya, Skellam, pmf_of
from dppp.privacy.sampling import draw_raised_shares, sampling_delta, sampling_table
from dppp.randomness import expand_key
from dppp.sampling_table import SamplingTable

FALSE_ALARM = 1e-6
DRAWS = 4_000_000

FAMILIES = (
    Skellam(share_variance=40.0),
    Binomial(total_tosses=37),
    DiscreteGaussian(share_sigma=5.0),
    Polya(shape=3.0, ratio=0.8, shares=7),
)


class KeyStream:
    """Fixed randomness: the AES-CTR key stream of a seed, read on from call to call."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.calls = itertools.count()

    def __call__(self, count: int) -> bytes:
        key = self.seed.to_bytes(24, "big") + next(self.calls).to_bytes(8, "big")
        return expand_key(key, count)


def p_value(drawn: NDArray[np.int64], noise: Noise) -> float:
    """χ² of the draws against the masses, cells of fewer than 100 expected draws put together."""
    pmf = pmf_of(noise)
    expected = pmf.masses * len(drawn)
    seen = np.bincount(drawn - pmf.first, minlength=len(expected)).astype(np.float64)
    body = expected >= 100
    observed = np.append(seen[body], len(drawn) - seen[body].sum())
    wanted = np.append(expected[body], len(drawn) - expected[body].sum())
    usable = wanted > 1e-6 * len(drawn)
    statistic = float((((observed - wanted) ** 2 / wanted)[usable]).sum())
    return float(stats.chi2.sf(statistic, int(usable.sum()) - 1))


@pytest.mark.parametrize("count", [1, 8_191, 8_192, 20_000])
@pytest.mark.parametrize("noise", FAMILIES, ids=lambda noise: noise.name)
def test_shares_of_a_batch_are_drawn_piece_by_piece_and_raised(noise: Noise, count: int) -> None:
    table, draw_from = sampling_table(noise), KeyStream(4)
    pieces = [8_192] * (count // 8_192) + [count % 8_192]
    expected = np.concatenate([table.draw(each, draw_from) for each in pieces if each])
    shares = draw_raised_shares(noise, count, KeyStream(4))
    assert shares.dtype == np.int64
    assert np.array_equal(shares, expected - table.lowest)
    assert shares.min() >= 0


@pytest.mark.parametrize("noise", FAMILIES, ids=lambda noise: noise.name)
def test_draws_follow_the_masses(noise: Noise) -> None:
    share = noise.one_share()
    drawn = sampling_table(noise).draw(DRAWS, KeyStream(1))
    assert p_value(drawn, share) > FALSE_ALARM


@pytest.mark.parametrize("noise", FAMILIES, ids=lambda noise: noise.name)
def test_a_bias_of_one_percent_in_the_body_is_caught(noise: Noise) -> None:
    """Every other value of the body is made 1 % more likely at its neighbour's cost."""
    table = sampling_table(noise)
    edges = np.array([0, *table.thresholds, 2**128], dtype=object)
    cells = np.diff(edges)
    for left in range(0, len(cells) - 1, 2):
        moved = min(cells[left], cells[left + 1]) // 100
        cells[left] += moved
        cells[left + 1] -= moved
    thresholds = tuple(int(edge) for edge in np.cumsum(cells)[:-1])
    biased = SamplingTable(lowest=table.lowest, thresholds=thresholds, distance=table.distance)
    assert p_value(biased.draw(DRAWS, KeyStream(1)), noise.one_share()) < FALSE_ALARM


def test_fixed_randomness_gives_fixed_draws() -> None:
    drawn = sampling_table(Skellam(share_variance=40.0)).draw(12, KeyStream(7))
    assert drawn.tolist() == [-10, -4, -11, -3, 9, 12, -2, 13, -2, -1, 3, -5]


@given(st.integers(1, 120))
def test_thresholds_of_the_binomial_are_exact(tosses: int) -> None:
    table = sampling_table(Binomial(total_tosses=tosses))
    heads = itertools.accumulate(math.comb(tosses, k) for k in range(tosses))
    assert table.thresholds == tuple(sum_ << (128 - tosses) for sum_ in heads)
    assert table.distance < 1e-70


@given(noises)
@settings(max_examples=40, deadline=None)
def test_the_table_is_symmetric_bounded_and_close(noise: Noise) -> None:
    share = noise.one_share()
    table = sampling_table(noise)
    lowest, highest = table.lowest, table.highest
    middle = share.total_tosses if isinstance(share, Binomial) else 0
    assert lowest + highest == middle
    assert list(table.thresholds) == sorted(table.thresholds)
    assert 0 <= table.distance < 2.0**-90
    drawn = table.draw(2000)
    assert lowest <= drawn.min()
    assert drawn.max() <= highest


@given(noises)
@settings(max_examples=40, deadline=None)
def test_the_table_holds_the_masses(noise: Noise) -> None:
    table = sampling_table(noise)
    pmf = pmf_of(noise.one_share())
    edges = [0, *table.thresholds, 2**128]
    cells = [(high - low) / 2**128 for low, high in itertools.pairwise(edges)]
    start = table.lowest - pmf.first
    same = pmf.masses[max(start, 0) :][: len(cells)]
    offset = max(-start, 0)
    assert cells[offset : offset + len(same)] == pytest.approx(same, rel=1e-9, abs=1e-15)


def test_sampling_delta_is_the_formula() -> None:
    noise = Skellam(share_variance=4.0, shares=175)
    found = sampling_delta(noise, epsilon=8.0, queries=1000, classes=10)
    distance = sampling_table(noise).distance
    assert found == pytest.approx((1 + math.exp(8)) * 1000 * 10 * 175 * distance)
    assert 0 < found < 1e-20
    assert sampling_delta(noise, epsilon=400.0, queries=1000, classes=10) == 1.0


@pytest.mark.parametrize(
    "noise", [Skellam(share_variance=1e12), Polya(shape=1.0, ratio=1 - 1e-9, shares=2)]
)
def test_a_table_too_long_to_be_worked_out_is_refused_at_once(noise: Noise) -> None:
    with pytest.raises(InputError, match="too wide"):
        sampling_table(noise)
