import functools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from dppp.errors import InputError, NotWorthItWarning, QueriesExhausted
from dppp.learning.estimator import EXPECTED_FAILED_CHECKS, PrivateVotingClassifier
from dppp.privacy.accounting import Spending, account
from dppp.privacy.noise import FAMILIES


@functools.cache
def records(count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rows, labels = make_classification(count, 5, n_informative=4, n_redundant=0, random_state=3)
    return rows, np.array(["ill", "well"])[labels]


def classifier(**changes: Any) -> PrivateVotingClassifier:
    given = {
        "n_teachers": 10,
        "epsilon": 20.0,
        "delta": 1e-4,
        "queries": 50,
        "noise": "skellam",
        "cryptography": False,
        "random_state": 0,
        **changes,
    }
    return PrivateVotingClassifier(LogisticRegression(), **given)


@pytest.mark.filterwarnings("ignore::dppp.errors.RecordsUsedAgainWarning")  # its checks refit
def test_scikit_learns_own_checks_pass_but_for_those_listed() -> None:
    checked = PrivateVotingClassifier(
        LogisticRegression(),
        n_teachers=3,
        epsilon=50.0,
        delta=1e-2,
        queries=400,
        noise="skellam",
        colluders=0,
        dropouts=0,
        cryptography=False,
        random_state=0,
    )
    results = check_estimator(
        checked, expected_failed_checks=EXPECTED_FAILED_CHECKS, on_skip=None, on_fail="raise"
    )
    failed = {each["check_name"] for each in results if each["status"] == "xfail"}
    assert failed == set(EXPECTED_FAILED_CHECKS)


def test_it_predicts_labels_and_says_what_they_cost() -> None:
    rows, labels = records()
    fitted = classifier(noise="auto").fit(rows[:300], labels[:300])
    predicted = fitted.predict(rows[300:350])
    counts = fitted.predict_counts(rows[300:350])
    for label, (ill, well) in zip(predicted, counts, strict=True):
        assert ill == well or label == ("ill" if ill > well else "well")
    assert fitted.privacy_spent_["queries"] == 50
    assert fitted.privacy_spent_["left"] == 0
    spent = account([Spending(noise=fitted.certificate_.noise, queries=50)], 1e-4)
    assert spent <= 20
    assert fitted.privacy_spent_["epsilon"] == spent
    assert fitted.ledger_.data[0].tasks[0].answered == 50
    assert len(fitted.teachers_) == 10
    chosen = dict(fitted.certificate_.chosen_from)
    assert chosen[fitted.certificate_.noise.name] == min(chosen.values())


def test_past_the_budget_it_refuses_and_known_inputs_stay_free() -> None:
    rows, labels = records()
    fitted = classifier().fit(rows[:300], labels[:300])
    first = fitted.predict(rows[300:350])
    assert np.array_equal(fitted.predict(rows[300:350]), first)
    assert fitted.predict_counts(rows[300:350]).shape == (50, 2)
    with pytest.raises(QueriesExhausted):
        fitted.predict(rows[350:351])
    assert fitted.privacy_spent_["queries"] == 50


def test_half_the_queries_cost_less_than_all() -> None:
    rows, labels = records()
    fitted = classifier().fit(rows[:300], labels[:300])
    assert fitted.privacy_spent_["epsilon"] == 0
    fitted.predict(rows[300:325])
    half = fitted.privacy_spent_["epsilon"]
    assert half == account([Spending(noise=fitted.certificate_.noise, queries=25)], 1e-4)
    fitted.predict(rows[325:350])
    assert 0 < half < fitted.privacy_spent_["epsilon"]


def test_it_is_loud_about_a_simulation() -> None:
    rows, labels = records()
    fitted = classifier().fit(rows, labels)
    assert "simulated" in repr(fitted)
    assert fitted.certificate_.to_json()["simulated"] is True
    assert not fitted.certificate_.certified
    assert "simulated" not in repr(classifier(cryptography=True))


def test_a_seed_repeats_a_simulation() -> None:
    rows, labels = records()
    once, again = (classifier().fit(rows[:300], labels[:300]) for _ in range(2))
    counts = once.predict_counts(rows[300:350])
    assert np.array_equal(counts, again.predict_counts(rows[300:350]))
    other = classifier(random_state=1).fit(rows[:300], labels[:300])
    assert not np.array_equal(counts, other.predict_counts(rows[300:350]))


@functools.cache
def residuals(cryptography: bool, noise: str) -> np.ndarray:
    """Noisy counts minus true counts: nothing but noise."""
    rows, labels = records()
    fitted = classifier(cryptography=cryptography, noise=noise).fit(rows[:300], labels[:300])
    asked = rows[300:350]
    votes = np.array([model.predict(asked) for model in fitted.teachers_])
    true = np.stack([(votes == name).sum(axis=0) for name in fitted.classes_], axis=1)
    return (fitted.predict_counts(asked) - true).ravel()


@pytest.mark.parametrize("noise", ["skellam", "binomial"])
def test_counts_have_the_same_distribution_with_and_without_cryptography(noise: str) -> None:
    real, simulated = residuals(True, noise), residuals(False, noise)
    assert stats.ks_2samp(real, simulated).pvalue > 1e-6
    spread = stats.levene(real, simulated).pvalue
    assert spread > 1e-6
    assert abs(real.mean() - simulated.mean()) < 6 * real.std() / np.sqrt(50)


@pytest.mark.parametrize("noise", FAMILIES)
def test_simulated_counts_hold_the_noise_of_every_teacher(noise: str) -> None:
    fitted = classifier(noise=noise, queries=2000).fit(*records())
    asked = np.random.RandomState(1).normal(size=(2000, 5))
    votes = np.array([model.predict(asked) for model in fitted.teachers_])
    true = np.stack([(votes == name).sum(axis=0) for name in fitted.classes_], axis=1)
    drawn = fitted.predict_counts(asked) - true
    expected = fitted.certificate_.noise.of_teachers(10).variance
    # Wide noise is nearly normal: a mean square of 4,000 draws is off by a tenth once in 10⁵ runs,
    # and the seed makes this one run. The noise of the seven honest shares alone would be 0.7.
    assert np.mean(drawn**2.0) / expected == pytest.approx(1, abs=0.1)


def test_real_noise_is_not_seeded() -> None:
    rows, labels = records()
    once, again = (
        classifier(cryptography=True, queries=20).fit(rows[:300], labels[:300]) for _ in range(2)
    )
    assert not np.array_equal(
        once.predict_counts(rows[300:320]), again.predict_counts(rows[300:320])
    )
    assert once.certificate_.certified


def test_owners_of_records_are_respected() -> None:
    rows, labels = records()
    owners = np.arange(400) % 10
    labels = np.where(owners == 7, "well", labels)
    fitted = classifier().fit(rows, labels, teachers=[f"hospital {each}" for each in owners])
    assert set(fitted.teachers_[7].predict(rows)) == {"well"}


def test_it_works_in_a_pipeline_and_can_be_cloned() -> None:
    rows, labels = records()
    piped = make_pipeline(StandardScaler(), classifier()).fit(rows[:300], labels[:300])
    alone = classifier().fit(StandardScaler().fit_transform(rows[:300]), labels[:300])
    scaled = StandardScaler().fit(rows[:300]).transform(rows[300:320])
    assert np.array_equal(piped.predict(rows[300:320]), alone.predict(scaled))
    copied = clone(classifier(epsilon=3.0))
    assert copied.get_params()["epsilon"] == 3.0
    assert copied.set_params(queries=7).queries == 7


@pytest.mark.parametrize("noise", FAMILIES)
def test_every_family_serves(noise: str) -> None:
    rows, labels = records()
    fitted = classifier(noise=noise).fit(rows[:300], labels[:300])
    assert fitted.certificate_.noise.name == noise
    assert fitted.predict_counts(rows[300:310]).shape == (10, 2)
    assert fitted.privacy_spent_["queries"] == 10


def test_abstentions_are_none() -> None:
    rows, labels = records()
    fitted = classifier(abstain_below=10_000).fit(rows[:300], labels[:300])
    assert fitted.predict(rows[300:303]).tolist() == [None, None, None]


@pytest.mark.parametrize(
    ("rows", "labels", "teachers", "reason"),
    [
        (np.ones((5, 2)), ["a", "b", "a", "b", "a"], None, "fewer"),
        (np.ones((20, 2)), ["a"] * 20, None, "one class"),
        (np.full((20, 2), np.nan), ["a", "b"] * 10, None, "NaN"),
        (np.ones((20, 2)), ["a", "b"] * 10, [1] * 20, "owner"),
        (np.ones((20, 2)), ["a", "b"] * 10, list(range(10)), "owner"),
    ],
)
def test_records_that_cannot_be_dealt_are_refused(
    rows: np.ndarray, labels: list[str], teachers: Any, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        classifier().fit(rows, labels, teachers=teachers)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 2}, "delta"),
        ({"queries": 0}, "queries"),
        ({"n_teachers": 1}, "teachers"),
        ({"noise": "laplace"}, "unknown noise"),
        ({"colluders": 9, "dropouts": 3}, "colluders"),
    ],
)
def test_promises_that_cannot_be_made_are_refused(changes: dict[str, Any], reason: str) -> None:
    rows, labels = records()
    with pytest.raises(InputError, match=reason):
        classifier(**changes).fit(rows, labels)


