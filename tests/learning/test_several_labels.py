import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_classifiers_multilabel_output_format_predict,
)

from dppp.errors import InputError, RecordsError
from dppp.learning.estimator import PrivateVotingClassifier
from dppp.learning.label_verdict import (
    chances_of_release,
    expected_jaccard,
    jaccard,
)
from dppp.learning.number_verdict import moments_of_error
from dppp.learning.question_models import as_answering
from dppp.learning.several_labels import SomeLabels, train_on_labels
from dppp.privacy.noise import Skellam, pmf_of
from dppp.protocol.question import Question
from dppp.protocol.votes import cast_votes

LABELS = 5
NOISE = Skellam(share_variance=0.4, shares=5)


@functools.cache
def records() -> tuple[np.ndarray, np.ndarray]:
    rows, labels = make_multilabel_classification(
        460, 8, n_classes=LABELS, n_labels=3, random_state=2
    )
    return rows, labels


def model() -> Any:
    return MultiOutputClassifier(make_pipeline(StandardScaler(), LogisticRegression()))


def classifier(**changes: Any) -> PrivateVotingClassifier:
    given = {
        "estimator": model(),
        "n_teachers": 4,
        "epsilon": 20.0,
        "delta": 1e-4,
        "queries": 60,
        "noise": "skellam",
        "cryptography": False,
        "max_labels": 2,
        "votes": 2,
        "random_state": 0,
        **changes,
    }
    return PrivateVotingClassifier(**given)


def fitted(**changes: Any) -> PrivateVotingClassifier:
    rows, labels = records()
    return classifier(**changes).fit(rows[:400], labels[:400])


def test_labels_come_as_an_indicator_matrix_of_those_past_the_share() -> None:
    rows, labels = records()
    private = fitted(label_share=0.3)
    predicted = private.predict(rows[400:])
    counts = private.predict_counts(rows[400:])
    assert predicted.shape == labels[400:].shape
    assert np.array_equal(predicted, (counts >= math.ceil(0.3 * 8)).astype(int))
    assert private.score(rows[400:], labels[400:]) == np.mean(
        (predicted == labels[400:]).all(axis=1)
    )
    assert private.certificate_.to_json()["counts_moved"] == 4
    assert private.privacy_spent_["left"] == 0


def test_the_real_protocol_releases_labels_too() -> None:
    rows, _ = records()
    private = fitted(cryptography=True, n_teachers=5, queries=6)
    counts = private.predict_counts(rows[400:406])
    assert np.array_equal(private.predict(rows[400:406]), (counts >= 5).astype(int))
    assert private.certificate_.certified


def test_scikit_learn_checks_the_format_of_several_labels() -> None:
    checked = classifier(n_teachers=3, max_labels=3, votes=1, colluders=0, dropouts=0)
    assert checked.__sklearn_tags__().classifier_tags.multi_label
    assert not classifier(max_labels=None).__sklearn_tags__().classifier_tags.multi_label
    check_classifiers_multilabel_output_format_predict("PrivateVotingClassifier", checked)


def test_the_most_labels_must_be_given_and_never_come_from_the_records() -> None:
    rows, labels = records()
    with pytest.raises(RecordsError, match="nothing says how many") as refused:
        classifier(max_labels=None).fit(rows, labels)
    assert "would tell of them" in str(refused.value.hint)
    with pytest.raises(RecordsError, match="max_labels is for several labels"):
        classifier().fit(rows, labels[:, 0])
    with pytest.raises(InputError, match="max_labels is 1 to the number of labels"):
        classifier(max_labels=LABELS + 1).fit(rows, labels)
    with pytest.raises(InputError, match="abstain_below is for one"):
        classifier(abstain_below=3).fit(rows, labels)
    with pytest.raises(InputError, match="between 0 and 1"):
        classifier(label_share=1.5).fit(rows, labels)


@pytest.mark.parametrize(
    "made",
    [model(), RandomForestClassifier(5), KNeighborsClassifier(3)],
    ids=["several models", "a forest", "neighbours"],
)
def test_a_vote_keeps_the_labels_that_its_model_is_surest_of(made: Any) -> None:
    rows, labels = records()
    trained = made.fit(rows[:200], labels[:200])
    chances = np.stack([each[:, 1] for each in trained.predict_proba(rows[400:])], axis=1)
    said = trained.predict(rows[400:])
    votes = cast_votes(
        as_answering(trained, range(LABELS), Question.of_labels(most_labels=2)),
        rows[400:],
        LABELS,
        question=Question.of_labels(most_labels=2),
    )
    assert said.sum(axis=1).max() > 2
    assert np.array_equal(votes.sum(axis=1), np.minimum(2, said.sum(axis=1)))
    for vote, of_row, sure in zip(votes, said, chances, strict=True):
        kept, left = sure[vote == 1], sure[(vote == 0) & (of_row == 1)]
        assert not len(left) or kept.min() >= left.max()


def test_a_vote_depends_on_its_row_alone() -> None:
    rows, labels = records()
    ask = as_answering(
        model().fit(rows[:200], labels[:200]), range(LABELS), Question.of_labels(most_labels=2)
    )
    together = ask(rows[400:420])
    assert together == [ask(rows[place : place + 1])[0] for place in range(400, 420)]


