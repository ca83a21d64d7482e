"""The noise in the experiments is the noise of all the shares: its variance, not the accuracy."""

import math

import numpy as np
import pytest
from tests.experiments.tables import made_up_votes

from dppp.experiments.accuracy.encrypted import win_probabilities
from dppp.experiments.accuracy.mechanisms import (
    TallyNoise,
    laplace_plurality,
    largest,
    noisy_plurality,
    plurality,
    randomised_response_plurality,
    standalone,
)
from dppp.experiments.teachers.stored_votes import NO_VOTE, tally
from dppp.privacy.calibration import calibrate
from dppp.privacy.noise import Binomial, DiscreteGaussian, Polya, Skellam
from dppp.privacy.paper_bounds import analytic_gaussian_sigma
from dppp.privacy.sampling import sampling_table

NOISES = (
    Binomial(total_tosses=300, shares=20),
    DiscreteGaussian(share_sigma=0.3, shares=20),
    Skellam(share_variance=0.7, shares=20),
    Polya(shape=2, ratio=0.8, shares=20),
)


def moments(noise):
    """Mean and variance of the table that is drawn from."""
    cumulative = np.concatenate(([0.0], noise.cumulative, [1.0]))
    values = noise.first + np.arange(len(cumulative) - 1)
    masses = np.diff(cumulative)
    mean = float(np.dot(values, masses))
    return mean, float(np.dot((values - mean) ** 2, masses))


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_the_table_has_the_variance_of_all_shares_not_of_the_honest(noise):
    mean, variance = moments(TallyNoise.of(noise, 30))
    assert abs(mean) < 1e-6
    assert variance == pytest.approx(noise.of_teachers(30).variance, rel=1e-9)
    assert variance == pytest.approx(1.5 * noise.variance, rel=1e-9)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_sums_of_really_sampled_shares_have_that_variance(noise):
    """Six standard errors of 40,000 sums, with the kurtosis of the table: about 1e-8."""
    draws, teachers = 40_000, 30
    shares = sampling_table(noise).draw(draws * teachers).reshape(draws, teachers)
    _, variance = moments(TallyNoise.of(noise, teachers))
    found = shares.sum(axis=1).var()
    assert abs(found - variance) < 6 * variance * math.sqrt(6 / draws)


def test_draws_follow_the_table():
    """The largest gap of the cumulative distributions, by Massart's bound at 1e-6."""
    noise = TallyNoise.of(Skellam(share_variance=40.0, shares=20), 20)
    drawn = noise.draw((50_000,), np.random.default_rng(1)) - noise.first
    found = np.cumsum(np.bincount(drawn, minlength=len(noise.cumulative) + 1))[:-1] / 50_000
    assert np.abs(found - noise.cumulative).max() < math.sqrt(math.log(2 / 1e-6) / 100_000)


def test_the_papers_discrete_gaussian_has_next_to_no_noise_with_many_teachers():
    """N = 250, ε = 1, δ = 1e-3: a share's σ is so small that it is 0 almost always."""
    sigma = analytic_gaussian_sigma(1.0, 1e-3, 1.0)
    certificate = calibrate(
        "discrete-gaussian",
        epsilon=1.0,
        delta=1e-3,
        teachers=250,
        colluders=0,
        dropouts=0,
        calibration="paper",
    )
    _, variance = moments(TallyNoise.of(certificate.noise, 250))
    assert variance < 0.01 * sigma**2
    assert not certificate.certified
    few = calibrate(
        "discrete-gaussian",
        epsilon=1.0,
        delta=1e-3,
        teachers=2,
        colluders=0,
        dropouts=0,
        calibration="paper",
    )
    assert moments(TallyNoise.of(few.noise, 2))[1] == pytest.approx(sigma**2, rel=1e-3)


def test_equal_counts_win_equally_often():
    labels = largest(np.zeros((30_000, 3), dtype=np.int64), np.random.default_rng(2))
    # Six standard deviations of 30,000 draws.
    assert np.abs(np.bincount(labels) - 10_000).max() < 6 * math.sqrt(30_000 * 2 / 9)


def test_a_silent_teacher_counts_for_no_class():
    votes = np.array([[0, 1], [NO_VOTE, 1], [1, NO_VOTE]], dtype=np.uint8)
    assert tally(votes, 2).tolist() == [[1, 1], [0, 2]]


def test_without_noise_the_most_votes_win():
    votes = made_up_votes(teachers=15, records=40, classes=3)
    labels = plurality(votes)(np.random.default_rng(0))
    counts = votes.counts
    assert (counts[np.arange(40), labels] == counts.max(axis=1)).all()


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_accuracy_under_noise_is_what_equation_w1_says(noise):
    votes = made_up_votes(teachers=30, records=4000, classes=3, right=0.35)
    release, random = noisy_plurality(votes, noise), np.random.default_rng(3)
    right = np.array([(release(random) == votes.truth).mean() for _ in range(5)]).mean()
    wins = win_probabilities(votes, noise.of_teachers(30))
    error = math.sqrt(float((wins * (1 - wins)).sum())) / len(wins) / math.sqrt(5)
    assert abs(right - wins.mean()) < 6 * error


def test_a_standalone_answer_survives_as_often_as_simulated_noise_lets_it():
    votes = made_up_votes(teachers=4, records=5000, classes=10, right=1.0)
    noise = Binomial(total_tosses=40)
    kept = (standalone(votes, noise)(np.random.default_rng(4)) == votes.votes).mean()
    random = np.random.default_rng(5)
    counts = random.binomial(40, 0.5, (20_000, 10))
    counts[:, 3] += 1
    expected = (largest(counts, random) == 3).mean()
    assert abs(kept - expected) < 6 * math.sqrt(2 * expected * (1 - expected) / 20_000)


def test_randomised_response_reports_the_truth_as_often_as_its_epsilon_allows():
    """One teacher: its answer is the report. p/p' = e^ε is the promise itself."""
    votes = made_up_votes(teachers=1, records=40_000, classes=4, right=1.0)
    epsilon = 1.2
    released = randomised_response_plurality(votes, epsilon)(np.random.default_rng(6))
    expected = math.exp(epsilon) / (math.exp(epsilon) + 3)
    found = (released == votes.votes[0]).mean()
    assert abs(found - expected) < 6 * math.sqrt(expected * (1 - expected) / 40_000)


def test_laplace_noise_has_the_scale_that_was_asked_for():
    votes = made_up_votes(teachers=8, records=20_000, classes=2, right=1.0)
    right = (laplace_plurality(votes, 8.0)(np.random.default_rng(7)) == votes.truth).mean()
    # The difference of two Laplace variables is below a lead d with 1 - (2 + d/b) exp(-d/b)/4.
    expected = 1 - 3 * math.exp(-1) / 4
    assert abs(right - expected) < 6 * math.sqrt(expected * (1 - expected) / 20_000)