def test_other_estimators_serve_too() -> None:
    rows, labels = records()
    given = classifier().set_params(estimator=DecisionTreeClassifier(max_depth=3))
    given.fit(rows[:300], labels[:300])
    assert {type(each) for each in given.teachers_} == {DecisionTreeClassifier}
    assert {each.max_depth for each in given.teachers_} == {3}
    plain = PrivateVotingClassifier(cryptography=False, n_teachers=10, queries=5)
    plain.fit(rows[:300], labels[:300])
    assert {type(each[-1]) for each in plain.teachers_} == {SVC}
    for fitted in (given, plain):
        assert set(fitted.predict(rows[300:305])) <= {"ill", "well"}


def test_fit_warns_where_the_majority_class_is_the_better_answer() -> None:
    rows, labels = records()
    mostly_ill = np.where(rows[:, 0] > 1.2, "well", "ill")
    with pytest.warns(NotWorthItWarning, match="Not worth it to an outsider"):
        classifier(epsilon=0.5).fit(rows, mostly_ill)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(epsilon=60.0).fit(rows, labels)


def test_a_verdict_says_what_one_has_without_the_federation_and_spends_nothing() -> None:
    rows, labels = records()
    fitted = classifier().fit(rows[:300], labels[:300])
    verdict = fitted.verdict(rows[300:], labels[300:])
    assert fitted.privacy_spent_["queries"] == 0
    most = max(np.mean(labels[:300] == "ill"), np.mean(labels[:300] == "well"))
    majority = "ill" if np.mean(labels[:300] == "ill") == most else "well"
    assert verdict.accuracy_majority == np.mean(labels[300:] == majority)
    alone = [model.score(rows[300:], labels[300:]) for model in fitted.teachers_]
    assert verdict.accuracy_single == pytest.approx(np.mean(alone))
    assert verdict.accuracy_single_worst == pytest.approx(min(alone))
    assert verdict.worth_it
    assert bool(verdict.advice) == (not verdict.worth_it_to_a_teacher)


