import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.privacy.strategies import noises, polyas, skellams

from dppp.errors import InputError
from dppp.privacy.noise import (
    Binomial,
    DiscreteGaussian,
    Noise,
    Polya,
    Skellam,
    noise_from_parameters,
    noise_to_parameters,
    pmf_of,
)
from dppp.privacy.pmf import Pmf


def mass_at(pmf: Pmf, value: int) -> float:
    return float(pmf.masses[value - pmf.first])


@given(noises)
def test_masses_are_symmetric_positive_and_sum_to_one(noise: Noise) -> None:
    pmf = pmf_of(noise)
    assert np.all(pmf.masses > 0)
    assert math.fsum(pmf.masses) + pmf.tail == pytest.approx(1, abs=1e-11)
    assert pmf.masses == pytest.approx(pmf.masses[::-1], rel=1e-10)
    assert pmf.tail < 1e-38


@given(noises)
def test_the_variance_is_that_of_the_masses(noise: Noise) -> None:
    pmf = pmf_of(noise)
    values = pmf.first + np.arange(len(pmf.masses), dtype=np.float64)
    mean = float(np.dot(values, pmf.masses))
    spread = float(np.dot((values - mean) ** 2, pmf.masses))
    assert noise.variance == pytest.approx(spread, rel=1e-8, abs=1e-30)


def convolution_power(pmf: Pmf, times: int) -> tuple[int, NDArray[np.float64]]:
    """Plain convolution of positive numbers: slow, but with full relative accuracy."""
    masses = pmf.masses
    for _ in range(times - 1):
        masses = np.convolve(masses, pmf.masses)
    return pmf.first * times, masses


@given(noises)
@settings(max_examples=60, deadline=None)
def test_the_sum_of_shares_is_the_convolution_of_the_shares(noise: Noise) -> None:
    shares = min(noise.shares, 6)
    share = noise.one_share()
    parameters = {**noise_to_parameters(share), "shares": shares}
    if isinstance(share, Binomial):
        parameters["total_tosses"] = share.total_tosses * shares
    if isinstance(share, Polya):
        parameters["shape"] = share.shape * shares
    whole = pmf_of(noise_from_parameters(parameters))
    first, masses = convolution_power(pmf_of(share), shares)
    common = masses[max(0, whole.first - first) :][: len(whole.masses)]
    inside = common > 1e-30
    assert whole.masses[: len(common)][inside] == pytest.approx(common[inside], rel=1e-9)


@pytest.mark.parametrize(("sigma", "shares"), [(0.15, 2), (0.29, 250), (0.5, 40), (2.46, 100)])
def test_the_power_of_the_discrete_gaussian_is_right_far_into_the_tail(
    sigma: float, shares: int
) -> None:
    """Against plain convolution by squaring, in extended precision: sums of positive numbers."""
    reach = math.ceil(16 * sigma) + 3
    values = np.arange(-reach, reach + 1).astype(np.longdouble)
    share = np.exp(-(values**2) / (2 * np.longdouble(sigma) ** 2))
    power = power_by_squaring(share / share.sum(), shares)
    pmf = pmf_of(DiscreteGaussian(share_sigma=sigma, shares=shares))
    middle = len(power) // 2
    checked = 0
    for value in range(-pmf.first + 1):
        exact = power[middle + value]
        if exact > 1e-30:
            checked += 1
            assert mass_at(pmf, value) == pytest.approx(float(exact), rel=pmf.relative_error)
    assert checked > 2


def power_by_squaring(masses: NDArray[np.longdouble], times: int) -> NDArray[np.longdouble]:
    result = np.ones(1, dtype=np.longdouble)
    while times:
        if times % 2:
            result = np.convolve(result, masses)
        masses = np.convolve(masses, masses) if times > 1 else masses
        times //= 2
    return result


def test_skellam_masses_are_bessel_functions() -> None:
    mpmath.mp.dps = 40
    for variance in (0.01, 3.6, 605.612318):
        pmf = pmf_of(Skellam(share_variance=variance))
        for value in (0, 1, 5, 13):
            exact = mpmath.exp(-mpmath.mpf(variance)) * mpmath.besseli(value, variance)
            assert mass_at(pmf, value) == pytest.approx(float(exact), rel=1e-11)


