"""X as scikit-learn's users have it: what the models train on, and how rows travel to them.

Used by the estimator. A DataFrame stays one, with its names and types of columns. Anything else is
an array of numbers, or a sparse matrix where the models take one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import assert_all_finite, validate_data

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
    if is_frame(X):
        validate_data(estimator, X, skip_check_array=True)
        _require_rows(X)
        labels = _indicator(y) if is_matrix else column_or_1d(y, warn=True)
        if labels.dtype == object and import_pandas().isna(labels).any():
            raise ValueError("Input y contains None or NaN: a record without a label")
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


def _indicator(y: Any) -> NDArray[np.int64]:
    return np.asarray(y.toarray() if hasattr(y, "toarray") else y, dtype=np.int64)


def _require_rows(X: Any) -> None:  # noqa: N803
    if not len(X):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
