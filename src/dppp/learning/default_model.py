"""The model that is taken where nobody names one: for numbers, or for a table of mixed columns.

Every part is fitted on one shard alone, as all models are (shards.py). Numbers: what is missing is
filled in with the median, and every column is scaled. Texts of all kinds, categories and dates
too: a column for each of the most frequent values, where values that were never met are ignored,
and the words, hashed and weighed by how rare they are in the shard (TF-IDF). Nothing decides
between categories and free text, so that no record can: both parts are there for every column.

The weights of words are not scaled to length 1. So the one word of a category counts for little
beside the column of its value, and the fifty words of a letter count for much. Pairs of words were
tried and did not help on shards of 30 to 1,000 records (docs/usage.md has the figures).

Numbers alone are classified by an RBF SVC, mixed columns by logistic regression, which was the
better of the two on shards of 30 to 120 records.

Parts of scikit-learn only, so that skops can save such a model and load it again.
"""

from collections.abc import Sequence
from typing import Any

from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

_MOST_VALUES = 30
"""Of a column that have a column of their own."""
_WORD = r"(?u)\w+"
"""Of one letter or digit too: a date has days."""
_HASHED = 4_096
"""Columns for the words of one column; nearly all of them are empty, and none takes space."""
_WORDS_WEIGHT = 0.2
"""Of a word, beside 1 for a frequent value and for a deviation of a number."""

TYPES = (
    "dppp.learning.several_labels.SomeLabels",
    "numpy.dtype",
    "numpy.ravel",
    "operator.itemgetter",
)
"""What is in such a model that skops does not know to be harmless: these are.

The last is in models of earlier builds.
"""


def default_model(rows: Any) -> Pipeline:
    """A fresh model for a table like this one; it looks at the types of its columns only."""
    if hasattr(rows, "select_dtypes"):
        numbers = rows.select_dtypes("number").columns
        texts = [name for name in rows.columns if name not in numbers]
        if texts:
            return mixed_model([name for name in rows.columns if name in numbers], texts)
    if issparse(rows):
        return make_pipeline(MaxAbsScaler(), SVC())
    return make_pipeline(_filled(), StandardScaler(), SVC())


def default_model_for(kind: str, rows: Any) -> Pipeline:
    """The same for each kind of question.

    Several labels: the same model for each label. A number: support vector regression, of numbers
    scaled as they are in the shard, and ridge regression where columns are mixed.
    """
    model = default_model(rows)
    name, last = model.steps[-1]
    if kind == "labels":
        model.steps[-1] = (name, OneVsRestClassifier(last))
    elif kind == "number":
        number = SVR() if isinstance(last, SVC) else Ridge()
        scaled = TransformedTargetRegressor(regressor=number, transformer=StandardScaler())
        model.steps[-1] = ("number", scaled)
    return model


def mixed_model(numbers: Sequence[Any], texts: Sequence[Any]) -> Pipeline:
    """A fresh model for a DataFrame with these columns of numbers and of texts."""
    values = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=_MOST_VALUES, min_frequency=2
    )
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(_filled(), StandardScaler()), list(numbers)),
            ("values", values, list(texts)),
            ("words", _words(len(texts)), list(texts)),
        ],
        sparse_threshold=1,
        transformer_weights={"words": _WORDS_WEIGHT},
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1_000))


def _filled() -> SimpleImputer:
    return SimpleImputer(strategy="median", keep_empty_features=True)


def _words(texts: int) -> Pipeline:
    """The words of so many columns, each hashed by itself, in any case.

    The other steps treat every column of a table by itself anyway. One for all costs a table of
    thirty columns of texts half the time.
    """
    hashed = HashingVectorizer(
        n_features=_HASHED,
        token_pattern=_WORD,
        alternate_sign=False,
        norm=None,
    )
    columns = [(f"words {place}", hashed, place) for place in range(texts)]
    return make_pipeline(
        SimpleImputer(strategy="constant", fill_value="", keep_empty_features=True),
        ColumnTransformer(columns, sparse_threshold=1),
        TfidfTransformer(sublinear_tf=True, norm=None),
    )
