import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.strategies import trusts

from dppp.errors import InputError
from dppp.privacy.accounting import Spending, account, total_delta
from dppp.privacy.calibration import calibrate, compare
from dppp.privacy.certificate import Promise, noise_from_json
from dppp.privacy.divergence import delta_at
from dppp.privacy.noise import FAMILIES, Binomial, DiscreteGaussian, Polya, Skellam
from dppp.privacy.paper_bounds import (
    analytic_gaussian_sigma,
    dwork_2006_tosses,
    theorem_1_tosses,
)
from dppp.privacy.smallest_noise import POLYA_SHAPES
from dppp.privacy.trust import Trust

GRID_EPSILON = (0.01, 0.05, 0.1, 0.5, 1.0)
GRID_DELTA = (1e-5, 1e-4, 1e-3, 1e-2)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("epsilon", GRID_EPSILON)
def test_every_cell_of_the_grid_is_certified_and_tight(family: str, epsilon: float) -> None:
    for delta in GRID_DELTA:
        found = calibrate(
            family, epsilon=epsilon, delta=delta, teachers=100, colluders=33, dropouts=0
        )
        assert found.certified
        assert found.exact_delta == delta_at(found.noise, epsilon)
        if family != "binomial":  # whole tosses cannot meet δ exactly
            assert found.exact_delta > delta * (1 - 1e-5) or isinstance(found.noise, Polya)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-5), (0.5, 1e-2)])
def test_a_little_less_noise_breaks_the_promise(epsilon: float, delta: float) -> None:
    certificates = {
        family: calibrate(
            family, epsilon=epsilon, delta=delta, teachers=50, colluders=0, dropouts=0
        )
        for family in FAMILIES
    }
    tosses = int(str(certificates["binomial"].to_json()["total_tosses"]))
    assert delta_at(Binomial(total_tosses=tosses), epsilon) <= delta
    assert delta_at(Binomial(total_tosses=tosses - 1), epsilon) > delta
    gaussian = certificates["discrete-gaussian"].noise
    assert isinstance(gaussian, DiscreteGaussian)
    less = DiscreteGaussian(share_sigma=gaussian.share_sigma * (1 - 1e-6), shares=50)
    assert delta_at(less, epsilon) > delta
    skellam = certificates["skellam"].noise
    assert isinstance(skellam, Skellam)
    less_skellam = Skellam(share_variance=skellam.share_variance * (1 - 1e-6), shares=50)
    assert delta_at(less_skellam, epsilon) > delta
    polya = certificates["polya"].noise
    assert isinstance(polya, Polya)
    less_polya = Polya(shape=polya.shape, ratio=polya.ratio * (1 - 1e-6), shares=50)
    assert delta_at(less_polya, epsilon) > delta


@pytest.mark.parametrize(
    ("epsilon", "sigma"), [(4.0, 1.0), (4.0, 0.5), (8.0, math.sqrt(1 / 8)), (20.0, math.sqrt(0.05))]
)
@pytest.mark.parametrize("more", [1.0001, 1.01, 1.1])
def test_the_least_of_several_stretches_of_sigma_is_found_and_certified(
    epsilon: float, sigma: float, more: float
) -> None:
    """At each of these sigmas δ stops falling and rises for a while."""
    delta = delta_at(DiscreteGaussian(share_sigma=sigma), epsilon) * more
    found = calibrate(
        "discrete-gaussian", epsilon=epsilon, delta=delta, teachers=2, colluders=1, dropouts=0
    )
    assert found.certified
    assert isinstance(found.noise, DiscreteGaussian)
    assert found.noise.share_sigma <= sigma * (1 + 1e-9)
    less = np.geomspace(0.3, 1 - 1e-6, 400) * found.noise.share_sigma
    assert min(delta_at(DiscreteGaussian(share_sigma=each), epsilon) for each in less) > delta


@given(st.floats(2, 30), st.floats(-11, -0.7), st.integers(2, 6), st.integers(1, 2))
@settings(max_examples=25, deadline=None)
def test_the_discrete_gaussian_is_certified_where_its_delta_goes_up_and_down(
    epsilon: float, exponent: float, teachers: int, queries: int
) -> None:
    found = calibrate(
        "discrete-gaussian",
        epsilon=epsilon,
        delta=10**exponent,
        teachers=teachers,
        colluders=1,
        dropouts=0,
        queries=queries,
    )
    spending = Spending(noise=found.noise, queries=queries)
    assert total_delta([spending], epsilon) == found.exact_delta
    assert found.exact_delta + found.sampling_delta <= 10**exponent