def test_the_verdict_on_training_records_leaves_out_the_model_that_saw_them() -> None:
    rows, _ = records()
    coin = np.random.RandomState(5).permutation(np.arange(len(rows)) % 2)
    fitted = PrivateVotingClassifier(
        DecisionTreeClassifier(),
        n_teachers=10,
        epsilon=20,
        queries=10,
        cryptography=False,
        random_state=0,
    ).fit(rows, coin)
    assert all(
        model.score(
            rows[fitted._training.records.owners == place],
            coin[fitted._training.records.owners == place],
        )
        == 1
        for place, model in enumerate(fitted.teachers_)
    )
    verdict = fitted.verdict_
    assert abs(verdict.accuracy_plurality - 0.5) < 0.1
    assert abs(verdict.accuracy_single - 0.5) < 0.1
    assert fitted.verdict_ is verdict


def test_a_label_that_nobody_was_trained_on_has_no_verdict() -> None:
    rows, labels = records()
    fitted = classifier().fit(rows, labels)
    with pytest.raises(InputError, match="training labels"):
        fitted.verdict(rows[:2], ["ill", "zombie"])


def mostly_ill(count: int) -> tuple[np.ndarray, np.ndarray]:
    rows, labels = make_classification(
        count, 5, n_informative=4, n_redundant=0, weights=(0.7,), class_sep=1.5, random_state=3
    )
    return rows, np.array(["ill", "well"])[labels]


