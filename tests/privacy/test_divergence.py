import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.privacy.strategies import binomials, epsilons, noises, polyas, skellams

from dppp.errors import InputError
from dppp.privacy.divergence import delta_at
from dppp.privacy.noise import (
    Binomial,
    DiscreteGaussian,
    Noise,
    Polya,
    Skellam,
    noise_from_parameters,
    noise_to_parameters,
)


def enumerate_joint(masses: dict[int, Fraction], growth: Fraction) -> Fraction:
    """Equation D1, term by term, in rationals, in the direction (+1, -1)."""
    return sum(
        (
            max(
                Fraction(),
                mass * other
                - growth * masses.get(x - 1, Fraction()) * masses.get(y + 1, Fraction()),
            )
            for x, mass in masses.items()
            for y, other in masses.items()
        ),
        Fraction(),
    )


def enumerate_single(masses: dict[int, Fraction], growth: Fraction, move: int) -> Fraction:
    return sum(
        (
            max(Fraction(), mass - growth * masses.get(x + move, Fraction()))
            for x, mass in masses.items()
        ),
        Fraction(),
    )


def binomial_masses(tosses: int) -> dict[int, Fraction]:
    return {heads: Fraction(math.comb(tosses, heads), 2**tosses) for heads in range(tosses + 1)}


@given(st.integers(1, 24), epsilons)
@settings(deadline=None)
def test_binomial_agrees_with_enumeration_in_rationals(tosses: int, epsilon: float) -> None:
    exact = enumerate_joint(binomial_masses(tosses), Fraction(math.exp(epsilon)))
    found = delta_at(Binomial(total_tosses=tosses), epsilon)
    assert found >= float(exact) * (1 - 1e-13)
    assert found == pytest.approx(float(exact), rel=1e-9, abs=1e-15)


@given(st.integers(1, 60), epsilons)
def test_the_single_coordinate_is_the_worse_of_both_directions(tosses: int, epsilon: float) -> None:
    growth = Fraction(math.exp(epsilon))
    masses = binomial_masses(tosses)
    exact = max(enumerate_single(masses, growth, 1), enumerate_single(masses, growth, -1))
    found = delta_at(Binomial(total_tosses=tosses), epsilon, scope="single-coordinate")
    assert found >= float(exact) * (1 - 1e-13)
    assert found == pytest.approx(float(exact), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_the_other_families_agree_with_enumeration_in_forty_digits(epsilon: float) -> None:
    mpmath.mp.dps = 40
    skellam = [mpmath.exp(-3) * mpmath.besseli(abs(x), 3) for x in range(-30, 31)]
    laplace = [mpmath.mpf("0.6") ** abs(x) * mpmath.mpf("0.25") for x in range(-120, 121)]
    for noise, masses in (
        (Skellam(share_variance=0.75, shares=4), skellam),
        (Polya(shape=1, ratio=0.6, shares=7), laplace),
    ):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        padded = [mpmath.mpf(0), *masses, mpmath.mpf(0)]
        size = len(padded)
        exact = mpmath.fsum(
            max(0, padded[x] * padded[y] - growth * padded[x + 1] * padded[y - 1])
            for x in range(1, size - 1)
            for y in range(1, size - 1)
        )
        assert delta_at(noise, epsilon) == pytest.approx(float(exact), rel=1e-7, abs=1e-14)


@given(noises, epsilons)
@settings(deadline=None)
def test_delta_falls_with_epsilon(noise: Noise, epsilon: float) -> None:
    assert delta_at(noise, epsilon * 1.01) <= delta_at(noise, epsilon)


def grown(noise: Noise, factor: float) -> Noise:
    """The same shares with more noise in each."""
    parameters = noise_to_parameters(noise)
    match noise:
        case Binomial():
            parameters["total_tosses"] = noise.total_tosses + noise.shares
        case DiscreteGaussian():
            parameters["share_sigma"] = noise.share_sigma * factor
        case Skellam():
            parameters["share_variance"] = noise.share_variance * factor
        case Polya():
            parameters["ratio"] = 1 - (1 - noise.ratio) / factor
    return noise_from_parameters(parameters)


@given(st.one_of(binomials, skellams, polyas), epsilons, st.floats(1.001, 2))
@settings(deadline=None)
def test_delta_never_rises_where_more_noise_is_the_same_plus_independent_noise(
    noise: Noise, epsilon: float, factor: float
) -> None:
    assert delta_at(grown(noise, factor), epsilon) <= delta_at(noise, epsilon) * (1 + 1e-8) + 1e-30


def test_a_larger_sigma_of_the_discrete_gaussian_may_cost_more() -> None:
    def delta(sigma: float) -> float:
        return delta_at(DiscreteGaussian(share_sigma=sigma), 4.0)

    assert 1.02 < delta(1.03125) / delta(1.0) < 1.04
    assert delta(1.1) < delta(1.0)


@given(st.floats(3, 20), st.integers(1, 60), epsilons, st.floats(1.001, 2))
@settings(deadline=None)
def test_delta_falls_with_sigma_where_a_share_is_three_wide(
    sigma: float, shares: int, epsilon: float, factor: float
) -> None:
    noise = DiscreteGaussian(share_sigma=sigma, shares=shares)
    assert delta_at(grown(noise, factor), epsilon) <= delta_at(noise, epsilon) * (1 + 1e-8) + 1e-30


@given(noises, epsilons)
@settings(deadline=None)
def test_more_shares_never_hurt(noise: Noise, epsilon: float) -> None:
    more = {**noise_to_parameters(noise), "shares": noise.shares + 1}
    if isinstance(noise, Binomial):
        more["total_tosses"] = noise.total_tosses + noise.tosses_per_teacher
    if isinstance(noise, Polya):
        more["shape"] = noise.shape + noise.share_shape
    found = delta_at(noise_from_parameters(more), epsilon)
    assert found <= delta_at(noise, epsilon) * (1 + 1e-8) + 1e-30


@given(noises, epsilons)
@settings(deadline=None)
def test_a_single_coordinate_never_costs_more_than_both(noise: Noise, epsilon: float) -> None:
    single = delta_at(noise, epsilon, scope="single-coordinate")
    assert single <= delta_at(noise, epsilon) * (1 + 1e-9) + 1e-30


@given(st.floats(0.01, 5))
def test_discrete_laplace_is_pure(epsilon: float) -> None:
    ratio = math.exp(-epsilon / 2) * (1 + 1e-12)
    assume(ratio < 1)
    for shares in (1, 3, 175):
        assert delta_at(Polya(shape=1, ratio=ratio, shares=shares), epsilon) == 0
        assert delta_at(Polya(shape=1, ratio=ratio * 0.99, shares=shares), epsilon) > 0


def test_noise_that_is_never_there_protects_nothing() -> None:
    assert delta_at(DiscreteGaussian(share_sigma=0.01, shares=250), 1.0) == 1.0


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 501, "1", None, True])
def test_an_epsilon_that_promises_nothing_is_refused(epsilon: object) -> None:
    with pytest.raises(InputError, match="epsilon"):
        delta_at(Binomial(total_tosses=10), epsilon)  # type: ignore[arg-type]


def test_an_unknown_scope_is_refused() -> None:
    with pytest.raises(InputError, match="single-coordinate"):
        delta_at(Binomial(total_tosses=10), 1.0, scope="triple")
