"""A student on scikit-learn's digits: of made-up teachers, of simulated ones and of real ones."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from tests.protocol.small import federation, small

from dppp.errors import InputError, QueriesExhausted
from dppp.learning.estimator import PrivateVotingClassifier
from dppp.learning.label_spreading import (
    Spreading,
    choose_records,
    spread_labels,
)
from dppp.learning.student import StudentClassifier, evidence_from_answers

POOL = 1400
EVEN = Spreading(class_shares=(0.1,) * 10)


@pytest.fixture(scope="module")
def digits():
    images, labels = load_digits(return_X_y=True)
    return images / 16, labels


class Teachers:
    """A hundred teachers of whom four in five are right, with Gaussian noise over their counts."""

    def __init__(self, digits, *, sigma=15.0, abstain_below=None, gives_counts=False):
        self.label_of = {row.tobytes(): label for row, label in zip(*digits, strict=True)}
        self.sigma, self.abstain_below, self.gives_counts = sigma, abstain_below, gives_counts
        self.asked = []

    def __call__(self, records):
        self.asked.append(records)
        counts = np.full((len(records), 10), 2.0)
        right = [self.label_of[record.tobytes()] for record in records]
        counts[np.arange(len(records)), right] = 80
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
    teachers = Teachers(digits, sigma=30.0)
    student, accurate = accuracy(teachers, digits, spreading=EVEN)
    right = (student.private_labels_ == digits[1][student.answered_]).mean()
    spread = (student.spread_.labels == digits[1][:POOL]).mean()
    assert right < 0.95
    assert spread > right
    assert accurate > 0.88


def test_the_teachers_are_asked_once_and_about_no_more_than_was_paid_for(digits):
    teachers = Teachers(digits)
    student, _ = accuracy(teachers, digits)
    (asked,) = teachers.asked
    assert len(asked) == len(set(student.asked_.tolist())) == 60
    np.testing.assert_array_equal(asked, digits[0][student.asked_])
    student.predict(digits[0])
    assert len(teachers.asked) == 1


def test_the_choice_of_records_depends_on_the_public_pool_only(digits):
    first, second = Teachers(digits), Teachers((digits[0], (digits[1] + 3) % 10), sigma=1.0)
    accuracy(first, digits)
    accuracy(second, digits)
    np.testing.assert_array_equal(first.asked[0], second.asked[0])


def test_abstentions_are_skipped(digits):
    student, accurate = accuracy(Teachers(digits, abstain_below=75), digits, spreading=EVEN)
    assert 20 < len(student.answered_) < len(student.asked_)
    assert accurate > 0.85


def test_counts_carry_more_than_labels_when_noise_is_large(digits):
    def spread(**answers):
        student, _ = accuracy(Teachers(digits, sigma=45.0, **answers), digits, labels=200)
        return (student.spread_.labels == digits[1][:POOL]).mean()

    assert spread(gives_counts=True) > spread() + 0.01


def test_any_estimator_learns_from_the_spread_labels(digits):
    student, accurate = accuracy(Teachers(digits), digits, estimator=SVC(C=5), spreading=EVEN)
    assert isinstance(student.estimator_, SVC)
    assert student.estimator_.C == 5
    assert accurate > 0.9


def test_what_does_not_fit_the_pool_or_the_classes_is_refused_before_anything_is_spent(digits):
    teachers = Teachers(digits)
    nine = Spreading(class_shares=(0.2, *(0.1,) * 8))
    with pytest.raises(InputError, match="9 class_shares for 10 classes"):
        accuracy(teachers, digits, spreading=nine)
    student = StudentClassifier(teachers, classes=range(10), labels=60)
    with pytest.raises(InputError, match="99 rows of graph_features for 1400 records"):
        student.fit(digits[0][:POOL], graph_features=digits[0][:99])
    assert teachers.asked == []


@pytest.mark.parametrize("shares", [(), (0.5, 0.4), (1.5, -0.5)])
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(InputError, match="positive and add up to 1"):
        Spreading(class_shares=shares)


def test_classes_may_have_names(digits):
    names = np.array([f"digit {number}" for number in range(10)])
    teachers = Teachers(digits, sigma=0)
    student = StudentClassifier(
        lambda records: [names[label] for label in teachers(records)],
        classes=names.tolist(),
        random_state=0,
    ).fit(digits[0][:POOL])
    assert student.predict(digits[0][:5]).tolist() == [f"digit {n}" for n in digits[1][:5]]


def simulated_teachers(digits, **changes):
    """Ten teachers of five named classes, who may be asked forty times."""
    images, labels = digits
    rows = np.flatnonzero(labels[:POOL] < 5)
    names = np.array(["nought", "one", "two", "three", "four"])
    return PrivateVotingClassifier(
        KNeighborsClassifier(1),
        n_teachers=10,
        epsilon=30,
        queries=40,
        noise="skellam",
        cryptography=False,
        random_state=0,
        **changes,
    ).fit(images[rows], names[labels[rows]])


@pytest.fixture
def private(digits):
    return simulated_teachers(digits)


@pytest.fixture
def pool(digits):
    images, labels = digits
    return images[POOL:][labels[POOL:] < 5]


def test_the_teachers_may_be_a_fitted_classifier_and_every_label_is_charged_once(private, pool):
    student = StudentClassifier(private, labels=30, random_state=0).fit(pool)
    assert student.classes_.tolist() == ["four", "nought", "one", "three", "two"]
    assert private.privacy_spent_["queries"] == 30
    np.testing.assert_array_equal(student.private_labels_, private.predict(pool[student.asked_]))
    assert set(student.predict(pool)) <= set(student.classes_)
    student.fit(pool)
    assert private.privacy_spent_["queries"] == 30


def test_past_the_budget_the_refusal_comes_through(private, pool):
    with pytest.raises(QueriesExhausted, match=r"41 rows need .* 40 of queries=40 are left"):
        StudentClassifier(private, labels=41).fit(pool)
    assert private.privacy_spent_["queries"] == 0


def test_abstentions_of_a_classifier_are_skipped_and_charged(digits, pool):
    private = simulated_teachers(digits, abstain_below=10)
    student = StudentClassifier(private, labels=40, random_state=0).fit(pool)
    said = private.predict(pool[student.asked_])
    assert 0 < len(student.answered_) < 40
    assert student.private_labels_.tolist() == [each for each in said if each is not None]
    assert private.privacy_spent_["queries"] == 40


def test_a_clone_has_the_same_teachers_and_the_same_budget(private, pool):
    student = StudentClassifier(private, labels=30, estimator=SVC(C=5), random_state=0)
    copied = clone(clone(student.fit(pool)))
    assert copied.teachers is private
    assert copied.estimator is not student.estimator
    assert not hasattr(copied, "estimator_")
    assert copied.get_params(deep=False).keys() == student.get_params(deep=False).keys()
    copied.fit(pool)
    assert private.privacy_spent_["queries"] == 30
    assert clone(make_pipeline(StandardScaler(), student))[-1].teachers is private


def test_counts_may_be_asked_of_a_classifier(private, pool):
    student = StudentClassifier(
        private.predict_counts, classes=private.classes_, labels=30, random_state=0
    )
    assert clone(student).fit(pool).predict(pool[:2]).dtype == private.classes_.dtype
    assert private.privacy_spent_["queries"] == 30


def test_teachers_that_were_not_fitted_and_functions_without_classes_are_refused(pool):
    with pytest.raises(NotFittedError):
        StudentClassifier(PrivateVotingClassifier()).fit(pool)
    with pytest.raises(InputError, match="give them as `classes`"):
        StudentClassifier(lambda records: records).fit(pool)


def three_groups():
    """Public records around 0, 1 and 2: the model of the small federation is right about them."""
    centres = np.repeat([0.0, 1.0, 2.0], 20)
    scatter = np.random.default_rng(0).uniform(0, 0.3, (60, 2))
    return np.column_stack([centres + scatter[:, 0], scatter[:, 1]])


@pytest.mark.parametrize("names", [None, [10, 20, 30]])
def test_the_teachers_may_be_a_real_federation(names):
    parties = small()
    asked, pool = federation(parties), three_groups()
    student = clone(StudentClassifier(asked, labels=12, classes=names, random_state=0)).fit(pool)
    classes = list(parties.task.class_names if names is None else names)
    assert student.classes_.tolist() == classes
    answers = asked.ask(pool[student.asked_]).answers
    released = [classes[each.label] for each in answers if each.label is not None]
    assert student.private_labels_.tolist() == released
    assert parties.ledgers[1].summary().data[0].tasks[0].answered == 12
    assert set(student.predict(pool)) <= set(classes)


def test_past_the_budget_a_real_federation_refuses_too():
    parties = small()
    with pytest.raises(QueriesExhausted, match=r"41 queries, but task .* has 40 left"):
        StudentClassifier(federation(parties), labels=41).fit(three_groups())
    assert parties.ledgers[1].summary().data[0].tasks[0].answered == 0
    StudentClassifier(federation(parties), labels=40).fit(three_groups())
    assert parties.ledgers[1].summary().data[0].tasks[0].answered == 40


def test_the_wrong_number_of_classes_of_a_federation_is_refused():
    with pytest.raises(InputError, match="2 classes for a task with 3"):
        StudentClassifier(federation(small()), classes=["a", "b"]).fit(three_groups())


def test_records_that_no_answer_reaches_are_not_learned_from():
    pool = np.concatenate([np.linspace(start, start + 0.2, 5) for start in (0, 5, 9)])[:, None]
    student = StudentClassifier(
        lambda rows: [{0: None, 5: "five", 9: "nine"}[int(row[0])] for row in rows],
        classes=["five", "nine"],
        labels=3,
        spreading=Spreading(neighbours=2),
        estimator=KNeighborsClassifier(1),
        random_state=0,
    ).fit(pool)
    assert (student.spread_.confidence > 0).tolist() == [False] * 5 + [True] * 10
    assert sorted(set(student.estimator_._fit_X[:, 0].astype(int).tolist())) == [5, 9]
    assert student.predict(pool[5:]).tolist() == ["five"] * 5 + ["nine"] * 5


def test_a_student_that_was_told_one_class_says_it_whatever_the_estimator(pool):
    student = StudentClassifier(
        lambda records: ["well"] * len(records), classes=["ill", "well"], estimator=SVC(), labels=9
    ).fit(pool)
    assert set(student.predict(pool)) == {"well"}


def test_counts_that_say_nothing_leave_all_classes_alike():
    arrived = np.full((3, 2), 0.5)
    spread = spread_labels(arrived, np.zeros((2, 4)), Spreading())
    assert spread.confidence.tolist() == [0.25] * 3


def test_nothing_but_abstentions_is_refused(digits):
    with pytest.raises(InputError, match="every answer was an abstention"):
        accuracy(lambda rows: [None] * len(rows), digits)


def test_a_label_outside_the_classes_is_refused(digits):
    with pytest.raises(InputError, match="outside the classes"):
        accuracy(lambda rows: [12] * len(rows), digits)


def test_labels_from_outside_are_refused(digits):
    with pytest.raises(InputError, match="no labels from outside"):
        StudentClassifier(Teachers(digits), classes=range(10)).fit(*digits)


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