def test_polya_takes_the_best_of_its_shapes() -> None:
    best = calibrate("polya", epsilon=0.1, delta=1e-3, teachers=50, colluders=0, dropouts=0).noise
    assert isinstance(best, Polya)
    assert best.shape == 4
    for shape in POLYA_SHAPES:
        ratios = [q / 1000 for q in range(700, 990)]
        enough = [
            Polya(shape=shape, ratio=ratio).variance
            for ratio in ratios
            if delta_at(Polya(shape=shape, ratio=ratio), 0.1) <= 1e-3
        ]
        assert min(enough) >= best.variance


@given(trusts(), st.floats(0.2, 8), st.floats(-9, -2), st.integers(1, 400), st.data())
@settings(max_examples=12, deadline=None)
def test_calibrate_and_account_are_inverses(
    trust: Trust, epsilon: float, exponent: float, queries: int, data: st.DataObject
) -> None:
    family = data.draw(st.sampled_from(["skellam", "binomial", "discrete-gaussian"]))
    delta = 10**exponent
    certificate = calibrate(
        family,
        epsilon=epsilon,
        delta=delta,
        teachers=trust.teachers,
        colluders=trust.colluders,
        dropouts=trust.dropouts,
        queries=queries,
    )
    assert certificate.certified
    spent = account([Spending(noise=certificate.noise, queries=queries)], delta)
    assert spent <= epsilon * (1 + 1e-7)
    if family != "binomial":
        assert spent == pytest.approx(epsilon, rel=1e-4)


@given(trusts())
@settings(max_examples=15, deadline=None)
def test_more_colluders_mean_more_noise_in_a_share(trust: Trust) -> None:
    def share(colluders: int) -> float:
        certificate = calibrate(
            "skellam",
            epsilon=1,
            delta=1e-5,
            teachers=trust.teachers,
            colluders=colluders,
            dropouts=trust.dropouts,
        )
        assert isinstance(certificate.noise, Skellam)
        return certificate.noise.share_variance

    assert share(trust.colluders) >= share(0) * (1 - 1e-9)


def test_total_noise_for_ten_times_the_queries_grows_about_tenfold() -> None:
    few = calibrate("skellam", epsilon=1, delta=1e-5, teachers=20, queries=100).noise.variance
    many = calibrate("skellam", epsilon=1, delta=1e-5, teachers=20, queries=1000).noise.variance
    assert many / few == pytest.approx(10, rel=0.02)


def test_auto_takes_the_least_variance() -> None:
    for queries in (1, 1000):
        arguments = {"epsilon": 1.0, "delta": 1e-4, "teachers": 50, "queries": queries}
        best = calibrate("auto", **arguments)  # type: ignore[arg-type]
        every = [calibrate(family, **arguments) for family in FAMILIES]  # type: ignore[arg-type]
        assert best.noise.variance == min(each.noise.variance for each in every)


def test_theorem_1_and_its_predecessor() -> None:
    assert theorem_1_tosses(0.1, 1e-3) == 6704
    assert theorem_1_tosses(1.0, 1e-5) == 220
    assert theorem_1_tosses(0.1, 1e-8) == 16859
    assert dwork_2006_tosses(0.1, 1e-3) == math.ceil(6400 * math.log(2000))


@pytest.mark.parametrize(
    ("teachers", "epsilon", "delta", "share_sigma"),
    [(250, 0.5, 1e-3, 0.2915700926), (20, 0.1, 1e-3, 3.8917413017), (100, 1, 1e-5, 0.3730631635)],
)
def test_theorem_2_by_the_paper(
    teachers: int, epsilon: float, delta: float, share_sigma: float
) -> None:
    found = calibrate(
        "discrete-gaussian",
        epsilon=epsilon,
        delta=delta,
        teachers=teachers,
        colluders=0,
        dropouts=0,
        calibration="paper",
    )
    assert isinstance(found.noise, DiscreteGaussian)
    assert found.noise.share_sigma == pytest.approx(share_sigma, rel=1e-9)
    assert not found.certified


@pytest.mark.parametrize("epsilon", GRID_EPSILON)
@pytest.mark.parametrize("delta", GRID_DELTA)
@pytest.mark.parametrize("teachers", [20, 100, 250])
def test_the_papers_discrete_gaussian_never_keeps_its_promise(
    epsilon: float, delta: float, teachers: int
) -> None:
    found = calibrate(
        "discrete-gaussian",
        epsilon=epsilon,
        delta=delta,
        teachers=teachers,
        colluders=0,
        dropouts=0,
        calibration="paper",
    )
    assert found.exact_delta > delta


