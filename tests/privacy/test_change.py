"""What one vote can do to the counts: labels and numbers, against enumeration in rationals."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.signal import fftconvolve
from tests.privacy.strategies import noises

from dppp.errors import InputError
from dppp.privacy.accounting import LossDistribution, Spending, account, total_delta
from dppp.privacy.calibration import calibrate, compare
from dppp.privacy.certificate import Promise
from dppp.privacy.change import Change, change_of
from dppp.privacy.divergence import delta_at
from dppp.privacy.noise import Binomial, DiscreteGaussian, Noise, Polya, Skellam, pmf_of
from dppp.privacy.trust import Trust

EPSILONS = (0.2, 0.7, 1.5)


def masses_of(tosses: int) -> dict[int, Fraction]:
    return {heads: Fraction(math.comb(tosses, heads), 2**tosses) for heads in range(tosses + 1)}


def enumerate_moves(tosses: int, moves: tuple[int, ...], epsilon: float) -> Fraction:
    """Σ max(0, Π p(x) - e^ε Π p(x + move)) over all values of all counts that move."""
    masses, growth = masses_of(tosses), Fraction(math.exp(epsilon))
    total = Fraction()
    for values in itertools.product(masses, repeat=len(moves)):
        before = math.prod((masses[x] for x in values), start=Fraction(1))
        after = math.prod(
            (masses.get(x + move, Fraction()) for x, move in zip(values, moves, strict=True)),
            start=Fraction(1),
        )
        total += max(Fraction(), before - growth * after)
    return total


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("moves", [(-1, -1, 1, 1), (-1, 1, 1), (-1, -1, 1), (1, 1, 1)])
def test_labels_that_fall_and_rise_cost_what_is_certified(
    moves: tuple[int, ...], epsilon: float
) -> None:
    tosses = 7
    exact = float(enumerate_moves(tosses, moves, epsilon))
    change = Change(moved=len(moves))
    found = total_delta(
        [Spending(noise=Binomial(total_tosses=tosses), queries=1, change=change)], epsilon
    )
    assert exact <= found <= exact * 1.001 + 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("fewer", [(-1,), (-1, 1), (-1, -1, 1)])
def test_fewer_labels_that_move_are_never_worse(fewer: tuple[int, ...], epsilon: float) -> None:
    assert enumerate_moves(6, fewer, epsilon) <= enumerate_moves(6, (-1, -1, 1, 1), epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("levels", [1, 2, 3, 5])
def test_a_number_costs_what_its_largest_move_costs(levels: int, epsilon: float) -> None:
    tosses = 24
    each = [
        max(enumerate_moves(tosses, (move,), epsilon), enumerate_moves(tosses, (-move,), epsilon))
        for move in range(1, levels + 1)
    ]
    assert each == sorted(each), "a larger move is worse, for every ε"
    found = delta_at(Binomial(total_tosses=tosses), epsilon, change=Change(moved=1, shift=levels))
    assert float(each[-1]) * (1 - 1e-13) <= found <= float(each[-1]) * (1 + 1e-9) + 1e-15


@given(noises, st.integers(2, 40), st.sampled_from(EPSILONS))
@settings(deadline=None, max_examples=40)
def test_a_smaller_move_of_a_number_is_never_worse(
    noise: Noise, levels: int, epsilon: float
) -> None:
    if not noise.is_log_concave:
        return
    small = delta_at(noise, epsilon, change=Change(moved=1, shift=levels - 1))
    large = delta_at(noise, epsilon, change=Change(moved=1, shift=levels))
    assert small <= large * (1 + 1e-9) + 1e-30


@given(noises)
@settings(deadline=None, max_examples=60)
def test_noise_that_is_said_to_be_log_concave_is(noise: Noise) -> None:
    pmf = pmf_of(noise)
    middle, sides = 2 * np.log(pmf.masses[1:-1]), np.log(pmf.masses[:-2]) + np.log(pmf.masses[2:])
    slack = 8 * pmf.relative_error + 1e-10
    if noise.is_log_concave:
        assert (middle >= sides - slack).all()


def textbook_masses() -> dict[Noise, NDArray[np.float64]]:
    """Masses of small noise by other means than the code under test: formulas of textbooks."""

    def discrete_gaussian(sigma: float) -> NDArray[np.float64]:
        weights = np.exp(-(np.arange(-14, 15) ** 2) / (2 * sigma**2))
        return weights / weights.sum()

    def polya(shape: float, ratio: float) -> NDArray[np.float64]:
        one = stats.nbinom.pmf(np.arange(60), shape, 1 - ratio)
        return np.convolve(one, one[::-1])

    share = discrete_gaussian(0.7)
    return {
        Binomial(total_tosses=9): stats.binom.pmf(np.arange(10), 9, 0.5),
        Skellam(share_variance=0.6, shares=2): stats.skellam.pmf(np.arange(-15, 16), 0.6, 0.6),
        DiscreteGaussian(share_sigma=0.7, shares=3): np.convolve(np.convolve(share, share), share),
        DiscreteGaussian(share_sigma=0.3): discrete_gaussian(0.3),
        Polya(shape=1.0, ratio=0.3, shares=4): polya(1.0, 0.3),
        Polya(shape=2.5, ratio=0.2, shares=4): polya(2.5, 0.2),
    }


TEXTBOOK = textbook_masses()
of_textbook = pytest.mark.parametrize("noise", TEXTBOOK, ids=lambda noise: noise.name)


def plain_delta(masses: NDArray[np.float64], moves: tuple[int, ...], epsilon: float) -> float:
    """Σ max(0, Π p(x) - e^ε Π p(x + move)), term by term."""
    before, after = np.ones(1), np.ones(1)
    for move in moves:
        wide = np.concatenate((np.zeros(abs(move)), masses, np.zeros(abs(move))))
        before = np.multiply.outer(before, wide).ravel()
        after = np.multiply.outer(after, np.roll(wide, -move)).ravel()
    return float(np.maximum(before - math.exp(epsilon) * after, 0).sum())


@of_textbook
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_family_costs_what_plain_sums_over_textbook_masses_give(
    noise: Noise, epsilon: float
) -> None:
    masses = TEXTBOOK[noise]
    masses = masses[masses > 1e-12]
    for moves in ((-1, 1), (-1, -1, 1)):
        exact = plain_delta(masses, moves, epsilon)
        change = Change(moved=len(moves))
        found = total_delta([Spending(noise=noise, queries=1, change=change)], epsilon)
        assert exact - 1e-9 <= found <= exact * 1.002 + 1e-9
    for shift in (1, 2, 5):
        exact = max(plain_delta(masses, (move,), epsilon) for move in (-shift, shift))
        found = delta_at(noise, epsilon, change=Change(moved=1, shift=shift))
        assert found == pytest.approx(exact, rel=1e-8, abs=1e-9)


@of_textbook
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5, 1.0, 3.0, 8.0])
def test_the_largest_move_of_a_number_is_the_worst_in_every_family(
    noise: Noise, epsilon: float
) -> None:
    found = [plain_delta(TEXTBOOK[noise], (move,), epsilon) for move in range(12)]
    assert all(one <= next_one + 1e-12 for one, next_one in itertools.pairwise(found))


def test_noise_of_a_small_shape_is_not_log_concave_and_is_refused_for_numbers() -> None:
    noise = Polya(shape=0.3, ratio=0.9)
    masses = pmf_of(noise).masses
    assert (2 * np.log(masses[1:-1]) < np.log(masses[:-2]) + np.log(masses[2:]) - 1e-6).any()
    with pytest.raises(InputError, match="log-concave"):
        delta_at(noise, 1.0, change=Change(moved=1, shift=3))
    with pytest.raises(InputError, match="log-concave"):
        Spending(noise=noise, queries=5, change=Change(moved=1, shift=3))


@pytest.mark.parametrize(
    "change", [Change(moved=2), Change(moved=6), Change(moved=1, shift=20), Change(moved=1)]
)
@pytest.mark.parametrize("queries", [2, 30])
def test_composition_lies_between_sums_of_losses_rounded_down_and_up(
    change: Change, queries: int
) -> None:
    """A second route: plain convolution of the losses on a fine grid, all down or all up."""
    noise = Skellam(share_variance=60.0 * change.shift**2, shares=3)
    epsilon = account([Spending(noise=noise, queries=queries, change=change)], 1e-5)
    lower, upper = (
        plain_composition(noise, change, queries, epsilon, up=up) for up in (False, True)
    )
    found = total_delta([Spending(noise=noise, queries=queries, change=change)], epsilon)
    assert lower * (1 - 1e-6) <= found <= upper * (1 + 1e-6)
    assert upper <= 1.2 * lower


def plain_composition(
    noise: Noise, change: Change, queries: int, epsilon: float, *, up: bool
) -> float:
    masses = pmf_of(noise).masses
    before, after = masses[: -change.shift], masses[change.shift :]
    losses = np.log(before / after)
    moves = change.moved * queries
    step = float(np.sqrt(np.dot(before, losses**2))) / (400 * math.sqrt(moves))
    places = (np.ceil if up else np.floor)(losses / step).astype(int)
    lowest = int(places.min())
    one = np.bincount(places - lowest, before)
    total, offset = np.ones(1), 0
    for bit in bin(moves)[2:]:
        total, offset = fftconvolve(total, total), 2 * offset
        if bit == "1":
            total, offset = fftconvolve(total, one), offset + lowest
        keep = np.flatnonzero(total > 1e-14)
        total, offset = total[keep[0] : keep[-1] + 1], offset + int(keep[0])
    of_loss = (np.arange(len(total)) + offset) * step
    above = of_loss > epsilon
    return float(np.sum(total[above] * -np.expm1(epsilon - of_loss[above])))


def test_tasks_of_different_questions_compose() -> None:
    noise = Skellam(share_variance=4000.0)
    parts = [
        Spending(noise=noise, queries=20),
        Spending(noise=noise, queries=10, change=Change(moved=6)),
        Spending(noise=Skellam(share_variance=4e6), queries=10, change=Change(moved=1, shift=50)),
    ]
    together = account(parts, 1e-5)
    assert max(account([part], 1e-5) for part in parts) < together
    assert together < sum(account([part], 1e-5) for part in parts)


@pytest.mark.parametrize(
    "given",
    [{"classes": 10, "max_labels": 3}, {"classes": 3, "max_labels": 2}, {"levels": 30}],
)
@pytest.mark.parametrize("queries", [1, 50])
def test_calibration_is_within_the_promise_and_hardly_more_than_it_needs(
    given: dict[str, Any], queries: int
) -> None:
    found = calibrate("skellam", epsilon=1, delta=1e-5, teachers=20, queries=queries, **given)
    assert found.certified
    spent = account([found.spending()], 1e-5)
    assert 0.999 < spent <= 1
    one_less = Skellam(share_variance=found.noise.variance / 14 * 0.99, shares=14)
    assert total_delta([found.promise.spending(one_less)], 1.0) > 1e-5


def test_pure_noise_of_a_number_keeps_a_promise_without_delta() -> None:
    noise = Polya(shape=1, ratio=math.exp(-1 / 50))
    change = Change(moved=1, shift=50)
    assert delta_at(noise, 1.000001, change=change) == 0.0
    assert delta_at(noise, 0.99, change=change) > 0


def test_a_number_of_one_level_costs_one_count_of_a_choice() -> None:
    noise = Binomial(total_tosses=100)
    assert delta_at(noise, 0.5, change=Change(moved=1)) == delta_at(
        noise, 0.5, scope="single-coordinate"
    )
    assert change_of(classes=5, max_labels=1)[1] == change_of(classes=5)[1]


def test_a_single_coordinate_moves_as_far_as_the_question_says() -> None:
    noise, change = Binomial(total_tosses=100), Change(moved=1, shift=4)
    found = delta_at(noise, 0.5, scope="single-coordinate", change=change)
    assert found == delta_at(noise, 0.5, change=change)
    assert found > delta_at(noise, 0.5, scope="single-coordinate")


def test_labels_and_numbers_have_no_calibration_of_the_paper() -> None:
    with pytest.raises(InputError, match="one of several classes"):
        calibrate("binomial", epsilon=1, delta=1e-3, teachers=20, levels=10, calibration="paper")
    promise = Promise(epsilon=1, delta=1e-3, classes=1, change=Change(moved=1, shift=5))
    rules = {each.calibration for each in compare(promise, Trust.with_defaults(20))}
    assert rules == {"exact"}


@pytest.mark.parametrize(
    "given",
    [
        {"classes": 3, "max_labels": 4},
        {"classes": 3, "max_labels": 0},
        {"classes": 3, "levels": 0},
        {"classes": 3, "levels": 10**9},
        {"classes": 3, "max_labels": 1, "levels": 10},
    ],
)
def test_a_question_that_cannot_be_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(InputError):
        change_of(**given)
    with pytest.raises(InputError):
        Change(moved=2, shift=2)


def test_the_losses_of_one_query_with_many_counts_are_composed() -> None:
    spending = Spending(noise=Skellam(share_variance=50.0), queries=1, change=Change(moved=4))
    assert total_delta([spending], 1.0) == LossDistribution([spending]).delta_at(1.0)
    two = Spending(noise=Skellam(share_variance=50.0), queries=2)
    assert total_delta([spending], 1.0) == pytest.approx(total_delta([two], 1.0), rel=1e-12)
