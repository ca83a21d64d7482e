import copy
import functools
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.utils.estimator_checks import check_estimator

from dppp.errors import BudgetNotCopied, InputError, QueriesExhausted
from dppp.learning.regressor import REGRESSORS_EXPECTED_FAILED_CHECKS, PrivateVotingRegressor

LOW, HIGH = 0.0, 30.0


@functools.cache
def records() -> tuple[np.ndarray, np.ndarray]:
    rows, numbers = make_friedman1(460, 5, noise=1.0, random_state=3)
    return rows, numbers


def regressor(**changes: Any) -> PrivateVotingRegressor:
    given = {
        "estimator": Ridge(),
        "low": LOW,
        "high": HIGH,
        "n_teachers": 10,
        "epsilon": 20.0,
        "delta": 1e-4,
        "queries": 50,
        "noise": "skellam",
        "cryptography": False,
        "random_state": 0,
        **changes,
    }
    return PrivateVotingRegressor(**given)


def fitted(**changes: Any) -> PrivateVotingRegressor:
    rows, numbers = records()
    return regressor(**changes).fit(rows[:400], numbers[:400])


@pytest.mark.filterwarnings("ignore::dppp.errors.RecordsUsedAgainWarning")  # its checks refit
@pytest.mark.filterwarnings("ignore::dppp.errors.NotWorthItWarning")  # on a handful of records
def test_scikit_learns_own_checks_pass_but_for_those_listed() -> None:
    checked = regressor(
        low=-4,
        high=4,
        n_teachers=3,
        epsilon=50.0,
        delta=1e-2,
        queries=400,
        colluders=0,
        dropouts=0,
    )
    results = check_estimator(
        checked,
        expected_failed_checks=REGRESSORS_EXPECTED_FAILED_CHECKS,
        on_skip=None,
        on_fail="raise",
    )
    failed = {each["check_name"] for each in results if each["status"] == "xfail"}
    assert failed == set(REGRESSORS_EXPECTED_FAILED_CHECKS)


def test_a_prediction_is_the_mean_of_all_votes_within_its_stated_error() -> None:
    rows, _ = records()
    private = fitted(votes=4)
    means, errors = private.predict_with_error(rows[400:450])
    votes = np.array(
        [model.predict(rows[400:450]) for models in private.shard_models_ for model in models]
    )
    clear = np.clip(votes, LOW, HIGH).mean(axis=0)
    assert np.all(errors == private.standard_error_)
    # Rounding to steps adds at most half a step; six deviations are passed once in 10^7 answers.
    assert np.all(np.abs(means - clear) < 6 * private.standard_error_ + 0.15)
    spread = (means - clear)[(means > LOW) & (means < HIGH)].std()
    assert 0.5 * private.standard_error_ < spread < 1.6 * private.standard_error_
    assert private.privacy_spent_["left"] == 0
    assert np.array_equal(private.predict(rows[400:450]), means)
    with pytest.raises(QueriesExhausted):
        private.predict(rows[:1])


def test_the_real_protocol_has_the_same_votes_and_noise() -> None:
    rows, _ = records()
    private = fitted(cryptography=True, n_teachers=5, queries=8, votes=4)
    means, _ = private.predict_with_error(rows[400:408])
    votes = np.array(
        [model.predict(rows[400:408]) for models in private.shard_models_ for model in models]
    )
    clear = np.clip(votes, LOW, HIGH).mean(axis=0)
    assert np.all(np.abs(means - clear) < 6 * private.standard_error_ + 0.15)
    assert private.certificate_.certified
    assert private.certificate_.to_json()["moved_by"] == 100


def test_a_score_is_r_squared_of_what_was_released() -> None:
    rows, numbers = records()
    private = fitted()
    found = private.score(rows[400:450], numbers[400:450])
    assert found == r2_score(numbers[400:450], private.predict(rows[400:450]))


def test_one_record_moves_a_sum_by_no_more_than_the_levels() -> None:
    """Whatever it says: the certificate is for one count that moves by that."""
    rows, numbers = records()
    changed = numbers.copy()
    changed[7] = 1e9
    before, after = fitted(votes=3), regressor(votes=3).fit(rows[:400], changed[:400])
    counts = [each.predict_counts(rows[400:440])[:, 0] for each in (before, after)]
    assert 0 < np.abs(counts[0] - counts[1]).max() <= 100


