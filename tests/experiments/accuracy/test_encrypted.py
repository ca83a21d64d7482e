"""Breast Cancer through the real protocol, 2048 bits: agrees, and would not if noise were wrong."""

import numpy as np
import pytest

from dppp.errors import UncertifiedError
from dppp.experiments.accuracy.encrypted import (
    deal_for,
    is_likely_noise,
    is_likely_number,
    run_encrypted,
    win_probabilities,
)
from dppp.experiments.teachers.ensembles import load_ensemble
from dppp.privacy.noise import Binomial, Polya, Skellam
from dppp.privacy.sampling import sampling_table


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    return load_ensemble("breast-cancer", folder=tmp_path_factory.mktemp("cache")).slice(40)


@pytest.fixture(scope="module")
def key(votes):
    return deal_for(votes)


@pytest.mark.parametrize(("family", "calibration"), [("best", "exact"), ("binomial", "paper")])
def test_the_real_protocol_agrees_with_the_stored_votes(votes, key, family, calibration):
    point = run_encrypted(
        votes, epsilon=0.5, delta=1e-3, family=family, calibration=calibration, key=key
    )
    assert point.agrees
    assert point.modulus_bits == 2048
    assert point.queries == 40


def test_noise_without_a_certificate_is_not_run_for_real(votes, key):
    with pytest.raises(UncertifiedError, match="only certified points"):
        run_encrypted(
            votes,
            epsilon=0.5,
            delta=1e-3,
            family="discrete-gaussian",
            calibration="paper",
            key=key,
        )


@pytest.mark.parametrize(
    "noise",
    [
        Binomial(total_tosses=15 * 41, shares=15),
        Skellam(share_variance=2.5, shares=15),
        Polya(shape=1, ratio=0.8, shares=15),
    ],
    ids=lambda noise: noise.name,
)
def test_noise_of_all_teachers_passes_and_of_half_or_twice_as_many_does_not(noise):
    def sums(teachers):
        drawn = sampling_table(noise).draw(1500 * teachers).reshape(1500, teachers)
        centre = noise.tosses_per_teacher * teachers // 2 if isinstance(noise, Binomial) else 0
        return drawn.sum(axis=1) - centre

    expected = noise.of_teachers(20)
    assert is_likely_noise(sums(20), expected)
    assert not is_likely_noise(sums(10), expected)
    assert not is_likely_noise(sums(40), expected)
    assert not is_likely_noise(np.zeros(1500, np.int64), expected)


def test_too_many_or_too_few_right_answers_are_no_accident():
    wins = np.full(200, 0.9)
    assert is_likely_number(180, wins)
    assert not is_likely_number(150, wins)
    assert not is_likely_number(200, np.full(200, 0.9))


def test_certain_wins_are_certain(votes):
    wins = win_probabilities(votes, Binomial(total_tosses=2))
    clear = np.abs(votes.counts[:, 0] - votes.counts[:, 1]) > 2
    right = votes.counts.argmax(axis=1) == votes.truth
    np.testing.assert_allclose(wins[clear], right[clear], atol=1e-9)
