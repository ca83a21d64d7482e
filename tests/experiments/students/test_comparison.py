"""The students' comparison on made-up digits, and the rule for the number of labels."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dppp.experiments.students.comparison import compare, features_of, table_of
from dppp.experiments.students.ensembles import KernelRecipe, PublicData, kernel_votes
from dppp.experiments.students.label_rule import labels_to_ask
from dppp.privacy.calibration import calibrate


@pytest.fixture(scope="module")
def runs():
    images, labels = load_digits(return_X_y=True)
    rows = images[:700] / 16

    def votes(seed):
        random = np.random.default_rng(seed)
        wrong = random.random((60, 500)) < 0.15
        return np.where(wrong, random.integers(0, 10, wrong.shape), labels[:500]).astype(np.uint8)

    data = PublicData(
        dataset="digits",
        classes=10,
        teachers=60,
        rows=rows,
        truth=labels[:700].astype(np.int64),
        pool=500,
        votes=votes,
    )
    return list(compare(data, [features_of(data, rows, "given")], epsilons=(8.0,), seeds=(1, 2)))


def test_every_method_learns_from_the_same_certified_answers(runs):
    assert len(runs) == 2 * 5
    assert all(run.certified for run in runs)
    for seed in (1, 2):
        assert len({run.label_accuracy for run in runs if run.seed == seed}) == 1


def test_the_table_has_a_line_for_each_method_with_the_spread_over_ensembles(runs):
    lines = table_of(runs)
    assert len(lines) == 2 + 5
    accuracies = [100 * run.accuracy for run in runs if run.method == "counts, SVM"]
    expected = f"{np.mean(accuracies):.1f} ± {np.std(accuracies, ddof=1):.1f}"
    assert f"| digits | given | counts, SVM | {expected} |" in lines


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_rule_leaves_a_lead_of_half_the_teachers_right_with_95_percent(epsilon):
    labels = labels_to_ask(teachers=250, epsilon=epsilon, delta=1e-5, pool=100_000)
    for asked, is_bearable in ((labels, True), (round(1.1 * labels) + 1, False)):
        certificate = calibrate("skellam", epsilon=epsilon, delta=1e-5, teachers=250, queries=asked)
        everyone = certificate.noise.of_teachers(250).variance
        assert (125 / np.sqrt(2 * everyone) >= 0.99 * 1.6449) == is_bearable


def test_the_rule_never_asks_about_more_than_a_twentieth_of_the_pool():
    assert labels_to_ask(teachers=1000, epsilon=50, delta=1e-5, pool=400) == 20


def test_kernel_teachers_are_right_about_most_digits_and_differ_by_seed():
    images, labels = load_digits(return_X_y=True)
    rows, truth = (images / 16).astype(np.float32), labels.astype(np.uint8)
    first, second = (
        kernel_votes(
            rows[:1200],
            truth[:1200],
            rows[1200:],
            KernelRecipe(teachers=5, gamma=0.1, seed=seed),
        )
        for seed in (1, 2)
    )
    assert first.shape == (5, 597)
    assert (first == truth[1200:]).mean() > 0.85
    assert (first != second).any()
