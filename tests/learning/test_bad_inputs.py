"""What people hand in wrongly from Python: an exception of ours, one line, and a hint each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dppp
from dppp import PrivateVotingClassifier, PrivateVotingRegressor, StudentClassifier
from dppp.errors import DpppError, InputError, PeerFault, Refusal
from dppp.learning.label_spreading import Spreading
from dppp.learning.models import VoteTable, as_predict
from dppp.learning.votes import count_votes

ROWS = np.random.RandomState(0).normal(size=(60, 3))
LABELS = np.where(ROWS[:, 0] > 0, "a", "b")


FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"])


def fit(
    *,
    rows: Any = ROWS,
    teachers: Any = None,
    persons: Any = None,
    labels: Any = LABELS,
    **given: Any,
) -> Any:
    settings = {"n_teachers": 4, "queries": 5, "noise": "skellam", "cryptography": False, **given}
    settings = {"estimator": LogisticRegression(), "random_state": 0, **settings}
    return PrivateVotingClassifier(**settings).fit(rows, labels, teachers=teachers, persons=persons)


def regress(numbers: Any) -> Any:
    return PrivateVotingRegressor(low=0, high=1, n_teachers=4, queries=5).fit(ROWS, numbers)


def ask_frame(**changed: Any) -> Any:
    table = FRAME[["a"]].assign(
        when=pd.date_range("2020-01-01", periods=60), whole=np.arange(60, dtype=np.uint8)
    )
    model = make_pipeline(make_column_transformer((StandardScaler(), ["a", "whole"])), SVC())
    return fit(rows=table, estimator=model).predict(table[:2].assign(**changed))


def calibrate(**given: Any) -> Any:
    settings = {"epsilon": 1, "delta": 1e-5, "teachers": 20, **given}
    return dppp.calibrate(settings.pop("noise", "skellam"), **settings)


def learn(teachers: Any, *, y: Any = None, graph_features: Any = None, **given: Any) -> Any:
    settings = {"labels": 5, "classes": ["a", "b"], "random_state": 0, **given}
    student = StudentClassifier(teachers, **settings)
    return student.fit(ROWS, y, graph_features=graph_features)


def say_a(rows: Any) -> list[str]:
    return ["a"] * len(rows)


def federate(**given: Any) -> Any:
    settings = {
        "name": "fruit",
        "class_names": ["apple", "pear"],
        "features": ["weight"],
        "certificate": calibrate(teachers=4, classes=2),
        "models": [lambda rows: [1] * len(rows)] * 4,
        **given,
    }
    return dppp.create_federation(**settings)


def ask(rows: Any) -> Any:
    parties = federate()
    deliver = dppp.in_process(parties.teachers)
    return dppp.Federation(aggregator=parties.aggregator, deliver=deliver).ask(rows)


def noise(family: Any, **parameters: Any) -> Any:
    return family(**parameters)


def spent_estimator() -> Any:
    private = fit()
    private.predict(ROWS[:5])
    return private


SKELLAM = dppp.Skellam(share_variance=9.0, shares=4)

CALLS: list[tuple[str, Callable[[], Any], type[DpppError], str]] = [
    # parameters of the estimator
    ("epsilon is text", lambda: fit(epsilon="8"), InputError, "epsilon"),
    ("epsilon is missing", lambda: fit(epsilon=None), InputError, "epsilon"),
    ("epsilon is a truth", lambda: fit(epsilon=True), InputError, "epsilon"),
    ("epsilon is not a number", lambda: fit(epsilon=np.nan), InputError, "epsilon"),
    ("epsilon is negative", lambda: fit(epsilon=np.float32(-1)), InputError, "epsilon"),
    ("epsilon is past floats", lambda: fit(epsilon=10**400), InputError, "epsilon"),
    ("delta is zero", lambda: fit(delta=0), InputError, "delta"),
    ("delta is one", lambda: fit(delta=1), InputError, "delta"),
    ("delta is a list", lambda: fit(delta=[1e-5]), InputError, "delta"),
    ("queries are none", lambda: fit(queries=0), InputError, "queries"),
    ("queries are a fraction", lambda: fit(queries=2.5), InputError, "queries"),
    ("queries are missing", lambda: fit(queries=None), InputError, "queries"),
    ("one teacher", lambda: fit(n_teachers=1), InputError, "n_teachers"),
    ("teachers are text", lambda: fit(n_teachers="4"), InputError, "n_teachers"),
    ("teachers are a float", lambda: fit(n_teachers=np.float64(4)), InputError, "n_teachers"),
    ("colluders are negative", lambda: fit(colluders=-1), InputError, "colluders"),
    ("everybody colludes", lambda: fit(colluders=4), InputError, "colluders"),
    ("too many vanish", lambda: fit(dropouts=2), InputError, "threshold"),
    ("noise is unknown", lambda: fit(noise="laplace"), InputError, "unknown noise"),
    ("noise is a number", lambda: fit(noise=3), InputError, "unknown noise"),
    ("cryptosystem is unknown", lambda: fit(cryptosystem="rsa"), InputError, "cryptosystem"),
    ("cryptography is text", lambda: fit(cryptography="no"), InputError, "cryptography"),
    ("no votes", lambda: fit(votes=0), InputError, "votes"),
    ("votes past records", lambda: fit(votes=10**6), InputError, "more than the records"),
    ("votes are text", lambda: fit(votes="many"), InputError, "votes"),
    ("votes of a teacher", lambda: fit(votes=3, unit="teacher"), InputError, "unit teacher"),
    ("unit is unknown", lambda: fit(unit="planet"), InputError, "unknown unit"),
    ("persons are missing", lambda: fit(unit="person"), InputError, "person"),
    ("abstain below text", lambda: fit(abstain_below="x"), InputError, "abstain_below"),
    ("abstain below nothing", lambda: fit(abstain_below=-1), InputError, "abstain_below"),
    ("random state is text", lambda: fit(random_state="x"), InputError, "random_state"),
    ("random state is negative", lambda: fit(random_state=-1), InputError, "random_state"),
    # estimators
    ("estimator is a number", lambda: fit(estimator=3), InputError, "estimator"),
    ("estimator is a class", lambda: fit(estimator=SVC), InputError, "SVC"),
    ("estimator cannot predict", lambda: fit(estimator=StandardScaler()), InputError, "predict"),
    ("a regressor", lambda: fit(estimator=LinearRegression()), InputError, "regressor"),
    ("cannot be trained", lambda: fit(estimator=SVC(C=-1)), InputError, "cannot be trained"),
    # records
    ("one class", lambda: fit(labels=["a"] * 60), InputError, "one class"),
    ("fewer records than teachers", lambda: fit(n_teachers=61), InputError, "fewer"),
    ("owners are too few", lambda: fit(teachers=[1, 2]), InputError, "owner"),
    ("one owner", lambda: fit(teachers=[1] * 60), InputError, "owner"),
    ("persons are too few", lambda: fit(persons=[1, 2]), InputError, "persons must be"),
    (
        "a person at two teachers",
        lambda: fit(unit="person", teachers=np.arange(60) % 4, persons=[7] * 60),
        InputError,
        "another teacher",
    ),
    ("texts in an array", lambda: fit(rows=ROWS.astype(str) + "x"), InputError, "DataFrame"),
    ("a list of texts", lambda: fit(rows=["red"] * 60), InputError, "DataFrame"),
    ("a column", lambda: fit(rows=FRAME["a"].astype(str) + "x"), InputError, "DataFrame"),
    ("no columns", lambda: fit(rows=FRAME[[]]), InputError, "no columns"),
    ("a column twice", lambda: fit(rows=FRAME[["a", "b", "a"]]), InputError, "same name: 'a'"),
    ("names of two levels", lambda: fit(rows=pd.concat({"x": FRAME}, axis=1)), InputError, "level"),
    ("a column of lists", lambda: fit(rows=FRAME.assign(c=[[1]] * 60)), InputError, "'c' holds"),
    ("infinity in a frame", lambda: fit(rows=FRAME / 0), InputError, "'a' holds infinity"),
    ("no label", lambda: fit(rows=FRAME, labels=[None, *LABELS[1:]]), InputError, "without a lab"),
    ("labels are amounts", lambda: fit(labels=ROWS[:, 0]), InputError, "continuous"),
    ("numbers are texts", lambda: regress(LABELS), InputError, "y holds texts"),
    # asking
    ("text for a number", lambda: ask_frame(a="x"), InputError, "'a' held numbers"),
    ("text for a time", lambda: ask_frame(when="soon"), InputError, "'when' held times"),
    ("infinity is asked", lambda: ask_frame(a=np.inf), InputError, "finite"),
    ("a number is missing", lambda: ask_frame(whole=[None, 1]), InputError, "'whole' was never"),
    ("past the budget", lambda: spent_estimator().predict(ROWS), Refusal, "queries=5"),
    ("a score past it", lambda: spent_estimator().score(ROWS[9:], LABELS[9:]), Refusal, "queries"),
    ("y is too short", lambda: fit().score(ROWS, LABELS[:3]), InputError, "y must be one"),
    ("an unknown label", lambda: fit().verdict(ROWS[:1], ["c"]), InputError, "label"),
    ("a verdict without labels", lambda: fit().verdict(ROWS, []), InputError, "one for each"),
    # students
    ("no teachers", lambda: learn(None), InputError, "no teachers"),
    ("labels from outside", lambda: learn(say_a, y=LABELS), InputError, "outside"),
    ("no labels", lambda: learn(say_a, labels=0), InputError, "labels"),
    ("labels are text", lambda: learn(say_a, labels="5"), InputError, "labels"),
    ("more labels than records", lambda: learn(say_a, labels=61), InputError, "61"),
    ("no classes", lambda: learn(say_a, classes=None), InputError, "classes"),
    ("another class", lambda: learn(say_a, classes=["c", "d"]), InputError, "outside the classes"),
    ("too few answers", lambda: learn(lambda _: ["a"]), InputError, "answers"),
    ("only abstentions", lambda: learn(lambda rows: [None] * len(rows)), InputError, "abstention"),
    ("no graph", lambda: learn(say_a, graph_features=ROWS[:3]), InputError, "graph_features"),
    ("no neighbours", lambda: learn(say_a, spreading=Spreading(neighbours=0)), InputError, "neigh"),
    # noise and promises
    ("no such family", lambda: calibrate(noise="uniform"), InputError, "unknown noise"),
    ("no such calibration", lambda: calibrate(calibration="x"), InputError, "calibration"),
    ("one class to vote on", lambda: calibrate(classes=1), InputError, "classes"),
    (
        "a variance of zero",
        lambda: noise(dppp.Skellam, share_variance=0),
        InputError,
        "share_variance",
    ),
    (
        "a text as variance",
        lambda: noise(dppp.Skellam, share_variance="9"),
        InputError,
        "share_variance",
    ),
    ("a ratio of one", lambda: dppp.Polya(shape=1, ratio=1.0), InputError, "ratio"),
    ("half a toss", lambda: noise(dppp.Binomial, total_tosses=0.5), InputError, "total_tosses"),
    ("no shares", lambda: dppp.DiscreteGaussian(share_sigma=1, shares=0), InputError, "shares"),
    ("nothing spent", lambda: dppp.account([], delta=1e-5), InputError, "nothing"),
    ("spent on nothing", lambda: dppp.Spending(noise=SKELLAM, queries=0), InputError, "queries"),
    ("no such scope", lambda: dppp.delta_at(SKELLAM, 1, scope="x"), InputError, "scope"),
    ("no such teachers", lambda: dppp.Trust.with_defaults(1), InputError, "teachers"),
    # models, votes, federations
    ("a model of no kind", lambda: as_predict(7, ["a", "b"]), InputError, "cannot vote"),
    ("no model file", lambda: as_predict("/none.onnx", ["a"]), InputError, "none.onnx"),
    ("a table too short", lambda: VoteTable(ROWS, ["a"]).predict(ROWS), InputError, "labels"),
    ("votes are a number", lambda: count_votes(7), InputError, "table"),
    ("no votes at all", lambda: count_votes([]), InputError, "no query"),
    ("ragged votes", lambda: count_votes([[0, 1], [0]]), InputError, "query 2"),
    ("a negative class", lambda: count_votes([[0, -1]]), InputError, "class"),
    ("a missing vote", lambda: count_votes([[0, None]]), InputError, "missing"),
    ("labels of other rows", lambda: count_votes([[0, 1]], [0, 1]), InputError, "labels"),
    ("too few models", lambda: federate(models=[say_a]), InputError, "models of 1"),
    ("one class in a task", lambda: federate(class_names=["x"]), InputError, "two names"),
    ("no features", lambda: federate(features=[]), InputError, "feature"),
    ("a row too wide", lambda: ask([[1.0, 2.0]]), InputError, "rows of 1 numbers"),
    ("a row of text", lambda: ask([["red"]]), InputError, "number"),
    ("no rows", lambda: ask([]), InputError, "rows"),
    ("a row without an end", lambda: ask([[np.inf]]), InputError, "finite"),
    ("not a transcript", lambda: dppp.verify_transcript(b"none"), PeerFault, "form"),
]


@pytest.mark.parametrize(("call", "kind", "word"), [pytest.param(*c[1:], id=c[0]) for c in CALLS])
def test_a_bad_value_is_refused_in_a_line_with_a_hint(
    call: Callable[[], Any], kind: type[DpppError], word: str
) -> None:
    with pytest.raises(DpppError) as refusal:
        call()
    assert isinstance(refusal.value, kind)
    assert word in refusal.value.message
    assert "\n" not in refusal.value.message
    assert refusal.value.hint


def test_there_are_sixty_of_them() -> None:
    assert len({name for name, *_ in CALLS}) == len(CALLS) >= 60


def test_what_is_wrong_with_records_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="one class"):
        fit(labels=["a"] * 60)
