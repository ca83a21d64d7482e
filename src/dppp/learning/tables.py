"""X as scikit-learn's users have it: what the models train on, and how rows travel to them.

Used by the estimator. A DataFrame stays one, with its names and types of columns. Anything else is
an array of numbers, or a sparse matrix where the models take one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import assert_all_finite, validate_data

from dppp.learning.frames import Format, FrameFormat, format_of_array, is_frame, read_frame
from dppp.learning.models import as_predict
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

    def predict_by(self, model: object, classes: Sequence[object]) -> Predict:
        """What asks a model that was trained on rows of this table."""
        predict, restore = as_predict(model, classes), self.format.restore
        return lambda inputs: predict(restore(inputs))

    def rows_in_clear(self, inputs: Any) -> Any:
        """Rows to ask about as models have them, for verdicts."""
        return self.format.in_clear(inputs)

    def allowing_missing(self, models: Sequence[object], classes: Sequence[object]) -> "Table":
        """The same, where rows may lack anything, if all models take that.

        Numbers of which none was missing stay as they are: their encoding is the short one.
        """
        if is_plain(self.columns) or not all(self._takes_blank(model, classes) for model in models):
            return self
        return replace(self, format=self.format.allow_missing())

    def _takes_blank(self, model: object, classes: Sequence[object]) -> bool:
        if isinstance(model, DummyClassifier | NoVote):  # takes anything, and says nothing of it
            return True
        try:
            return len(as_predict(model, classes)(self.format.blank())) == 1
        except Exception:  # noqa: BLE001 - a model may fail in any way; then it does not take it
            return False


def read_training(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    simple: bool,
    accept_sparse: bool,
) -> tuple[Table, Any]:
    """The table and the labels, checked as scikit-learn checks them; `simple` as in frames.py."""
    if is_frame(X):
        validate_data(estimator, X, skip_check_array=True)
        _require_rows(X)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        if labels.dtype == object and any(each is None for each in labels):
            raise ValueError("Input y contains None: a record without a label")
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
    )
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


def _require_rows(X: Any) -> None:  # noqa: N803
    if not len(X):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