def test_advice_trains_models_for_more_votes_and_says_what_they_bring() -> None:
    rows, labels = mostly_ill(2000)
    few = classifier(epsilon=1.0, queries=100, n_teachers=10, votes=1)
    with pytest.warns(NotWorthItWarning):
        few.fit(rows[:1600], labels[:1600])
    for verdict in (few.verdict_, few.verdict(rows[1600:], labels[1600:])):
        assert not verdict.worth_it
        (advice,) = (
            each for each in verdict.advice if (each.asker, each.change) == ("an outsider", "votes")
        )
        assert advice.now == 1
        assert advice.value is not None
    many = classifier(epsilon=1.0, queries=100, n_teachers=10, votes=int(advice.value or 0))
    found = many.fit(rows[:1600], labels[:1600]).verdict(rows[1600:], labels[1600:])
    assert found.worth_it
    assert found.accuracy_expected == pytest.approx(advice.accuracy_expected, abs=0.03)


def test_more_votes_are_no_advice_where_the_promise_covers_a_whole_teacher() -> None:
    rows, labels = mostly_ill(400)
    with pytest.warns(NotWorthItWarning):
        fitted = classifier(epsilon=0.5, unit="teacher").fit(rows, labels)
    assert {each.change for each in fitted.verdict_.advice} == {"queries", "epsilon", "teachers"}


class _Broken(LogisticRegression):
    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: ARG002, N803
        raise RuntimeError("out of order")


class _Stranger(LogisticRegression):
    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        return np.full(len(X), "healthy")


class _Moody(LogisticRegression):
    """Raises on one kind of record only."""

    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        if np.any(X[:, 0] > 1.5):
            raise RuntimeError("too large")
        return super().predict(X)


class _Ignorant(LogisticRegression):
    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        return np.full(len(X), None)


class _Terse(LogisticRegression):
    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        return super().predict(X)[:1]


class _Untagged(BaseEstimator):
    """A regressor that does not say so."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "_Untagged":  # noqa: N803
        self.model_ = LinearRegression().fit(X, y == "ill")
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        return np.asarray(self.model_.predict(X))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (LinearRegression(), "every teacher, LinearRegression, is a regressor"),
        (_Broken(), r"teacher 1 \(_Broken\) cannot predict .* out of order"),
        (_Moody(), r"teacher \d \(_Moody\) cannot predict .* too large"),
        (_Stranger(), r"teacher 1 \(_Stranger\) cannot predict .* 'healthy'"),
        (_Ignorant(), r"teacher 1 \(_Ignorant\) knows no class"),
        (_Terse(), r"teacher 1 \(_Terse\) gives 1 answers for 100 records"),
        (_Untagged(), r"teacher 1 \(_Untagged\) cannot predict .* the model says"),
    ],
)
def test_a_model_that_cannot_vote_is_refused_at_fit_by_name(model: Any, reason: str) -> None:
    rows, labels = records()
    private = PrivateVotingClassifier(model, n_teachers=4, cryptography=False, random_state=0)
    with pytest.raises(InputError, match=reason) as refused:
        private.fit(rows, labels)
    assert refused.value.hint


class _NeedsMany(LogisticRegression):
    """Learns from any number of records, but answers nothing if there were few."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "_NeedsMany":  # noqa: N803
        self.records_ = len(X)
        super().fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        if self.records_ < 50:
            raise RuntimeError(f"{self.records_} records are too few")
        return super().predict(X)


def test_the_models_behind_single_votes_are_tried_as_well() -> None:
    rows, labels = records()
    private = PrivateVotingClassifier(
        _NeedsMany(), n_teachers=4, votes=4, cryptography=False, random_state=0
    )
    with pytest.raises(InputError, match=r"teacher 1 for its vote 1 \(_NeedsMany\).* too few"):
        private.fit(rows, labels)
