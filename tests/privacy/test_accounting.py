import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from prv_accountant.composers import Heterogeneous
from prv_accountant.discretisers import CellCentred
from prv_accountant.domain import Domain
from tests.privacy.strategies import noises

from dppp.errors import InputError, UncertifiedError
from dppp.privacy.accounting import (
    LossDistribution,
    Spending,
    account,
    delta_curve,
    least_delta,
    total_delta,
)
from dppp.privacy.divergence import delta_at
from dppp.privacy.noise import Binomial, DiscreteGaussian, Noise, Polya, Skellam, pmf_of

BODIES = (
    Skellam(share_variance=1.0, shares=60),
    Binomial(total_tosses=240, shares=20),
    Polya(shape=1, ratio=0.9, shares=10),
    DiscreteGaussian(share_sigma=0.5, shares=200),
)


def losses_of(noise: Noise) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    masses = pmf_of(noise).masses
    return np.log(masses[:-1] / masses[1:]), masses[:-1]


def bracketed_delta(noise: Noise, queries: int, epsilon: float) -> tuple[float, float]:
    """Bounds on the composed δ: all losses rounded down, then up, and plainly convolved."""
    losses, masses = losses_of(noise)
    step = float(np.ptp(losses)) / 8000
    found = []
    for rounded in (np.floor(losses / step), np.ceil(losses / step)):
        index = (rounded - rounded.min()).astype(np.int64)
        one = np.bincount(index, masses)
        composed = np.ones(1)
        for _ in range(2 * queries):
            composed = np.convolve(composed, one)
        total = step * (2 * queries * rounded.min() + np.arange(len(composed)))
        above = total > epsilon
        finite = float(np.dot(composed[above], -np.expm1(epsilon - total[above])))
        found.append(finite + 1 - (1 - float(masses[-1])) ** (2 * queries))
    return found[0], found[1]


@pytest.mark.parametrize("noise", BODIES, ids=lambda noise: noise.name)
@pytest.mark.parametrize("queries", [2, 3])
def test_composition_lies_between_rounding_down_and_up(noise: Noise, queries: int) -> None:
    wide = Skellam(share_variance=900.0) if noise.name == "skellam" else noise
    epsilon = account([Spending(noise=wide, queries=queries)], 1e-4)
    low, high = bracketed_delta(wide, queries, epsilon)
    composed = total_delta([Spending(noise=wide, queries=queries)], epsilon)
    assert low * (1 - 1e-9) <= composed <= high * (1 + 1e-6)


