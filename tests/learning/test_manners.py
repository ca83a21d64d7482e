"""What users of scikit-learn expect of an estimator, and how far a budget lets it."""

import copy
import functools
import io
import pickle
import warnings
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from dppp.errors import (
    BudgetNotCopied,
    InputError,
    PartlyScoredWarning,
    QueriesExhausted,
    RecordsUsedAgainWarning,
)
from dppp.learning.estimator import PrivateVotingClassifier
from dppp.learning.folds import privacy_spent_over_folds
from dppp.learning.seeds import seed_every_part
from dppp.learning.student import StudentClassifier
from dppp.privacy.accounting import Spending, account


@functools.cache
def records() -> tuple[np.ndarray, np.ndarray]:
    rows, labels = make_classification(400, 5, n_informative=4, n_redundant=0, random_state=3)
    return rows, np.array(["ill", "well"])[labels]


def classifier(**changes: Any) -> PrivateVotingClassifier:
    given = {
        "estimator": LogisticRegression(),
        "n_teachers": 10,
        "epsilon": 20.0,
        "delta": 1e-4,
        "queries": 50,
        "noise": "skellam",
        "cryptography": False,
        "random_state": 0,
        **changes,
    }
    return PrivateVotingClassifier(**given)


def fitted(**changes: Any) -> PrivateVotingClassifier:
    rows, labels = records()
    return classifier(**changes).fit(rows[:300], labels[:300])


@pytest.mark.parametrize("cryptography", [False, True])
def test_numbers_may_be_numpys(cryptography: bool) -> None:
    rows, _ = records()
    plain = fitted(colluders=2, dropouts=1, votes=2, abstain_below=1, queries=4)
    given = fitted(
        n_teachers=np.int64(10),
        epsilon=np.float32(20),
        delta=np.float64(1e-4),
        queries=np.int32(4),
        colluders=np.uint8(2),
        dropouts=np.int16(1),
        votes=np.int64(2),
        abstain_below=np.int64(1),
        cryptography=np.bool_(cryptography),
        random_state=np.int64(0),
        n_jobs=np.int64(1),
    )
    assert given.certificate_.noise == plain.certificate_.noise
    assert given.certificate_.promise == plain.certificate_.promise
    assert len(given.predict(rows[:4])) == 4
    assert given.privacy_spent_["left"] == 0
    assert type(given.certificate_.promise.epsilon) is float


def test_a_whole_epsilon_may_be_an_integer_of_numpy() -> None:
    assert fitted(epsilon=np.int64(20)).certificate_ == fitted(epsilon=20).certificate_


class _SeedKeeper(LogisticRegression):
    def __init__(self, random_state: Any = None) -> None:
        super().__init__(random_state=random_state)


def test_a_seed_reaches_every_part_of_a_model() -> None:
    inner = _SeedKeeper()
    choice = DecisionTreeClassifier()
    splitter = StratifiedKFold(3, shuffle=True)
    still = KFold(3)
    search = GridSearchCV(
        make_pipeline(
            StandardScaler(), VotingClassifier([("a", inner), ("b", BaggingClassifier(SVC()))])
        ),
        {"votingclassifier__a": [choice, RandomForestClassifier()]},
        cv=splitter,
    )
    assert seed_every_part(search, 7) is search
    names = [name for name in search.get_params() if name.endswith("random_state")]
    assert len(names) == 3
    assert {search.get_params()[name] for name in names} == {7}
    assert [each.random_state for each in search.param_grid["votingclassifier__a"]] == [7, 7]
    assert splitter.random_state == 7
    seed_every_part(GridSearchCV(inner, {}, cv=still), 7)
    assert still.random_state is None


def test_a_seed_repeats_teachers_whose_models_draw_deep_inside() -> None:
    rows, _ = records()
    model = GridSearchCV(
        make_pipeline(StandardScaler(), SGDClassifier(max_iter=5, tol=None)),
        {"sgdclassifier__alpha": [1e-3, 1e-1]},
        cv=StratifiedKFold(2, shuffle=True),
    )
    once, again = (fitted(estimator=model, n_teachers=4) for _ in range(2))
    for one, other in zip(once.teachers_, again.teachers_, strict=True):
        assert np.array_equal(one.decision_function(rows), other.decision_function(rows))
    assert model.cv.random_state is None


