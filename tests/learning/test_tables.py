"""Tables as data scientists have them: DataFrames with texts and gaps, and sparse matrices."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from dppp import PrivateVotingClassifier
from dppp.errors import InputError
from dppp.learning.default_model import TYPES, default_model
from dppp.learning.frames import frame_of, read_frame
from dppp.protocol.columns import Column, ColumnType
from dppp.protocol.inputs import decode_rows, encode_rows, join_rows

NOTES = ("stable, no complaints", "chest pain at night", "cough since monday")


def mixed(count: int = 400) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    source = np.random.default_rng(3)
    age = source.integers(18, 80, count).astype(float)
    ward = source.choice(["north", "south", "east"], count).astype(object)
    note = source.choice(NOTES, count).astype(object)
    is_ill = age + 40 * (note == NOTES[1]) + 15 * (ward == "north") > 65
    frame = pd.DataFrame(
        {
            "age": np.where(source.random(count) < 0.1, np.nan, age),
            "ward": pd.Categorical(ward),
            "note": note,
            "admitted": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(source.integers(0, 300, count), unit="D"),
            "smokes": source.random(count) < 0.3,
            "visits": source.integers(0, 9, count),
        }
    )
    frame.loc[source.random(count) < 0.1, "ward"] = None
    frame.loc[source.random(count) < 0.1, "note"] = None
    return frame, np.where(is_ill, "ill", "well")


def transformer() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "visits"]),
            ("values", OneHotEncoder(handle_unknown="ignore"), ["ward", "note", "smokes"]),
        ]
    )


def classifier(estimator: Any = None, **more: Any) -> PrivateVotingClassifier:
    given = {"n_teachers": 8, "epsilon": 20, "queries": 60, "random_state": 0, **more}
    return PrivateVotingClassifier(estimator, **{"cryptography": False, **given})


@pytest.mark.parametrize("cryptography", [False, True])
def test_a_column_transformer_in_the_estimator_works_on_a_data_frame(cryptography: bool) -> None:
    frame, labels = mixed()
    model = make_pipeline(transformer(), LogisticRegression())
    private = classifier(model, cryptography=cryptography).fit(frame[40:], labels[40:])
    assert private.n_features_in_ == 6
    assert list(private.feature_names_in_) == list(frame.columns)
    assert np.mean(private.predict(frame[:40]) == labels[:40]) > 0.7
    assert private.privacy_spent_["queries"] == 40
    fitted = [each[0].named_transformers_["values"].categories_ for each in private.teachers_]
    assert all(len(each) == 3 for each in fitted)
    assert private.verdict(frame[:40], labels[:40]).to_json()["accuracy_plurality"] > 0.8
    assert private.verdict_.to_json()["accuracy_plurality"] > 0.8


def test_the_default_model_takes_texts_categories_dates_bools_and_gaps() -> None:
    frame, labels = mixed()
    private = classifier().fit(frame[60:], labels[60:])
    found = private.verdict(frame[:60], labels[:60]).to_json()
    assert found["accuracy_plurality"] > found["accuracy_majority"] + 0.1
    assert len(private.predict(frame[:60])) == 60


def test_models_get_what_they_were_trained_on() -> None:
    """Names, types and gaps of a DataFrame, to the bit, in rows that went through the protocol."""
    frame, _ = mixed()
    made, form = read_frame(frame, simple=False)
    assert [str(dtype) for dtype in made.dtypes] == [str(dtype) for dtype in frame.dtypes]
    encoded = join_rows(encode_rows(form.to_inputs(frame), form.columns))
    back = form.restore(decode_rows(encoded, len(frame), form.columns))
    pd.testing.assert_frame_equal(back, made)


class Recorder(SVC):
    """Keeps what it was fitted on and asked about."""

    seen: list[Any] = []  # noqa: RUF012 - of all copies

    def fit(self, X: Any, y: Any) -> "Recorder":  # noqa: N803
        self.seen.append(X)
        super().fit(np.asarray(X), y)
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        self.seen.append(X)
        return super().predict(np.asarray(X))


def test_numbers_are_an_array_or_the_data_frame_that_was_given() -> None:
    rows = np.linspace(-1, 1, 200).reshape(100, 2)
    labels = np.where(rows[:, 0] > 0, "a", "b")
    for given, kind in ((rows, np.ndarray), (pd.DataFrame(rows, columns=["u", "v"]), pd.DataFrame)):
        Recorder.seen.clear()
        classifier(Recorder(), cryptography=True).fit(given, labels).predict(given[:3])
        assert {type(each) for each in Recorder.seen} == {kind}


def test_the_default_model_is_the_same_for_numbers_in_an_array_and_in_a_data_frame() -> None:
    rows = np.random.default_rng(1).normal(size=(200, 3))
    labels = rows[:, 0] * rows[:, 1] > 0
    of_array, of_frame = (
        classifier().fit(given[40:], labels[40:]).predict_counts(given[:40])
        for given in (rows, pd.DataFrame(rows))
    )
    assert np.array_equal(of_array, of_frame)


def test_a_number_that_the_type_in_training_cannot_hold_is_not_made_another() -> None:
    frame = pd.DataFrame({"visits": np.arange(100, dtype=np.uint8), "when": pd.Timestamp(0)})
    made, columns = read_frame(frame, simple=False)
    asked = pd.DataFrame({"visits": [300, -1, 2.5], "when": "1970-01-02"})
    shown = columns.in_clear(columns.to_inputs(asked))
    assert shown["visits"].tolist() == [300, -1, 2.5]
    assert shown["when"].dtype == made["when"].dtype
    assert columns.in_clear(columns.to_inputs(frame))["visits"].dtype == np.uint8


def test_columns_by_name_work_where_all_of_them_are_numbers() -> None:
    rows = pd.DataFrame({"u": np.linspace(-1, 1, 100), "v": 1})
    chosen = make_pipeline(ColumnTransformer([("u", StandardScaler(), ["u"])]), SVC())
    private = classifier(chosen).fit(rows, rows["u"] > 0)
    assert private.predict(rows.iloc[[2, 97]]).tolist() == [False, True]


@pytest.mark.parametrize(
    "estimator", [None, MultinomialNB(), make_pipeline(KNeighborsClassifier())]
)
def test_sparse_rows_are_taken_where_the_models_take_them(estimator: Any) -> None:
    texts = ["cheap pills now", "meeting at noon"] * 60
    rows = TfidfVectorizer().fit_transform([f"{text} {n % 7}x" for n, text in enumerate(texts)])
    labels = np.array(["spam", "ham"] * 60)
    for given in (rows, rows.tocsc(), sparse.csr_array(rows)):
        private = classifier(estimator).fit(given, labels)
        assert private.predict(given[:6]).tolist() == ["spam", "ham"] * 3
        assert sparse.issparse(private._training.records.rows)


def test_sparse_rows_are_refused_where_the_models_do_not_take_them() -> None:
    rows = sparse.csr_matrix(np.eye(100))
    with pytest.raises(TypeError, match="dense data is required"):
        classifier(HistGradientBoostingClassifier()).fit(rows, [0, 1] * 50)


def test_gaps_in_an_array_are_for_the_model_to_take() -> None:
    source = np.random.default_rng(0)
    rows = source.normal(size=(200, 3))
    labels = rows[:, 0] > 0
    rows[source.random(rows.shape) < 0.1] = np.nan
    assert len(classifier().fit(rows, labels).predict(rows[:9])) == 9
    trees = HistGradientBoostingClassifier(max_iter=5)
    assert len(classifier(trees).fit(rows, labels).predict(rows[:9])) == 9
    with pytest.raises(ValueError, match="NaN"):
        classifier(SVC()).fit(rows, labels)


def test_rows_that_the_models_cannot_take_are_refused_before_anything_is_spent() -> None:
    frame, labels = mixed()
    model = make_pipeline(transformer(), LogisticRegression())
    private = classifier(model).fit(frame[40:], labels[40:])
    bad = frame[:3].copy()
    bad["age"] = ["old", "young", "old"]
    bad["visits"] = [1.0, np.nan, 2.0]
    with pytest.raises(InputError, match=r"'age' held numbers.*'visits' was never missing"):
        private.predict(bad)
    with pytest.raises(ValueError, match="feature names"):
        private.predict(frame[:3].drop(columns=["note"]))
    with pytest.raises(ValueError, match="0 sample"):
        private.predict(frame[:0])
    assert private.privacy_spent_["queries"] == 0


def test_a_gap_that_training_never_had_is_taken_where_the_models_take_it() -> None:
    frame, labels = mixed()
    frame["age"] = frame["age"].fillna(40)
    model = make_pipeline(transformer(), LogisticRegression())
    private = classifier(model).fit(frame[40:], labels[40:])
    asked = frame[:3].copy()
    asked["age"] = np.nan
    asked["ward"] = "a ward that nobody knows"
    asked["note"] = "words that nobody wrote before"
    assert len(private.predict(asked)) == 3


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (np.array([1j, 2j] * 50), "complex128"),
        (pd.to_timedelta(np.arange(100), unit="s"), "neither numbers nor text"),
        ([[1, 2]] * 100, "holds list"),
        ([b"x"] * 100, "holds bytes"),
        ([1.0, np.inf] * 50, "holds infinity"),
    ],
)
def test_all_columns_that_cannot_be_used_are_named_at_once(column: Any, reason: str) -> None:
    frame = pd.DataFrame({"good": range(100), "bad": column, "worse": [{"a": 1}] * 100})
    with pytest.raises(InputError, match=f"'bad' .*{reason}.*'worse' holds dict"):
        classifier().fit(frame, [0, 1] * 50)


@pytest.mark.parametrize(
    "column",
    [
        pd.array([1, None, 3] * 40, dtype="Int64"),
        pd.array([True, None, False] * 40, dtype="boolean"),
        pd.array(["x", None, "y"] * 40, dtype="string"),
        pd.Categorical([1, None, 3] * 40),
        pd.Series(["x", None, "y"] * 40),
        pd.Series([1, "x", None] * 40, dtype=object),
        pd.Series([True, None, False] * 40, dtype=object),
        pd.Series(pd.to_datetime(["2024-01-01 00:00", None, "2025-06-07 08:09"] * 40)),
        pd.Series(pd.to_datetime(["2024-01-01", None, "2025-06-07"] * 40)).dt.date,
        pd.Series(pd.period_range("2024-01", periods=120, freq="M")),
        pd.arrays.SparseArray([0.0, 1.0, 0.0] * 40),
        pd.Series([None] * 120, dtype=object),
    ],
)
def test_whatever_pandas_has_in_a_column_is_taken(column: Any) -> None:
    frame = pd.DataFrame({"a": np.linspace(-1, 1, 120), "b": column})
    frame.index = pd.Index(range(1000, 1120))
    labels = frame["a"] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private = classifier().fit(frame, labels)
        assert private.predict(frame.iloc[[3, 116]]).tolist() == [False, True]
    made, form = read_frame(frame, simple=False)
    encoded = join_rows(encode_rows(form.to_inputs(frame), form.columns))
    back = form.restore(decode_rows(encoded, len(frame), form.columns))
    pd.testing.assert_frame_equal(back, made)


@pytest.mark.parametrize("gap", [None, np.nan])
def test_a_record_without_a_label_is_refused(gap: Any) -> None:
    frame, labels = mixed(100)
    given = labels.astype(object)
    given[7] = gap
    for y in (given, pd.Series(given, dtype=object), pd.Series(given)):
        with pytest.raises(ValueError, match=r"y contains (None|NaN)"):
            classifier().fit(frame, y)


def test_a_pipeline_that_ends_in_a_stateless_step_is_not_taken_for_fitted() -> None:
    frame, labels = mixed()
    words = make_pipeline(SimpleImputer(strategy="constant", fill_value=""), OneHotEncoder())
    model = make_pipeline(
        ColumnTransformer(
            [
                ("note", make_pipeline(HashingVectorizer(n_features=16)), "note"),
                ("rest", words, make_column_selector(pattern="ward")),
            ],
        ),
        LogisticRegression(),
    )
    filled = frame.assign(note=frame["note"].fillna("nothing").astype(object))
    private = classifier(model).fit(filled[40:], labels[40:])
    assert len(private.predict(filled[:5])) == 5


def letters(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Free text in a column of its own: no two letters alike, some missing, case at random."""
    random = np.random.default_rng(seed)
    labels = np.array(["billing", "network"])[random.integers(2, size=count)]
    words = {"billing": "invoice refund payment card", "network": "router cable wifi ping"}
    texts: list[str | None] = []
    for label in labels:
        own = [str(word) for word in random.choice(words[label].split(), 2)]
        other = [f"w{number}" for number in random.zipf(1.3, 12)]
        told = [*own, *other, f"case{random.integers(10**9)}"]
        texts.append(" ".join(word.upper() if random.random() < 0.3 else word for word in told))
    texts[3] = None
    return pd.DataFrame({"letter": texts}), labels


