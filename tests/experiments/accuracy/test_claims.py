"""Claims on made-up rows: each can be true, and each can be false."""

import itertools
from dataclasses import replace

import pytest

from dppp.errors import InputError
from dppp.experiments.accuracy.claims import check_delta_claims, check_epsilon_claims
from dppp.experiments.accuracy.curve_comparison import comparable_from, compare, curve
from dppp.experiments.accuracy.curves import Row

EPSILONS = (0.01, 0.05, 1.0)
CURVES = [
    *[("ldp", noise, "paper", None) for noise in ("binomial", "discrete-gaussian")],
    *[("standalone", noise, "paper", None) for noise in ("binomial", "discrete-gaussian")],
    ("ldp", "randomised-response", "exact", None),
    *[("pate", "laplace", scale, None) for scale in ("2/epsilon", "1/epsilon")],
    *itertools.product(
        ("dppp",), ("binomial", "discrete-gaussian"), ("paper", "exact"), (1.0, 2 / 3)
    ),
    *[("dppp-best", "polya", "exact", honest) for honest in (1.0, 2 / 3)],
]


def row(kind, accuracy, *, epsilon=None, delta=None, std=0.001, repetitions=20):
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
        repetitions=repetitions,
    )


def accuracy_if_the_paper_is_right(kind, epsilon):
    framework, noise, _, honest = kind
    if framework in ("ldp", "standalone"):
        return 0.5
    is_small = epsilon == 0.01
    cost = (0.015 if is_small else 0.005) * (honest == 2 / 3)
    return (0.7 if is_small else 0.94) + 0.01 * (noise == "discrete-gaussian") - cost


def made_up(accuracy=accuracy_if_the_paper_is_right, centralised=0.96):
    free = [row(("centralised", "none", "none", None), centralised, std=0)]
    free.append(row(("distributed", "none", "none", None), 0.95, std=0))
    return free + [
        row(kind, accuracy(kind, epsilon), epsilon=epsilon, delta=1e-3)
        for epsilon in EPSILONS
        for kind in CURVES
    ]


def varying_delta(step=0.01):
    return [
        row(kind, accuracy_if_the_paper_is_right(kind, 0.05) + step * place, delta=delta)
        for place, delta in enumerate((1e-5, 1e-2))
        for kind in CURVES
    ]


def failed(rows, **options):
    return [claim.claim for claim in check_epsilon_claims(rows, **options) if not claim.holds]


def failed_on_delta(by_delta):
    return [claim.claim for claim in check_delta_claims(made_up(), by_delta) if not claim.holds]


def test_all_claims_hold_of_rows_in_the_papers_order():
    assert failed(made_up()) == []
    assert failed_on_delta(varying_delta()) == []


def test_each_claim_is_checked_for_both_calibrations():
    claims = check_epsilon_claims(made_up())
    assert {claim.calibration for claim in claims} == {"none", "paper", "certified"}
    claims = check_delta_claims(made_up(), varying_delta())
    assert {claim.calibration for claim in claims} == {"paper", "certified"}


@pytest.mark.parametrize("centralised", [0.9, 0.98])
def test_similar_is_neither_far_above_nor_far_below(centralised):
    assert failed(made_up(centralised=centralised)) == [
        "centralised and distributed non-private are similar"
    ]


@pytest.mark.parametrize(
    ("kind", "change", "broken"),
    [
        (("ldp", "binomial", "paper", None), +0.49, "above LDP (binomial)"),
        (("standalone", "binomial", "paper", None), +0.49, "above standalone (binomial)"),
        (("ldp", "randomised-response", "exact", None), +0.49, "above LDP (randomised-response)"),
        (("dppp", "discrete-gaussian", "paper", 1.0), -0.02, "above binomial noise (γ = 1)"),
        (("dppp", "discrete-gaussian", "paper", 2 / 3), -0.02, "above binomial noise (γ = 2/3)"),
        (("dppp", "discrete-gaussian", "exact", 1.0), -0.01, "above binomial noise (γ = 1)"),
        (("dppp", "binomial", "paper", 2 / 3), +0.02, "γ = 2/3 slightly below γ = 1 (binomial)"),
        (("dppp", "binomial", "paper", 2 / 3), -0.10, "γ = 2/3 slightly below γ = 1 (binomial)"),
        (("dppp-best", "polya", "exact", 2 / 3), -0.10, "slightly below γ = 1 (best family)"),
        (("dppp-best", "polya", "exact", 1.0), -0.04, "comparable to distributed non-private"),
        (("dppp-best", "polya", "exact", 1.0), -0.04, "γ = 1) comparable to PATE"),
        (("dppp-best", "polya", "exact", 2 / 3), -0.04, "γ = 2/3) comparable to PATE"),
        (("pate", "laplace", "1/epsilon", None), +0.04, "comparable to PATE with Lap(1/ε)"),
    ],
)
def test_one_curve_out_of_order_makes_its_claim_false(kind, change, broken):
    def accuracy(which, epsilon):
        return accuracy_if_the_paper_is_right(which, epsilon) + change * (which == kind)

    assert any(broken in claim for claim in failed(made_up(accuracy)))


def test_what_fewer_honest_teachers_cost_is_said_to_be_most_where_epsilon_is_small():
    def accuracy(kind, epsilon):
        return 0.94 - 0.005 * (kind[3] == 2 / 3)

    broken = "γ = 2/3 costs most where ε is small (best family)"
    assert broken in failed(made_up(accuracy))


def test_a_cost_that_cannot_be_told_from_none_is_not_a_slight_one():
    def accuracy(kind, epsilon):
        return 0.94 - 1e-5 * (kind[3] == 2 / 3)

    assert "γ = 2/3 slightly below γ = 1 (best family)" in failed(made_up(accuracy))


def test_breast_cancer_is_said_to_need_more_than_the_others():
    assert any(
        "needs more than ε = 0.05" in claim for claim in failed(made_up(), dataset="breast-cancer")
    )


def test_delta_that_matters_as_much_as_epsilon_or_lowers_accuracy_is_reported():
    found = failed_on_delta(varying_delta(0.5))
    assert {claim.split(" (")[0] for claim in found} == {"ε matters more than δ"}
    found = failed_on_delta(varying_delta(-0.01))
    assert {claim.split(" (")[0] for claim in found} == {"accuracy rises with δ, as with ε"}


def test_local_noise_that_wins_at_some_delta_is_reported():
    by_delta = [
        replace(row, accuracy_mean=0.97) if row.framework == "ldp" else row
        for row in varying_delta()
    ]
    found = failed_on_delta(by_delta)
    assert found
    assert all("above LDP" in claim and "at every δ" in claim for claim in found)


def test_a_difference_within_the_noise_is_no_difference():
    kind = CURVES[0]
    one = (row(kind, 0.5, epsilon=1, std=0.1),)
    other = (row(kind, 0.51, epsilon=1, std=0.1),)
    found = compare(other, one)
    assert (found.above, found.tied, found.below) == (0, 1, 0)
    assert not found.is_above


def test_one_repetition_tells_nothing_of_the_noise_so_nothing_is_above():
    one = (row(CURVES[0], 0.9, epsilon=1, std=0, repetitions=1),)
    other = (row(CURVES[0], 0.1, epsilon=1, std=0, repetitions=1),)
    found = compare(one, other)
    assert (found.above, found.tied, found.below) == (0, 1, 0)


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
    with pytest.raises(InputError, match="only at the same points"):
        compare(best, best[1:])