def test_a_score_counts_an_abstention_as_not_right() -> None:
    rows, labels = records()
    asked, right = rows[300:350], labels[300:350]
    private = fitted(abstain_below=8)
    predicted = private.predict(asked)
    abstained = sum(each is None for each in predicted)
    assert 0 < abstained < 50
    hits = sum(one == other for one, other in zip(predicted, right, strict=True))
    assert private.score(asked, right) == hits / 50
    weights = np.where([each is None for each in predicted], 0, 1)
    assert private.score(asked, right, sample_weight=weights) == hits / (50 - abstained)
    assert fitted(abstain_below=10_000).score(asked, right) == 0


class _Counting(LogisticRegression):
    asked = 0

    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        type(self).asked += 1
        return super().predict(X)


@pytest.mark.parametrize("cryptography", [False, True])
def test_past_the_budget_no_model_runs_and_the_refusal_names_queries(cryptography: bool) -> None:
    rows, _ = records()
    private = fitted(estimator=_Counting(), queries=5, cryptography=cryptography)
    private.predict(rows[300:302])
    before = _Counting.asked
    reason = r"398 rows need a query each, and 3 of queries=5 are left"
    with pytest.raises(QueriesExhausted, match=reason) as refusal:
        private.predict(rows)
    assert _Counting.asked == before
    assert "task" not in str(refusal.value)
    assert "queries=" in str(refusal.value.hint)
    assert private.privacy_spent_["queries"] == 2
    assert len(private.predict(rows[300:305])) == 5
    with pytest.raises(QueriesExhausted, match="1 row needs a query, and 0 of queries=5 are left"):
        private.predict(rows[:1])


def test_a_score_past_the_budget_is_of_the_rows_that_it_pays_for() -> None:
    rows, labels = records()
    private = fitted(queries=10)
    known = private.predict(rows[300:304])
    with pytest.warns(PartlyScoredWarning, match="the score is of 10 rows"):
        score = private.score(rows[300:], labels[300:])
    assert private.privacy_spent_["left"] == 0
    # 4 known ones, and 6 of the other 96, the first and the last among them
    places = [0, 1, 2, 3, *(4 + np.linspace(0, 95, 6).astype(int))]
    answers = private.predict(rows[300:][places])
    assert np.array_equal(answers[:4], known)
    assert score == np.mean(answers == labels[300:][places])
    with pytest.raises(QueriesExhausted, match="queries=10"):
        private.score(rows[:5], labels[:5])


def test_a_search_over_queries_has_a_score_for_every_choice() -> None:
    rows, labels = records()
    search = GridSearchCV(
        classifier(), {"queries": np.array([5, 40, 200])}, cv=4, error_score="raise"
    )
    with pytest.warns(PartlyScoredWarning):
        search.fit(rows, labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartlyScoredWarning)
        scores = cross_val_score(classifier(queries=20), rows, labels)
    assert np.isfinite(scores).all()


def test_every_fold_counts_and_the_sum_is_that_of_the_record_that_told_most() -> None:
    rows, labels = records()
    results = cross_validate(
        make_pipeline(StandardScaler(), classifier(queries=100)),
        rows,
        labels,
        cv=4,
        return_estimator=True,
        return_indices=True,
    )
    spent = privacy_spent_over_folds(results)
    assert {key: spent[key] for key in ("folds", "queries", "delta")} == {
        "folds": 3,
        "queries": 300,
        "delta": 1e-4,
    }
    noise = results["estimator"][0][-1].certificate_.noise
    assert spent["epsilon"] == pytest.approx(account([Spending(noise=noise, queries=300)], 1e-4))
    assert spent["epsilon"] > 20


def test_folds_that_asked_nothing_cost_nothing_and_others_are_refused() -> None:
    private = fitted()
    results = {"estimator": [private], "indices": {"train": [np.arange(300)]}}
    assert privacy_spent_over_folds(results)["epsilon"] == 0
    with pytest.raises(InputError, match="SVC spends no privacy budget"):
        privacy_spent_over_folds({**results, "estimator": [SVC()]})
    with pytest.raises(InputError, match="not among the results"):
        privacy_spent_over_folds({"estimator": [private]})


