"""What is compared: each framework by its name, certified only where the exact δ says so."""

from fractions import Fraction

import pytest
from tests.experiments.tables import made_up_votes

from dppp.experiments.accuracy.frameworks import (
    best_certificate,
    non_private,
    private,
    trust_of,
)
from dppp.privacy.calibration import calibrate_for
from dppp.privacy.certificate import Promise
from dppp.privacy.divergence import delta_at
from dppp.privacy.noise import FAMILIES
from dppp.privacy.paper_calibration import paper_noise_of_one

PROMISE = Promise(epsilon=0.5, delta=1e-3, queries=1, classes=2)


@pytest.fixture(scope="module")
def frameworks():
    votes = made_up_votes(teachers=20, records=30, classes=2)
    return [*non_private(votes), *private(votes, 0.5, 1e-3)]


def test_every_framework_of_the_paper_is_there_and_named_once(frameworks):
    names = [framework.name for framework in frameworks]
    assert len(set(names)) == len(names)
    kinds = {(each.framework, each.noise, each.calibration) for each in frameworks}
    assert kinds >= {
        ("centralised", "none", "none"),
        ("distributed", "none", "none"),
        ("ldp", "binomial", "paper"),
        ("ldp", "randomised-response", "exact"),
        ("standalone", "binomial", "paper"),
        ("pate", "laplace", "2/epsilon"),
        ("pate", "laplace", "1/epsilon"),
        ("dppp", "binomial", "paper"),
        ("dppp", "discrete-gaussian", "paper"),
        ("dppp", "binomial", "exact"),
        ("dppp-best", "polya", "exact"),
    }


def test_both_fractions_of_honest_teachers_are_there(frameworks):
    fractions = {each.honest_fraction for each in frameworks if each.framework == "dppp"}
    assert fractions == {1.0, 2 / 3}


def test_certified_is_said_of_what_is_and_of_nothing_else(frameworks):
    not_certified = {
        (each.framework, each.noise, each.calibration) for each in frameworks if not each.certified
    }
    assert not_certified == {
        ("centralised", "none", "none"),
        ("distributed", "none", "none"),
        ("ldp", "discrete-gaussian", "paper"),
        ("standalone", "discrete-gaussian", "paper"),
        ("pate", "laplace", "1/epsilon"),
        ("dppp", "discrete-gaussian", "paper"),
    }


@pytest.mark.parametrize("teachers", [20, 100, 250])
def test_two_thirds_honest_leaves_a_third_that_colludes_or_vanishes(teachers):
    trust = trust_of(teachers, Fraction(2, 3))
    assert trust.colluders + trust.dropouts == teachers // 3
    assert trust_of(teachers, Fraction(1)).honest_shares == teachers


def test_the_best_family_has_the_least_variance_of_the_certified():
    trust = trust_of(20, Fraction(2, 3))
    best = best_certificate(PROMISE, trust)
    assert best.certified
    assert best.noise.variance == min(
        calibrate_for(family, PROMISE, trust).noise.variance for family in FAMILIES
    )


def test_all_the_noise_at_one_teacher_is_theorem_1s():
    noise = paper_noise_of_one("binomial", PROMISE.epsilon, PROMISE.delta)
    assert noise.variance == pytest.approx(2 * 25 * 7.600902 / 4, rel=1e-2)
    assert delta_at(noise, 0.5) <= 1e-3
