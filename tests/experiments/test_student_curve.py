"""The student's curve on scikit-learn's digits with made-up teachers, and features of images."""

import csv
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from dppp.errors import InputError
from dppp.experiments.datasets.mnist_features import deskew, gradient_histograms, public_features
from dppp.experiments.student_curve import (
    Ensemble,
    Method,
    curve,
    draw,
    measure,
    mnist_method,
    noisy_labels,
)
from dppp.experiments.tables import write_table
from dppp.privacy.noise import Skellam


@pytest.fixture(scope="module")
def ensemble():
    images, labels = load_digits(return_X_y=True)
    random = np.random.default_rng(1)
    wrong = random.random((100, len(labels))) < 0.15
    votes = np.where(wrong, random.integers(0, 10, wrong.shape), labels)
    return Ensemble(
        votes=votes.astype(np.uint8),
        features=images / 16,
        truth=labels.astype(np.uint8),
        pool=1400,
    )


@pytest.fixture(scope="module")
def runs(ensemble):
    method = Method(spreading=mnist_method().spreading, estimator=KNeighborsClassifier(5))
    return list(measure(ensemble, method, epsilons=(1.0, 8.0), labels=(20, 40), repetitions=2))


def test_every_run_is_certified_and_says_that_cryptography_is_off(runs):
    assert all(run.certified and not run.cryptography for run in runs)
    settings = [(run.labels, run.seed, run.epsilon) for run in runs]
    assert settings == list(itertools.product((20, 40), (0, 1), (1.0, 8.0)))


def test_more_budget_means_less_noise_and_a_good_student(runs):
    little, much = runs[-2:]
    assert much.variance < little.variance
    assert much.label_accuracy > 0.9
    assert much.first_half_accuracy > 0.85
    assert much.second_half_accuracy > 0.85


def test_both_halves_are_measured_by_images_out_of_the_pool(ensemble):
    """A student that knows the first half of the measuring images alone is right there alone."""

    class Cheat(KNeighborsClassifier):
        def predict(self, features):
            middle = len(features) // 2
            truth = ensemble.truth[ensemble.pool :].astype(np.int64)
            return np.where(np.arange(len(features)) < middle, truth, truth + 1)

    method = Method(spreading=mnist_method().spreading, estimator=Cheat())
    (run,) = measure(ensemble, method, epsilons=(8.0,), labels=(20,), repetitions=1)
    assert (run.first_half_accuracy, run.second_half_accuracy) == (1.0, 0.0)


def test_no_half_of_the_images_measures_with_the_number_that_it_chose(runs):
    def pretend(labels, seed, first, second):
        return replace(
            runs[0],
            labels=labels,
            seed=seed,
            first_half_accuracy=first,
            second_half_accuracy=second,
        )

    (point,) = curve(
        [
            pretend(30, 0, 0.9, 0.2),
            pretend(30, 1, 0.9, 0.4),
            pretend(60, 0, 0.5, 0.7),
            pretend(60, 1, 0.7, 0.7),
        ]
    )
    assert point.labels == (30, 60)
    # Choice 0: 0.2 with 30 on the second half, 0.5 with 60 on the first; choice 1: 0.4 and 0.7.
    assert point.accuracy_mean == pytest.approx((0.35 + 0.55) / 2)
    assert point.accuracy_std == pytest.approx(0.2 / math.sqrt(2))


def test_the_table_holds_every_run_and_the_figure_every_point(runs, tmp_path):
    write_table(runs, tmp_path / "student.csv")
    with (tmp_path / "student.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["label_accuracy"]) for row in rows] == [run.label_accuracy for run in runs]
    points = curve(runs)
    assert [point.epsilon for point in points] == [1.0, 8.0]
    draw(points, tmp_path / "student.svg")
    picture = (tmp_path / "student.svg").read_text()
    assert picture.count("<!-- PATE (2018) as published") == 1
    assert all(f"<!-- {point.epsilon:g} -->" in picture for point in points)


def test_every_teacher_adds_its_share():
    """The counts of no votes are the noise alone: the winner among ten is any class."""
    noise = Skellam(share_variance=4.0, shares=70)
    nothing = np.zeros((2000, 10), dtype=np.int64)
    labels = noisy_labels(nothing, noise, teachers=100, key=bytes(32))
    np.testing.assert_array_equal(labels, noisy_labels(nothing, noise, teachers=100, key=bytes(32)))
    lead = np.zeros((2000, 2), dtype=np.int64)
    lead[:, 0] = 28
    # 100 shares of variance 4: the difference of two counts has standard deviation √800 ≈ 28.3.
    wins = (noisy_labels(lead, noise, teachers=100, key=bytes(32)) == 0).mean()
    expected = 0.5 * (1 + math.erf(28.5 / math.sqrt(800) / math.sqrt(2)))
    # Six standard deviations of 2,000 draws: below 1e-6 false alarms with the noise in its place.
    assert abs(wins - expected) < 6 * math.sqrt(expected * (1 - expected) / 2000)
    assert set(labels.tolist()) == set(range(10))


def test_parts_that_do_not_belong_together_are_refused(ensemble):
    with pytest.raises(InputError, match="do not belong together"):
        Ensemble(votes=ensemble.votes[:, 1:], features=ensemble.features, truth=ensemble.truth)
    with pytest.raises(InputError, match="leave records to measure by"):
        Ensemble(votes=ensemble.votes, features=ensemble.features, truth=ensemble.truth, pool=1797)


def test_a_sheared_stroke_is_straightened():
    slanted = np.zeros((1, 28, 28), dtype=np.uint8)
    for row in range(4, 24):
        slanted[0, row, 5 + row // 2 : 8 + row // 2] = 255
    straight = deskew(slanted)[0]
    rows, columns = np.mgrid[:28, :28]
    mass = straight.sum()
    row, column = (rows * straight).sum() / mass, (columns * straight).sum() / mass
    covariance = ((rows - row) * (columns - column) * straight).sum() / mass
    assert abs(row - 13.5) < 0.2
    assert abs(column - 13.5) < 0.2
    assert abs(covariance) < 1


def test_histograms_keep_apart_what_direction_keeps_apart():
    upright, flat = np.zeros((1, 28, 28)), np.zeros((1, 28, 28))
    upright[0, 4:24, 12:15] = 1
    flat[0, 12:15, 4:24] = 1
    first, second = gradient_histograms(np.concatenate([upright, flat]))
    assert np.dot(first, first) == pytest.approx(1)
    assert np.dot(first, second) < 0.7


def test_features_come_back_from_the_cache(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (12, 28, 28)).astype(np.uint8)
    images[3] = 0
    features = public_features(images, 8, folder=tmp_path)
    assert np.isfinite(features).all()
    np.testing.assert_array_equal(public_features(images, 8, folder=tmp_path), features)
    assert len(list(tmp_path.iterdir())) == 1
    others = public_features(images[::-1], 8, folder=tmp_path)
    assert not np.allclose(others, features)
