"""X as scikit-learn's users have it: what the models train on, and how rows travel to them.

Used by the estimator. A DataFrame stays one, with its names and types of columns. Anything else is
an array of numbers, or a sparse matrix where the models take one.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import assert_all_finite, validate_data

from dppp.errors import RecordsError
from dppp.learning.frames import (
    Format,
    FrameFormat,
    format_of_array,
    import_pandas,
    is_frame,
    read_frame,
)
from dppp.learning.shards import NoVote
from dppp.protocol.columns import Columns, is_plain
from dppp.protocol.votes import Predict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """What `fit` was given: the rows that models train on, and the format of any others."""

    rows: Any
    format: Format

    @property
    def columns(self) -> Columns:
        """As the protocol has them."""
        return self.format.columns

    def predict_by(self, predict: Predict) -> Predict:
        """The same, of rows as they travel: `predict` asks a model that was trained on this."""
        restore = self.format.restore
        return lambda inputs: predict(restore(inputs))

    def rows_in_clear(self, inputs: Any) -> Any:
        """Rows to ask about as models have them, for verdicts."""
        return self.format.in_clear(inputs)

    def allowing_missing(
        self, models: Sequence[object], predict_of: Callable[[object], Predict]
    ) -> "Table":
        """The same, where rows may lack anything, if all models take that.

        Numbers of which none was missing stay as they are: their encoding is the short one.
        """
        if is_plain(self.columns):
            return self
        if not all(self._takes_blank(model, predict_of) for model in models):
            return self
        return replace(self, format=self.format.allow_missing())

    def _takes_blank(self, model: object, predict_of: Callable[[object], Predict]) -> bool:
        if isinstance(
            model, DummyClassifier | DummyRegressor | NoVote
        ):  # takes anything, and says nothing of it
            return True
        try:
            return len(predict_of(model)(self.format.blank())) == 1
        except Exception:  # noqa: BLE001 - a model may fail in any way; then it does not take it
            return False


def read_training(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    simple: bool,
    accept_sparse: bool,
    is_numeric: bool = False,
) -> tuple[Table, Any]:
    """The table and the labels, checked as scikit-learn checks them; `simple` as in frames.py.

    Labels may be an indicator matrix, and are numbers where they must be (`is_numeric`).
    """
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    is_wide = len(shape) == 2 and shape[1] > 1
    is_matrix = is_wide and not is_numeric and type_of_target(y) == "multilabel-indicator"
    _require_table(X)
    if is_numeric and _is_of_texts(y):
        raise RecordsError(
            "y holds texts, and a regressor learns numbers",
            hint="give y as numbers, or take PrivateVotingClassifier for classes",
        )
    if is_frame(X):
        validate_data(estimator, X, skip_check_array=True)
        _require_rows(X)
        labels = _indicator(y) if is_matrix else column_or_1d(y, warn=True)
        if labels.dtype == object and import_pandas().isna(labels).any():
            raise RecordsError(
                "Input y contains None or NaN: a record without a label",
                hint="leave such records out: X[y.notna()], y[y.notna()]",
            )
        assert_all_finite(labels, input_name="y")
        if is_numeric:
            labels = np.asarray(labels, dtype=np.float64)
        check_consistent_length(X, labels)
        rows, frame_format = read_frame(X, simple=simple)
        return Table(rows=rows, format=frame_format), labels
    rows, labels = validate_data(
        estimator,
        X,
        y,
        dtype=np.float64,
        accept_sparse="csr" if accept_sparse else False,
        ensure_all_finite="allow-nan",
        multi_output=is_matrix,
        y_numeric=is_numeric,
    )
    if is_matrix:
        labels = _indicator(labels)
    elif is_numeric:
        labels = np.asarray(labels, dtype=np.float64)
    return Table(rows=rows, format=format_of_array(rows)), labels


def read_rows(estimator: Any, X: Any, table: Table) -> Any:  # noqa: N803
    """Rows to ask about, as the protocol takes them."""
    if is_frame(X) or not isinstance(table.format, FrameFormat):
        _require_table(X)
    if isinstance(table.format, FrameFormat):
        validate_data(estimator, X, skip_check_array=True, reset=False)
        _require_rows(X)
        return table.format.to_inputs(X if is_frame(X) else table.format.frame_from(X))
    rows = validate_data(
        estimator,
        X,
        dtype=np.float64,
        accept_sparse="csr" if table.format.is_sparse else False,
        ensure_all_finite=True if is_plain(table.columns) else "allow-nan",
        reset=False,
    )
    return table.format.to_inputs(rows)


def _require_table(X: Any) -> None:  # noqa: N803
    """Refuse what is nearly a table, with what to do; the rest is scikit-learn's to refuse."""
    if is_frame(X):
        _require_names(list(X.columns), levels=getattr(X.columns, "nlevels", 1))
    elif not issparse(X) and _is_of_texts(X):
        raise RecordsError(
            "X holds texts and is not a DataFrame: an array is of numbers",
            hint="give a DataFrame, pandas.DataFrame(X), with a column for each feature; a "
            "vectorizer of texts goes into a ColumnTransformer",
        )


def _require_names(names: list[Any], *, levels: int) -> None:
    if not names:
        raise RecordsError("X has no columns", hint="give it one for each feature")
    if levels > 1:
        raise RecordsError(
            f"the columns of X have names of {levels} levels",
            hint="join them: X.columns = ['_'.join(map(str, name)) for name in X.columns]",
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise RecordsError(
            f"X has two columns of the same name: {', '.join(map(repr, twice[:8]))}",
            hint="rename one, or keep the first: X.loc[:, ~X.columns.duplicated()]",
        )


def _is_of_texts(values: Any) -> bool:
    """Whether there is a text among them that is not a number."""
    try:
        cells = np.asarray(values)
    except ValueError:  # rows of different lengths
        return False
    if cells.dtype.kind == "O":
        return any(isinstance(cell, str) and not _is_number(cell) for cell in cells.ravel())
    return cells.dtype.kind == "U" and not all(map(_is_number, cells.ravel().tolist()))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _indicator(y: Any) -> NDArray[np.int64]:
    return np.asarray(y.toarray() if hasattr(y, "toarray") else y, dtype=np.int64)


def _require_rows(X: Any) -> None:  # noqa: N803
    if not len(X):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