def test_polya_masses_are_those_of_a_difference_of_negative_binomials() -> None:
    mpmath.mp.dps = 40
    shape, ratio = mpmath.mpf("0.37"), mpmath.mpf("0.888")
    pmf = pmf_of(Polya(shape=0.37, ratio=0.888))

    def negative_binomial(k: int) -> mpmath.mpf:
        return mpmath.rf(shape, k) / mpmath.factorial(k) * ratio**k * (1 - ratio) ** shape

    for value in (0, 1, 2, 9):
        exact = mpmath.nsum(
            lambda j, value=value: negative_binomial(int(j) + value) * negative_binomial(int(j)),
            [0, 400],
        )
        assert mass_at(pmf, value) == pytest.approx(float(exact), rel=1e-11)


@given(st.floats(0.01, 0.99))
def test_polya_of_shape_one_is_discrete_laplace(ratio: float) -> None:
    pmf = pmf_of(Polya(shape=1.0, ratio=ratio))
    for value in (0, 1, 3):
        exact = (1 - ratio) / (1 + ratio) * ratio**value
        assert mass_at(pmf, value) == pytest.approx(exact, rel=1e-10)


def test_binomial_masses_are_exact() -> None:
    for tosses in (1, 2, 7, 30):
        pmf = pmf_of(Binomial(total_tosses=tosses))
        assert pmf.first == 0
        exact = [math.comb(tosses, heads) / 2**tosses for heads in range(tosses + 1)]
        assert pmf.masses == pytest.approx(exact, rel=1e-14)


@given(noises)
def test_parameters_serialise(noise: Noise) -> None:
    assert noise_from_parameters(noise_to_parameters(noise)) == noise


@given(st.one_of(skellams, polyas))
def test_shares_of_closed_families_add_up_in_variance(noise: Noise) -> None:
    assert noise.one_share().variance * noise.shares == pytest.approx(noise.variance)


@pytest.mark.parametrize(
    "parameters",
    [
        {"noise": "laplace", "scale": 1.0},
        {"noise": ["skellam"]},
        {"noise": "skellam", "share_variance": 1.0},
        {"noise": "skellam", "share_variance": 1.0, "shares": 2, "extra": 1},
        {"noise": "skellam", "share_variance": math.nan, "shares": 2},
        {"noise": "skellam", "share_variance": math.inf, "shares": 2},
        {"noise": "skellam", "share_variance": -1.0, "shares": 2},
        {"noise": "skellam", "share_variance": "1", "shares": 2},
        {"noise": "skellam", "share_variance": 1.0, "shares": 0},
        {"noise": "binomial", "total_tosses": 1.5, "shares": 1},
        {"noise": "binomial", "total_tosses": 0, "shares": 1},
        {"noise": "discrete-gaussian", "share_sigma": 0, "shares": 1},
        {"noise": "polya", "shape": 1.0, "ratio": 1.0, "shares": 1},
        {"noise": "polya", "shape": 0.0, "ratio": 0.5, "shares": 1},
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(InputError):
        noise_from_parameters(parameters)


@pytest.mark.parametrize(
    "noise",
    [
        Skellam(share_variance=1e18),
        Skellam(share_variance=1e307, shares=1_000),
        Binomial(total_tosses=10**14),
        Binomial(total_tosses=10**400),
        DiscreteGaussian(share_sigma=1e9),
        DiscreteGaussian(share_sigma=1e300, shares=7),
        Polya(shape=2.0, ratio=1 - 1e-12),
        Polya(shape=2.0, ratio=math.nextafter(1, 0)),
    ],
)
def test_noise_too_wide_to_be_worked_out_is_refused_at_once(noise: Noise) -> None:
    with pytest.raises(InputError, match="too wide to be worked out"):
        pmf_of(noise)


def test_a_wide_discrete_gaussian_has_the_variance_of_a_gaussian() -> None:
    for sigma in (9_999.0, 10_001.0):
        noise = DiscreteGaussian(share_sigma=sigma, shares=3)
        assert noise.variance == pytest.approx(3 * sigma**2, rel=1e-13)


def test_parameters_may_be_numpys() -> None:
    given: Any = (np.float32(1.5), np.int64(2), np.int64(100), np.float64(0.5))
    assert Skellam(share_variance=given[0]) == Skellam(share_variance=1.5)
    assert DiscreteGaussian(share_sigma=given[1]) == DiscreteGaussian(share_sigma=2.0)
    assert Binomial(total_tosses=given[2]) == Binomial(total_tosses=100)
    found = Polya(shape=given[3], ratio=given[3], shares=given[1])
    assert [type(each) for each in (found.shape, found.ratio, found.shares)] == [float, float, int]
    with pytest.raises(InputError, match="share_variance"):
        Skellam(share_variance=True)