def test_free_text_as_the_only_column_is_learned_by_the_default_model() -> None:
    frame, labels = letters(330)
    model = default_model(frame).fit(frame[:60], labels[:60])
    assert np.mean(model.predict(frame[60:]) == labels[60:]) > 0.85
    private = classifier(n_teachers=5, votes=2, queries=30).fit(frame[30:], labels[30:])
    assert np.mean(private.predict(frame[:30]) == labels[:30]) > 0.7


def test_a_shard_whose_texts_are_all_missing_or_without_words_has_a_model() -> None:
    labels = ["p", "q"] * 10
    for text in (np.nan, "…"):
        frame = pd.DataFrame({"t": [text] * 20}, dtype=object)
        assert len(default_model(frame).fit(frame, labels).predict(frame)) == 20


def test_the_default_model_can_be_saved_and_loaded() -> None:
    skops = pytest.importorskip("skops.io")
    columns = [Column(name="a"), Column(name="t", type=ColumnType(kind="text"))]
    frame = frame_of(columns, [[1.0, 2.0, None] * 20, ["x y", None, "2024-01-02"] * 20])
    model = default_model(frame).fit(frame, ["p", "q", "p"] * 20)
    data = skops.dumps(model)
    assert set(skops.get_untrusted_types(data=data)) <= set(TYPES)
    again = skops.loads(data, trusted=list(TYPES))
    assert again.predict(frame).tolist() == model.predict(frame).tolist()
