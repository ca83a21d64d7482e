"""The Internet-Draft's ways to a number of coins, against exact δ."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dppp.experiments.published.binomial_draft import (
    PROMISES,
    Histogram,
    check_draft,
    exact_delta,
    formula_epsilon,
    formula_tosses,
    printed_quadratic_tosses,
)
from dppp.privacy.divergence import delta_at
from dppp.privacy.noise import Binomial


@pytest.fixture(scope="module")
def checks():
    return check_draft()


def test_formula_7_keeps_every_promise_with_more_coins_than_needed(checks):
    assert len(checks) == len(PROMISES)
    assert all(check.is_formula_certified for check in checks)
    assert all(check.formula_tosses > 2 * check.least_tosses for check in checks)


def test_the_printed_quadratic_breaks_its_promise_where_a_vote_is_several_steps(checks):
    refuted = [check for check in checks if check.is_printed_refuted]
    assert [(check.epsilon, check.steps) for check in refuted] == [(0.01, 5), (0.01, 5)]
    assert all(check.printed_delta > 100 * check.delta for check in refuted)


def test_the_root_of_the_printed_quadratic_solves_another_equation():
    """With c₁ and c₂ as printed: ε = c₁/√N - c₂/N, where formula (7) has a plus."""
    histogram = Histogram(dimension=10)
    tosses = printed_quadratic_tosses(0.01, 1e-5, histogram)
    assert tosses is not None
    first = 2 * math.sqrt(2) * math.sqrt(2 * math.log(1.25e5))
    second = formula_epsilon(1, 1e-5, histogram) - first
    assert first / math.sqrt(tosses) - second / tosses == pytest.approx(0.01, rel=1e-5)
    assert formula_epsilon(tosses, 1e-5, histogram) > 0.0105


def test_formula_7_is_the_least_number_that_satisfies_it():
    histogram = Histogram(dimension=10)
    tosses = formula_tosses(0.1, 1e-5, histogram)
    assert formula_epsilon(tosses, 1e-5, histogram) <= 0.1
    assert formula_epsilon(tosses - 1, 1e-5, histogram) > 0.1


def test_one_coin_less_than_enough_breaks_the_promise(checks):
    for check in checks[:6]:
        histogram = Histogram(dimension=check.dimension, steps=check.steps)
        assert exact_delta(check.least_tosses, check.epsilon, histogram) <= check.delta
        assert exact_delta(check.least_tosses - 1, check.epsilon, histogram) > check.delta


@pytest.mark.parametrize(("dimension", "scope"), [(1, "single-coordinate"), (10, "joint")])
def test_for_whole_votes_the_exact_delta_is_that_of_the_certificates(dimension, scope):
    found = exact_delta(1000, 0.5, Histogram(dimension=dimension))
    expected = delta_at(Binomial(total_tosses=1000), 0.5, scope=scope)
    assert found == pytest.approx(expected, rel=1e-6)


def test_for_votes_of_several_steps_the_exact_delta_is_the_sum_over_all_pairs():
    tosses, steps, epsilon = 60, 3, 0.7
    masses = np.asarray(binom.pmf(range(-steps, tosses + steps + 1), tosses, 0.5))
    here = range(steps, steps + tosses + 1)
    one = sum(max(0, masses[x] - math.exp(epsilon) * masses[x + steps]) for x in here)
    two = sum(
        max(0, masses[x] * masses[y] - math.exp(epsilon) * masses[x + steps] * masses[y - steps])
        for x in here
        for y in here
    )
    assert exact_delta(tosses, epsilon, Histogram(dimension=1, steps=steps)) == pytest.approx(one)
    assert exact_delta(tosses, epsilon, Histogram(dimension=9, steps=steps)) == pytest.approx(two)


def test_a_vote_of_more_steps_than_there_are_values_hides_nothing():
    assert exact_delta(4, 1.0, Histogram(dimension=1, steps=9)) == 1.0
