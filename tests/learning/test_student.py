"""A student on scikit-learn's digits, with simulated teachers."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from dppp.errors import InputError
from dppp.learning.student import (
    Spreading,
    StudentClassifier,
    choose_records,
    evidence_from_answers,
)

POOL = 1400
EVEN = Spreading(class_shares=(0.1,) * 10)


@pytest.fixture(scope="module")
def digits():
    images, labels = load_digits(return_X_y=True)
    return images / 16, labels


class Teachers:
    """A hundred teachers of whom four in five are right, with Gaussian noise over their counts."""

    def __init__(self, labels, *, sigma=15.0, abstain_below=None, gives_counts=False):
        self.labels, self.sigma = labels, sigma
        self.abstain_below, self.gives_counts = abstain_below, gives_counts
        self.asked = []

    def __call__(self, rows):
        self.asked.append(rows)
        counts = np.full((len(rows), 10), 2.0)
        counts[np.arange(len(rows)), self.labels[rows]] = 80
        counts += np.random.default_rng(7).normal(0, self.sigma, counts.shape)
        if self.gives_counts:
            return counts
        return [
            None if self.abstain_below and row.max() < self.abstain_below else int(row.argmax())
            for row in counts
        ]


def accuracy(teachers, digits, **parameters):
    images, labels = digits
    student = StudentClassifier(
        teachers, classes=range(10), random_state=3, **{"labels": 60, **parameters}
    )
    student.fit(images[:POOL])
    return student, (student.predict(images[POOL:]) == labels[POOL:]).mean()


def test_sixty_noisy_labels_teach_the_whole_pool(digits):
    teachers = Teachers(digits[1], sigma=30.0)
    student, accurate = accuracy(teachers, digits, spreading=EVEN)
    right = (np.array(teachers(student.asked_)) == digits[1][student.asked_]).mean()
    spread = (student.spread_.labels == digits[1][:POOL]).mean()
    assert right < 0.95
    assert spread > right
    assert accurate > 0.88


def test_the_teachers_are_asked_once_and_about_no_more_than_was_paid_for(digits):
    teachers = Teachers(digits[1])
    student, _ = accuracy(teachers, digits)
    (asked,) = teachers.asked
    assert len(set(asked.tolist())) == 60
    student.predict(digits[0])
    assert len(teachers.asked) == 1


def test_the_choice_of_records_depends_on_the_public_pool_only(digits):
    first, second = Teachers(digits[1]), Teachers((digits[1] + 3) % 10, sigma=1.0)
    accuracy(first, digits)
    accuracy(second, digits)
    np.testing.assert_array_equal(first.asked[0], second.asked[0])


def test_abstentions_are_skipped(digits):
    student, accurate = accuracy(Teachers(digits[1], abstain_below=75), digits, spreading=EVEN)
    assert 20 < len(student.answered_) < len(student.asked_)
    assert accurate > 0.85


def test_counts_carry_more_than_labels_when_noise_is_large(digits):
    def spread(**answers):
        student, _ = accuracy(Teachers(digits[1], sigma=45.0, **answers), digits, labels=200)
        return (student.spread_.labels == digits[1][:POOL]).mean()

    assert spread(gives_counts=True) > spread() + 0.01


def test_any_estimator_learns_from_the_spread_labels(digits):
    student, accurate = accuracy(Teachers(digits[1]), digits, estimator=SVC(C=5), spreading=EVEN)
    assert isinstance(student.estimator_, SVC)
    assert student.estimator_.C == 5
    assert accurate > 0.9


def test_a_student_can_be_cloned(digits):
    student = StudentClassifier(Teachers(digits[1]), classes=tuple(range(10)), labels=20)
    assert clone(student).get_params()["labels"] == 20


def test_classes_may_have_names(digits):
    names = np.array([f"digit {number}" for number in range(10)])
    student = StudentClassifier(
        lambda rows: [names[digits[1][row]] for row in rows], classes=names, random_state=0
    ).fit(digits[0][:POOL])
    assert student.predict(digits[0][:5]).tolist() == [f"digit {n}" for n in digits[1][:5]]


def test_nothing_but_abstentions_is_refused(digits):
    with pytest.raises(InputError, match="every answer was an abstention"):
        accuracy(lambda rows: [None] * len(rows), digits)


def test_a_label_outside_the_classes_is_refused(digits):
    with pytest.raises(InputError, match="outside the classes"):
        accuracy(lambda rows: [12] * len(rows), digits)


def test_labels_from_outside_are_refused(digits):
    with pytest.raises(InputError, match="no labels from outside"):
        StudentClassifier(Teachers(digits[1]), classes=range(10)).fit(*digits)


def test_more_labels_than_records_are_refused(digits):
    with pytest.raises(InputError, match="cannot choose 11 of 10"):
        choose_records(digits[0][:10], 11)


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [([1], "asked about 2 records but got 1"), (np.zeros((2, 3)), "3 columns for 10 classes")],
)
def test_answers_of_the_wrong_shape_are_refused(answers, complaint):
    with pytest.raises(InputError, match=complaint):
        evidence_from_answers(answers, np.arange(10), 2)


@pytest.mark.parametrize(
    "wrong", [{"neighbours": 0}, {"reach": 1.0}, {"steps": 0}, {"class_shares": (0.5, 0.6)}]
)
def test_impossible_spreading_is_refused(wrong):
    with pytest.raises(InputError, match="must be"):
        Spreading(**wrong)