class StepLoss:
    """A discrete privacy loss in the shape that prv-accountant discretises."""

    pm_inf = 0.0

    def __init__(self, noise: Noise) -> None:
        losses, masses = losses_of(noise)
        order = np.argsort(losses)
        self.losses = losses[order]
        self.cumulative = np.concatenate(([0.0], np.cumsum(masses[order] / masses.sum())))
        self.average = float(np.dot(losses, masses) / masses.sum())

    def cdf(self, loss: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.cumulative[np.searchsorted(self.losses, loss, side="right")]

    def probability(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return self.cdf(high) - self.cdf(low)

    def mean(self) -> float:
        return self.average


@pytest.mark.parametrize("queries", [10, 100, 1000])
@pytest.mark.parametrize("noise", BODIES, ids=lambda noise: noise.name)
def test_a_second_accountant_agrees(noise: Noise, queries: int) -> None:
    epsilon = account([Spending(noise=noise, queries=queries)], 1e-5)
    losses, masses = losses_of(noise)
    spread = math.sqrt(float(np.dot(masses, losses**2)))
    reach = 12 * spread * math.sqrt(2 * queries) + 3 * epsilon
    domain = Domain.create_aligned(-reach, reach, spread / 200)
    loss = StepLoss(noise)
    composed = Heterogeneous([CellCentred().discretise(loss, domain)]).compute_composition(
        [2 * queries]
    )
    assert float(composed.compute_delta_estimate(epsilon)) == pytest.approx(1e-5, rel=0.02)
    assert float(composed.compute_delta_estimate(epsilon * 0.998)) > 1e-5


@given(noises, st.floats(0.05, 2))
@settings(max_examples=40, deadline=None)
def test_the_grid_is_never_below_the_exact_figure_and_close_to_it(
    noise: Noise, epsilon: float
) -> None:
    exact = delta_at(noise, epsilon)
    composed = LossDistribution([Spending(noise=noise, queries=1)]).delta_at(epsilon)
    assert composed >= exact * (1 - 1e-9)
    assert composed <= exact * 1.02 + 1e-9


@given(noises, st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_more_queries_cost_more(noise: Noise, queries: int) -> None:
    epsilon = 1.0
    fewer = total_delta([Spending(noise=noise, queries=queries)], epsilon)
    more = total_delta([Spending(noise=noise, queries=queries + 1)], epsilon)
    assert more >= fewer * (1 - 1e-3) - 1e-12


def test_epsilon_and_delta_are_inverses() -> None:
    for noise in BODIES:
        for queries in (1, 7, 300):
            spending = Spending(noise=noise, queries=queries)
            epsilon = account([spending], 1e-6)
            assert total_delta([spending], epsilon) <= 1e-6
            assert total_delta([spending], epsilon * (1 - 1e-6)) > 1e-6 * (1 - 1e-9)


def test_tasks_fixed_together_cost_less_than_their_sum() -> None:
    first = Spending(noise=Skellam(share_variance=600.0), queries=100)
    second = Spending(noise=Polya(shape=1, ratio=0.97), queries=50)
    together = account([first, second], 1e-5)
    apart = account([first], 5e-6) + account([second], 5e-6)
    assert max(account([first], 1e-5), account([second], 1e-5)) < together < apart
    assert account([second, first], 1e-5) == pytest.approx(together, rel=1e-6)


def test_a_task_in_two_halves_costs_what_the_whole_costs() -> None:
    noise = Skellam(share_variance=600.0)
    half = Spending(noise=noise, queries=50)
    whole = account([Spending(noise=noise, queries=100)], 1e-5)
    assert account([half, half], 1e-5) == pytest.approx(whole, rel=1e-6)


def test_a_task_with_much_noise_beside_one_with_little_adds_next_to_nothing() -> None:
    loud = Spending(noise=Skellam(share_variance=1e6), queries=10)
    quiet = Spending(noise=Skellam(share_variance=100.0), queries=10)
    assert account([loud, quiet], 1e-5) == pytest.approx(account([quiet], 1e-5), rel=1e-3)


def test_a_curve_is_the_same_as_its_points() -> None:
    for queries in (1, 20):
        spendings = [Spending(noise=BODIES[0], queries=queries)]
        curve = delta_curve(spendings, [0.5, 1.0])
        assert curve == [total_delta(spendings, 0.5), total_delta(spendings, 1.0)]


def test_noise_that_is_almost_never_there_needs_no_endless_grid() -> None:
    spending = Spending(noise=DiscreteGaussian(share_sigma=0.1, shares=2), queries=100)
    assert total_delta([spending], 1.0) == pytest.approx(1.0)


def test_what_cannot_be_bought_is_said() -> None:
    with pytest.raises(UncertifiedError, match="use more noise"):
        account([Spending(noise=Binomial(total_tosses=4), queries=1000)], 1e-5)


def test_the_least_delta_grows_with_the_queries() -> None:
    assert least_delta(1) < least_delta(2) < least_delta(10_000) < 1e-9


@pytest.mark.parametrize("queries", [0, -1, 1.5, "10", True])
def test_queries_are_a_whole_number(queries: object) -> None:
    with pytest.raises(InputError, match="queries"):
        Spending(noise=BODIES[0], queries=queries)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2, math.nan, "1e-5", None])
def test_a_delta_that_promises_nothing_is_refused(delta: object) -> None:
    with pytest.raises(InputError, match="delta"):
        account([Spending(noise=BODIES[0], queries=1)], delta)  # type: ignore[arg-type]


def test_nothing_to_account_for_is_said() -> None:
    with pytest.raises(InputError, match="at least one"):
        account([], 1e-5)