def test_a_label_that_never_changes_in_a_shard_is_no_reason_to_fail() -> None:
    rows, labels = records()
    for varying in ([1, 3], [2]):
        shard = np.zeros((60, LABELS), dtype=np.int64)
        shard[:, 0] = 1
        shard[:, varying] = labels[:60, varying]
        with pytest.raises(ValueError, match="at least 2 classes"):
            model().fit(rows[:60], shard)
        trained = train_on_labels(model(), rows[:60], shard)
        assert isinstance(trained, SomeLabels)
        said = trained.predict(rows[400:])
        assert (said[:, 0] == 1).all()
        assert (said[:, 4] == 0).all()
        alone = model().fit(rows[:60], shard[:, [*varying, varying[0]]])
        assert np.array_equal(said[:, varying], alone.predict(rows[400:])[:, : len(varying)])
        assert (trained.predict_proba(rows[400:])[:, 0] == np.inf).all()
    unsure = train_on_labels(MultiOutputClassifier(Perceptron()), rows[:60], shard)
    assert not hasattr(unsure, "predict_proba")


def test_the_largest_counts_are_free_after_a_prediction() -> None:
    rows, labels = records()
    private = fitted()
    asked = rows[400:410]
    counts = private.predict_counts(asked)
    top = private.predict_top(asked, 3)
    assert top.shape == (10, 3)
    for best, of_row in zip(top, counts, strict=True):
        assert of_row[best].tolist() == sorted(of_row.tolist(), reverse=True)[:3]
    assert private.privacy_spent_["queries"] == 10
    one = classifier(max_labels=None, estimator=KNeighborsClassifier(3))
    one.fit(rows[:400], np.array(["a", "b", "c", "d"])[labels[:400, :2] @ [1, 2]])
    assert (
        np.array_equal(one.predict_top(asked, 1)[:, 0], one.predict(asked))
        or (
            # A tie: the label is drawn by hash there.
            np.sort(one.predict_counts(asked), axis=1)[:, -1]
            == np.sort(one.predict_counts(asked), axis=1)[:, -2]
        ).any()
    )
    with pytest.raises(InputError, match="there are 4 classes"):
        one.predict_top(asked, 5)


def test_sparse_labels_and_a_table_are_taken() -> None:
    pandas = pytest.importorskip("pandas")
    rows, labels = records()
    table = pandas.DataFrame(rows[:400], columns=[f"x{place}" for place in range(8)])
    private = classifier(estimator=None, n_teachers=4)
    sparse_labels: Any = sparse.csr_matrix(labels[:400])
    private.fit(table, sparse_labels)
    assert private.predict(table[:3]).shape == (3, LABELS)
    named = pandas.DataFrame(labels[:400], columns=list("abcde"))
    assert classifier(n_teachers=4).fit(table, named).predict(table[:3]).shape == (3, LABELS)


def test_a_verdict_on_labels_says_what_one_has_without_the_federation() -> None:
    rows, labels = records()
    private = fitted(n_teachers=4, votes=1, unit="teacher", epsilon=40.0)
    verdict = private.verdict(rows[400:], labels[400:])
    said = [model.predict(rows[400:]) for model in private.teachers_]
    assert verdict.accuracy_single == pytest.approx(
        np.mean([jaccard(each, labels[400:]).mean() for each in said])
    )
    assert verdict.measure == "of the labels right"
    assert "of the labels right" in verdict.outsider.sentence
    assert private.privacy_spent_["queries"] == 0
    with pytest.raises(RecordsError, match="a column for each of 5 labels"):
        private.verdict(rows[400:], labels[400:, :2])


def test_the_expected_measure_is_the_sum_over_all_noise() -> None:
    pmf = pmf_of(NOISE)
    masses = [(pmf.first + place, mass) for place, mass in enumerate(pmf.masses) if mass > 1e-9]
    beyond, truth = np.array([[-1, 2, 0]]), np.array([[1, 0, 1]])
    mean, second = 0.0, 0.0
    for drawn in itertools.product(masses, repeat=3):
        chance = math.prod(mass for _, mass in drawn)
        released = np.array([[b + z >= 0 for b, (z, _) in zip(beyond[0], drawn, strict=True)]])
        found = float(jaccard(released, truth)[0])
        mean, second = mean + chance * found, second + chance * found**2
    found_mean, found_variance = expected_jaccard(chances_of_release(beyond, NOISE), truth)
    assert found_mean[0] == pytest.approx(mean, abs=1e-7)
    assert found_variance[0] == pytest.approx(second - mean**2, abs=1e-7)


def test_the_expected_error_of_a_clipped_mean_is_the_sum_over_all_noise() -> None:
    question = Question.of_number(low=-1, high=3, levels=4)
    pmf = pmf_of(NOISE)
    masses = list(enumerate(pmf.masses, start=pmf.first))
    for count, votes, truth in ((9, 3, 0.5), (0, 2, 2.5), (8, 2, 3.0)):
        off = [(question.mean_of(count + z, votes) - truth, mass) for z, mass in masses]
        for power, found in zip(
            (2, 4),
            moments_of_error(
                question, np.array([count]), np.array([votes]), np.array([truth]), NOISE
            ),
            strict=True,
        ):
            expected = math.fsum(mass * error**power for error, mass in off)
            assert found[0] == pytest.approx(expected, rel=1e-9)