@pytest.mark.parametrize("epsilon", GRID_EPSILON)
@pytest.mark.parametrize("delta", GRID_DELTA)
def test_theorem_1_is_safe_on_the_papers_grid_but_wasteful(epsilon: float, delta: float) -> None:
    exact = calibrate("binomial", epsilon=epsilon, delta=delta, teachers=2, colluders=0, dropouts=0)
    smallest = int(str(exact.to_json()["total_tosses"]))
    promised = theorem_1_tosses(epsilon, delta)
    assert delta_at(Binomial(total_tosses=promised), epsilon) <= delta
    assert 1.3 < promised / smallest < 80


def test_theorem_1_is_false_for_a_very_small_delta() -> None:
    assert delta_at(Binomial(total_tosses=theorem_1_tosses(0.1, 1e-8)), 0.1) > 1e-8


def test_the_analytic_gaussian_meets_its_equation() -> None:
    sigma = analytic_gaussian_sigma(0.5, 1e-3, 1.0)

    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    delta = phi(0.5 / sigma - 0.5 * sigma) - math.exp(0.5) * phi(-0.5 / sigma - 0.5 * sigma)
    assert delta == pytest.approx(1e-3, rel=1e-9)
    assert delta <= 1e-3


def test_two_thirds_honest_divides_by_two_thirds_of_the_teachers() -> None:
    found = calibrate(
        "discrete-gaussian",
        epsilon=0.5,
        delta=1e-3,
        teachers=250,
        colluders=50,
        dropouts=33,
        calibration="paper",
    )
    sigma = analytic_gaussian_sigma(0.5, 1e-3, 1.0)
    assert isinstance(found.noise, DiscreteGaussian)
    assert found.noise.share_sigma == pytest.approx(sigma / math.sqrt(2 * 250 / 3))
    assert found.noise.shares == 167


def test_the_papers_rounding_of_tosses_is_the_one_that_breaks_an_exact_n() -> None:
    found = calibrate("binomial", epsilon=0.1, delta=1e-3, teachers=100, colluders=33, dropouts=0)
    assert found.to_json()["total_tosses"] == 2424
    assert found.to_json()["tosses_per_teacher"] == 37
    assert found.to_json()["sum_tosses"] == 2479
    assert delta_at(Binomial(total_tosses=36 * 67), 0.1) > 1e-3


def test_comparison_shows_all_and_puts_the_best_certified_first() -> None:
    found = compare(Promise(epsilon=0.5, delta=1e-3), Trust.with_defaults(250))
    names = {(each.noise.name, each.calibration) for each in found}
    assert names == {(name, "exact") for name in FAMILIES} | {
        ("binomial", "paper"),
        ("discrete-gaussian", "paper"),
    }
    certified = [each for each in found if each.certified]
    assert found[: len(certified)] == certified
    assert certified[0].noise.variance == min(each.noise.variance for each in certified)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_certificate_reads_back(family: str) -> None:
    found = calibrate(family, epsilon=1, delta=1e-4, teachers=50, queries=3)
    assert noise_from_json(found.to_json()) == found.noise


@pytest.mark.parametrize("family", ["skellam", "polya", "auto", "laplace"])
def test_the_paper_knows_two_families(family: str) -> None:
    with pytest.raises(InputError):
        calibrate(family, epsilon=1, delta=1e-4, teachers=50, calibration="paper")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"delta": 1e-60}, "too small"),
        ({"delta": 1e-13, "queries": 1000}, "too small"),
        ({"queries": 0}, "queries"),
        ({"classes": 1}, "classes"),
        ({"teachers": 1}, "teachers"),
        ({"colluders": 25, "dropouts": 25}, "colluders"),
        ({"calibration": "rough"}, "exact or paper"),
        ({"noise": "laplace"}, "unknown noise"),
        ({"epsilon": 1e-9, "queries": 1000}, "too wide"),
        ({"epsilon": 1e-9, "queries": 1000, "noise": "auto"}, "too wide"),
        ({"epsilon": 1e-9, "noise": "binomial", "calibration": "paper"}, "too wide"),
    ],
)
def test_bad_input_is_named(changed: dict[str, object], reason: str) -> None:
    arguments = {"noise": "skellam", "epsilon": 1.0, "delta": 1e-5, "teachers": 50, **changed}
    with pytest.raises(InputError, match=reason):
        calibrate(**arguments)  # type: ignore[arg-type]


def test_a_large_epsilon_leaves_room_for_sampling() -> None:
    arguments = {"epsilon": 60.0, "delta": 1e-3, "queries": 100, "teachers": 20}
    for family in FAMILIES:
        assert calibrate(family, **arguments).certified  # type: ignore[arg-type]


def test_auto_leaves_out_what_cannot_be_certified() -> None:
    found = calibrate("auto", epsilon=100, delta=1e-5, teachers=20)
    assert found.certified
    assert [name for name, _ in found.chosen_from] == ["binomial"]
