"""Claims on made-up rows: each can be true, and each can be false."""

import itertools

import pytest

from dppp.errors import InputError
from dppp.experiments.claims import check_claims
from dppp.experiments.comparing import comparable_from, compare, curve
from dppp.experiments.curves import Row

EPSILONS = (0.01, 0.05, 1.0)
CURVES = [
    *[("ldp", noise, "paper", None) for noise in ("binomial", "discrete-gaussian")],
    *[("standalone", noise, "paper", None) for noise in ("binomial", "discrete-gaussian")],
    ("ldp", "randomised-response", "exact", None),
    ("pate", "laplace", "2/epsilon", None),
    *itertools.product(
        ("dppp",), ("binomial", "discrete-gaussian"), ("paper", "exact"), (1.0, 2 / 3)
    ),
    *[("dppp-best", "polya", "exact", honest) for honest in (1.0, 2 / 3)],
]


def row(kind, accuracy, *, epsilon=None, delta=None, std=0.001):
    framework, noise, calibration, honest = kind
    return Row(
        framework=framework,
        noise=noise,
        calibration=calibration,
        honest_fraction=honest,
        epsilon=epsilon,
        delta=delta,
        certified=calibration == "exact",
        accuracy_mean=accuracy,
        accuracy_std=std,
        repetitions=20,
    )


def accuracy_if_the_paper_is_right(kind, epsilon):
    framework, noise, calibration, honest = kind
    if framework in ("ldp", "standalone"):
        return 0.5
    start = 0.7 if epsilon == 0.01 else 0.94
    is_gaussian = noise == "discrete-gaussian" or (framework, calibration) == ("pate", "2/epsilon")
    return start + 0.01 * is_gaussian - 0.005 * (honest == 2 / 3)


def made_up(accuracy=accuracy_if_the_paper_is_right):
    free = [row(("centralised", "none", "none", None), 0.96, std=0)]
    free.append(row(("distributed", "none", "none", None), 0.95, std=0))
    return free + [
        row(kind, accuracy(kind, epsilon), epsilon=epsilon, delta=1e-3)
        for epsilon in EPSILONS
        for kind in CURVES
    ]


def varying_delta(spread=0.01):
    return [
        row(kind, 0.9 + spread * place, epsilon=0.05, delta=delta)
        for place, delta in enumerate((1e-5, 1e-2))
        for kind in CURVES
    ]


def failed(rows, **options):
    return [claim.claim for claim in check_claims(rows, **options) if not claim.holds]


def test_all_claims_hold_of_rows_in_the_papers_order():
    assert failed(made_up(), by_delta=varying_delta()) == []


def test_each_claim_is_checked_for_both_calibrations():
    claims = check_claims(made_up(), varying_delta())
    assert {claim.calibration for claim in claims} == {"none", "paper", "certified"}


@pytest.mark.parametrize(
    ("kind", "change", "broken"),
    [
        (("ldp", "binomial", "paper", None), +0.49, "above LDP (binomial)"),
        (("standalone", "binomial", "paper", None), +0.49, "above standalone (binomial)"),
        (("ldp", "randomised-response", "exact", None), +0.49, "above LDP (randomised-response)"),
        (("dppp", "discrete-gaussian", "paper", 1.0), -0.02, "discrete Gaussian above binomial"),
        (("dppp", "discrete-gaussian", "exact", 1.0), -0.01, "discrete Gaussian above binomial"),
        (("dppp", "binomial", "paper", 2 / 3), +0.02, "γ = 2/3 slightly below γ = 1 (binomial)"),
        (("dppp", "binomial", "paper", 2 / 3), -0.10, "γ = 2/3 slightly below γ = 1 (binomial)"),
        (("dppp-best", "polya", "exact", 2 / 3), -0.10, "slightly below γ = 1 (best family)"),
        (("dppp-best", "polya", "exact", 1.0), -0.04, "comparable to distributed non-private"),
        (("dppp-best", "polya", "exact", 1.0), -0.04, "comparable to PATE"),
    ],
)
def test_one_curve_out_of_order_makes_its_claim_false(kind, change, broken):
    def accuracy(which, epsilon):
        return accuracy_if_the_paper_is_right(which, epsilon) + change * (which == kind)

    assert any(broken in claim for claim in failed(made_up(accuracy)))


def test_breast_cancer_is_said_to_need_more_than_the_others():
    assert any(
        "only above ε = 0.05" in claim for claim in failed(made_up(), dataset="breast-cancer")
    )


def test_delta_that_matters_is_reported():
    found = failed(made_up(), by_delta=varying_delta(0.1))
    assert any(claim.startswith("δ matters little") for claim in found)
    found = failed(made_up(), by_delta=varying_delta(0.5))
    assert any(claim.startswith("ε matters more than δ") for claim in found)


def test_a_difference_within_the_noise_is_no_difference():
    kind = CURVES[0]
    one = (row(kind, 0.5, epsilon=1, std=0.1),)
    other = (row(kind, 0.51, epsilon=1, std=0.1),)
    found = compare(other, one)
    assert (found.above, found.tied, found.below) == (0, 1, 0)
    assert not found.is_above


def test_comparable_from_is_the_start_of_the_last_stretch():
    rows = made_up()
    best = curve(rows, "dppp-best", "best", "exact", 1.0)
    assert comparable_from(rows, best) == 0.05
    dip = (*best[:2], row(CURVES[-1], 0.5, epsilon=1.0))
    assert comparable_from(rows, dip) is None


def test_missing_rows_and_other_points_are_refused():
    with pytest.raises(InputError, match="no rows of dppp skellam paper"):
        curve(made_up(), "dppp", "skellam", "paper")
    rows = made_up()
    best = curve(rows, "dppp-best", "best", "exact", 1.0)
    with pytest.raises(InputError, match="same points only"):
        compare(best, best[1:])