def test_a_second_fit_warns_of_what_was_spent_before() -> None:
    rows, labels = records()
    private = fitted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private.fit(rows[:300], labels[:300])
    private.predict(rows[300:310])
    with pytest.warns(RecordsUsedAgainWarning, match="on 10 answers before this fit"):
        private.fit(rows[:300], labels[:300])


@pytest.mark.parametrize("cryptography", [False, True])
@pytest.mark.parametrize(
    "copying",
    [pickle.dumps, copy.copy, copy.deepcopy, lambda each: joblib.dump(each, io.BytesIO())],
)
def test_a_fitted_classifier_is_not_copied_by_a_named_reason(
    copying: Any, cryptography: bool
) -> None:
    private = fitted(queries=5, cryptography=cryptography)
    with pytest.raises(BudgetNotCopied, match="the copy would spend the same budget once more"):
        copying(private)
    assert clone(private).get_params()["queries"] == 5


def test_a_classifier_before_fit_is_pickled() -> None:
    restored = pickle.loads(pickle.dumps(classifier(queries=7)))  # noqa: S301
    assert restored.queries == 7


def test_a_fitted_student_is_saved_without_its_teachers() -> None:
    rows, _ = records()
    teachers = fitted()
    student = StudentClassifier(teachers, labels=20, random_state=0).fit(rows[300:])
    written = pickle.dumps(student)
    assert b"PrivateVoting" not in written
    assert b"Ledger" not in written
    restored = pickle.loads(written)  # noqa: S301
    assert restored.teachers is None
    assert student.teachers is teachers
    assert np.array_equal(restored.predict(rows), student.predict(rows))
    with pytest.raises(InputError, match="saved without them"):
        restored.fit(rows[300:])
    assert restored.set_params(teachers=teachers).fit(rows[300:]).asked_.tolist() == (
        student.asked_.tolist()
    )
    with pytest.raises(BudgetNotCopied):
        pickle.dumps(StudentClassifier(teachers))


def test_a_students_seed_reaches_its_estimator() -> None:
    rows, labels = records()
    known = {row.tobytes(): label for row, label in zip(rows, labels, strict=True)}

    def ask(asked: np.ndarray) -> list[str]:
        return [known[row.tobytes()] for row in asked]

    forest = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    once, again, other = (
        StudentClassifier(
            ask, labels=20, classes=["ill", "well"], estimator=forest, random_state=seed
        ).fit(rows)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(once.estimator_.predict_proba(rows), again.estimator_.predict_proba(rows))
    assert not np.array_equal(
        once.estimator_.predict_proba(rows), other.estimator_.predict_proba(rows)
    )


def test_a_notebook_shows_what_is_promised_spent_and_left() -> None:
    rows, _ = records()
    assert "nothing: not fitted" in classifier()._repr_html_()
    private = fitted()
    private.predict(rows[300:310])
    shown = private._repr_mimebundle_()["text/html"]
    assert private._verdict is None, "a look at it must not work out a verdict"
    spent = private.privacy_spent_["epsilon"]
    assert "ε = 20.0, δ = 0.0001 for 50 queries" in shown
    assert f"ε = {spent:.3g} on 10 answers" in shown
    assert "40 of 50 queries" in shown
    assert "simulated" in shown
    assert "sk-top-container" in shown
    assert "simulated" not in classifier(cryptography=True)._repr_html_().split("</table>")[0]
    assert "&lt;b&gt;" in classifier(unit="<b>")._repr_html_().split("</table>")[0]


def test_scores_and_budgets_hold_for_data_frames_too() -> None:
    pandas = pytest.importorskip("pandas")
    rows, labels = records()
    table = pandas.DataFrame({"number": rows[:, 0], "side": np.where(rows[:, 1] > 0, "up", "down")})
    private = classifier(estimator=None, queries=10).fit(table[:300], labels[:300])
    with pytest.warns(PartlyScoredWarning, match="the score is of 10 rows"):
        assert 0 <= private.score(table[300:], labels[300:]) <= 1
    with pytest.raises(QueriesExhausted, match="queries=10"):
        private.predict(table[:20])
    assert private.privacy_spent_["queries"] == 10