class _Broken(Ridge):
    """Answers what it was trained on, and nothing else."""

    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        if np.any(X[:, 0] > 5):
            raise RuntimeError("out of order")
        return super().predict(X)


def test_a_model_that_fails_votes_for_the_middle() -> None:
    strange = np.full((1, 5), 9.0)
    private = fitted(estimator=_Broken(), epsilon=40.0, votes=4)
    assert abs(private.predict(strange)[0] - 15.0) < 6 * private.standard_error_


def test_the_range_must_be_given_and_never_comes_from_the_records() -> None:
    rows, numbers = records()
    with pytest.raises(InputError, match="range of the number is not given") as refused:
        PrivateVotingRegressor(n_teachers=10, cryptography=False).fit(rows, numbers)
    assert "never from the records" in str(refused.value.hint)
    with pytest.raises(InputError, match="the lower one first"):
        regressor(low=3, high=3).fit(rows, numbers)
    with pytest.raises(InputError, match="levels"):
        regressor(levels=0).fit(rows, numbers)
    with pytest.raises(InputError, match="is a classifier"):
        regressor(estimator=LogisticRegression()).fit(rows, numbers)


def test_votes_are_worked_out_from_public_numbers_alone() -> None:
    rows, numbers = records()
    one, other = fitted(), regressor().fit(rows[:400], 20 + 0 * numbers[:400])
    assert one.votes_ == other.votes_
    assert one.votes_.per_teacher == (1,) * 10
    assert "30 records" in one.votes_.reason
    many = regressor(votes="auto", n_teachers=4, epsilon=30.0, queries=2, dropouts=0)
    chosen = many.fit(rows[:400], numbers[:400])
    assert chosen.votes_.per_teacher == (3,) * 4
    assert "standard error of 3% of the range" in chosen.votes_.reason


def test_it_is_cloned_and_never_copied_once_fitted() -> None:
    private = fitted()
    assert clone(private).get_params()["high"] == HIGH
    for make in (pickle.dumps, copy.deepcopy):
        with pytest.raises(BudgetNotCopied, match="PrivateVotingRegressor"):
            make(private)
    assert "left" in private._repr_html_()
    assert "simulated" in repr(private)


def test_the_verdict_is_the_average_over_all_noise() -> None:
    rows, numbers = records()
    private = fitted(votes=3, n_teachers=4)
    verdict = private.verdict(rows[400:], numbers[400:])
    votes = np.array(
        [model.predict(rows[400:]) for models in private.shard_models_ for model in models]
    )
    clear = np.clip(votes, LOW, HIGH).mean(axis=0)
    error = np.sqrt(np.mean((clear - numbers[400:]) ** 2))
    assert verdict.error_of(verdict.accuracy_plurality) == pytest.approx(error, abs=0.1)
    expected = np.sqrt(error**2 + private.standard_error_**2)  # all but for clipping
    assert verdict.error_of(verdict.accuracy_expected) == pytest.approx(expected, rel=0.05)
    assert private.privacy_spent_["queries"] == 0
    found = verdict.to_json()
    assert "accuracy_expected" not in found
    assert found["error_single"] < found["error_majority"]


def test_tables_sparse_rows_teachers_and_persons_are_taken() -> None:
    pandas = pytest.importorskip("pandas")
    rows, numbers = records()
    frame = pandas.DataFrame(rows[:400], columns=list("abcde"))
    frame["ward"] = np.where(rows[:400, 0] > 0.5, "north", "south")
    told = regressor(estimator=None, n_teachers=4).fit(frame, numbers[:400])
    assert told.predict(frame[:2]).shape == (2,)
    owners = np.repeat(np.arange(4), 100)
    persons = np.arange(400) // 2
    private = regressor(n_teachers=4, unit="person", votes=3)
    private.fit(sparse.csr_matrix(rows[:400]), numbers[:400], teachers=owners, persons=persons)
    assert private.certificate_.unit == "person"
    assert private.predict(rows[400:402]).shape == (2,)
