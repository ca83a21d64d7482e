"""Tables that models are trained on and asked about: arrays of numbers, sparse ones, DataFrames.

Used by the estimator, by `read_records` and by every teacher. Rows travel as the protocol encodes
them (protocol/inputs.py). Before a model sees them they are made again what it was trained on: an
array where there are numbers only, a DataFrame otherwise, with the same names and types of columns.
"""

import datetime
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError, MissingExtraError
from dppp.protocol.columns import NUMBER, TEXT, Column, Columns, ColumnType, compose
from dppp.protocol.inputs import Cell, MixedRows


def frame_of(columns: Sequence[Column], cells: Sequence[Sequence[Cell]]) -> Any:
    """A DataFrame with a float or an object column for each; NaN is what is missing."""
    pandas = import_pandas()
    return pandas.DataFrame(
        {
            column.name: pandas.Series(
                [np.nan if cell is None else cell for cell in of_column],
                dtype=np.float64 if column.type.kind == NUMBER else object,
            )
            for column, of_column in zip(columns, cells, strict=True)
        }
    )


def as_trained(rows: Any) -> Any:
    """What a teacher's own model takes: an array as it is, mixed rows as a DataFrame."""
    return frame_of(rows.columns, rows.cells) if isinstance(rows, MixedRows) else rows


def is_frame(rows: Any) -> bool:
    """Whether this is a DataFrame, without importing pandas to find out."""
    return hasattr(rows, "iloc") and hasattr(rows, "columns")


def import_pandas() -> Any:
    """The module pandas, or how to get it."""
    try:
        import pandas  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(
            "a table of mixed columns needs pandas", extra="learning"
        ) from error
    return pandas


def _is_sparse(rows: Any) -> bool:
    """Whether this is scipy's, without importing scipy to find out."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(rows))


def _dense(rows: Any) -> Any:
    return rows.toarray() if _is_sparse(rows) else rows


def take(rows: Any, places: NDArray[np.int64] | slice) -> Any:
    """Some rows of a table, for asking models: sparse ones as an array."""
    if is_frame(rows):
        return rows.iloc[places].reset_index(drop=True)
    found = rows[places]
    return _dense(found)


def rows_as_lists(rows: Any, places: Sequence[int]) -> list[list[Cell]]:
    """Some rows, cell by cell, as they are written to a file; None is what is missing."""
    table = np.asarray(take(rows, np.array(places, dtype=np.int64)), dtype=object)
    return [[None if cell != cell else cell for cell in row] for row in table.tolist()]  # noqa: PLR0124


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFormat:
    """Numbers in an array, or in a sparse matrix; `missing` where a column may be missing."""

    missing: tuple[bool, ...]
    is_sparse: bool = False

    @property
    def columns(self) -> Columns:
        """As the protocol has them."""
        if not any(self.missing):
            return len(self.missing)
        return [
            Column(name=f"feature {place}", type=ColumnType(kind=NUMBER, may_be_missing=missing))
            for place, missing in enumerate(self.missing)
        ]

    def allow_missing(self) -> "ArrayFormat":
        """The same, where any column may be missing."""
        return ArrayFormat(missing=(True,) * len(self.missing), is_sparse=self.is_sparse)

    def blank(self) -> Any:
        """A row in which everything is missing."""
        return np.full((1, len(self.missing)), np.nan)

    def to_inputs(self, rows: Any) -> Any:
        """For the protocol."""
        return _dense(rows)

    def in_clear(self, inputs: Any) -> Any:
        """Rows that do not travel, from what `to_inputs` made."""
        return inputs

    def restore(self, inputs: Any) -> Any:
        """For a model, from what the protocol gives or from rows that never travelled."""
        if isinstance(inputs, MixedRows):
            inputs = np.array(inputs.cells, dtype=np.float64).T
        if not self.is_sparse:
            return inputs
        from scipy import sparse  # noqa: PLC0415

        return sparse.csr_matrix(inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameColumn:
    """A column of a DataFrame: its name, its type there, and its type in the protocol."""

    name: Any
    dtype: Any
    kind: str
    may_be_missing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFormat:
    """A DataFrame's columns, so that rows come back to a model as it was trained on them."""

    fields: tuple[FrameColumn, ...]

    @property
    def columns(self) -> Sequence[Column]:
        """As the protocol has them; names as far as they can stand in a task."""
        names = [str(field.name) for field in self.fields]
        is_good = len(set(names)) == len(names) and all(
            0 < len(name) <= 200 and name.isprintable() for name in names
        )
        return [
            Column(
                name=names[place] if is_good else f"column {place}",
                type=ColumnType(kind=field.kind, may_be_missing=field.may_be_missing),
            )
            for place, field in enumerate(self.fields)
        ]

    def allow_missing(self) -> "FrameFormat":
        """The same, where any column may be missing, if its type has a place for that."""
        return FrameFormat(
            fields=tuple(
                FrameColumn(
                    name=field.name,
                    dtype=field.dtype,
                    kind=field.kind,
                    may_be_missing=field.may_be_missing or _can_be_missing(field.dtype),
                )
                for field in self.fields
            )
        )

    def blank(self) -> Any:
        """A row in which everything is missing that can be."""
        cells = [[None if _can_be_missing(field.dtype) else 0.0] for field in self.fields]
        return self.restore(MixedRows(self.columns, cells))

    def to_inputs(self, frame: Any) -> Any:
        """For the protocol: cells row by row; all columns that are of another kind at once."""
        cells: list[list[Cell]] = []
        problems = []
        for place, field in enumerate(self.fields):
            try:
                cells.append(_cells_of(frame.iloc[:, place], field))
            except (TypeError, ValueError):
                held = "numbers" if field.kind == NUMBER else "times"
                problems.append(f"{field.name!r} held {held} when the models were trained")
                continue
            if not field.may_be_missing and frame.iloc[:, place].isna().any():
                problems.append(f"{field.name!r} was never missing when the models were trained")
        if problems:
            raise InputError(
                f"these columns cannot be asked about: {'; '.join(problems)}",
                hint="give rows like those that the models were trained on",
            )
        rows = [list(row) for row in zip(*cells, strict=True)]
        return np.array(rows, dtype=np.float64) if self._is_plain else rows

    def frame_from(self, rows: Any) -> Any:
        """A DataFrame from rows without names, in the order of its columns."""
        names = [field.name for field in self.fields]
        return import_pandas().DataFrame(np.asarray(rows, dtype=object), columns=names)

    def in_clear(self, inputs: Any) -> Any:
        """Rows that do not travel, from what `to_inputs` made."""
        if isinstance(inputs, np.ndarray):
            return self.restore(inputs)
        return self.restore(MixedRows(self.columns, list(zip(*inputs, strict=True))))

    @property
    def _is_plain(self) -> bool:
        return all(field.kind == NUMBER and not field.may_be_missing for field in self.fields)

    def restore(self, inputs: Any) -> Any:
        """For a model, from what the protocol gives or from rows that never travelled."""
        if is_frame(inputs):
            return inputs
        pandas = import_pandas()
        cells = inputs.cells if isinstance(inputs, MixedRows) else inputs.T
        series = [
            _series(pandas, of_column, field)
            for of_column, field in zip(cells, self.fields, strict=True)
        ]
        frame = pandas.concat(series, axis=1)
        frame.columns = pandas.Index([field.name for field in self.fields])
        return frame


Format = ArrayFormat | FrameFormat


def format_of_array(rows: Any) -> ArrayFormat:
    """What an array's columns are; rows are numbers by now."""
    _, width = rows.shape
    if _is_sparse(rows):
        return ArrayFormat(missing=(False,) * width, is_sparse=True)
    return ArrayFormat(missing=tuple(np.isnan(rows).any(axis=0).tolist()))


def read_frame(frame: Any, *, simple: bool) -> tuple[Any, FrameFormat]:
    """A DataFrame as models are to be trained on it, and what its columns are.

    Texts are composed (NFC), and whatever is missing is NaN: so it is in rows that travelled. With
    `simple` there are columns of floats and of texts only, as `frame_of` makes them.
    """
    pandas = import_pandas()
    columns, problems = [], []
    for place in range(frame.shape[1]):
        try:
            columns.append(_canonical(pandas, frame.iloc[:, place], simple=simple))
        except (TypeError, ValueError) as error:
            problems.append(f"{frame.columns[place]!r} {error}")
    if problems:
        raise InputError(
            f"these columns cannot be used: {'; '.join(problems)}",
            hint="make numbers or texts of them, or drop them",
        )
    made = pandas.concat(columns, axis=1).reset_index(drop=True)
    made.columns = frame.columns
    fields = tuple(
        FrameColumn(
            name=frame.columns[place],
            dtype=made.dtypes.iloc[place],
            kind=_kind(pandas, made.dtypes.iloc[place]),
            may_be_missing=bool(made.iloc[:, place].isna().any()),
        )
        for place in range(made.shape[1])
    )
    return made, FrameFormat(fields=fields)


def _canonical(pandas: Any, series: Any, *, simple: bool) -> Any:
    """One column with a type that its cells come back to."""
    types = pandas.api.types
    dtype = series.dtype
    if isinstance(dtype, pandas.SparseDtype):
        series, dtype = series.sparse.to_dense(), dtype.subtype
    if isinstance(dtype, pandas.CategoricalDtype):
        return _as_text(pandas, series.astype(object)) if simple else series
    if types.is_complex_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        raise TypeError(f"is of type {dtype}, neither numbers nor text")
    if types.is_numeric_dtype(dtype):  # bool too
        return _finite(_as_numbers(series, simple=simple))
    if types.is_datetime64_any_dtype(dtype) and not simple:
        return series
    if _holds_numbers(pandas, series):
        return _finite(pandas.to_numeric(series.map(float, na_action="ignore")).astype(np.float64))
    text = _as_text(pandas, series)
    is_own_type = isinstance(dtype, pandas.StringDtype) and dtype.na_value is not pandas.NA
    return text.astype(dtype) if is_own_type and not simple else text


def _as_numbers(series: Any, *, simple: bool) -> Any:
    is_numpy = isinstance(series.dtype, np.dtype)
    return series if is_numpy and not simple else series.astype(np.float64)


def _finite(series: Any) -> Any:
    if np.isinf(series.to_numpy(dtype=np.float64)).any():
        raise ValueError("holds infinity")
    return series


def _holds_numbers(pandas: Any, series: Any) -> bool:
    if series.isna().all():
        return not isinstance(series.dtype, pandas.StringDtype)
    kind = pandas.api.types.infer_dtype(series, skipna=True)
    return kind in ("integer", "floating", "mixed-integer-float", "boolean", "decimal")


def _as_text(pandas: Any, series: Any) -> Any:
    pairs = zip(series, series.isna(), strict=True)
    cells = [np.nan if is_missing else _text(cell) for cell, is_missing in pairs]
    return pandas.Series(cells, dtype=object, index=series.index, name=series.name)


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return compose(cell)
    if isinstance(cell, datetime.date | datetime.time):
        return str(cell.isoformat())
    if isinstance(cell, bytes | dict | list | set | tuple | np.ndarray):
        raise TypeError(f"holds {type(cell).__name__}, neither numbers nor text")
    return str(cell)


def _kind(pandas: Any, dtype: Any) -> str:
    is_number = isinstance(dtype, np.dtype) and pandas.api.types.is_numeric_dtype(dtype)
    return NUMBER if is_number else TEXT


def _can_be_missing(dtype: Any) -> bool:
    """Whole numbers and bools have no value for it."""
    return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")


def _cells_of(series: Any, field: FrameColumn) -> list[Cell]:
    if field.kind == NUMBER:
        return list(series.astype(np.float64).tolist())
    pandas = import_pandas()
    if pandas.api.types.is_datetime64_any_dtype(field.dtype):
        series = _times(pandas, series, field)
    pairs = zip(series.astype(object), series.isna(), strict=True)
    return [None if is_missing else _text(cell) for cell, is_missing in pairs]


def _times(pandas: Any, series: Any, field: FrameColumn) -> Any:
    """Times of the type that the models were trained on, from times or from texts of them."""
    if pandas.api.types.is_datetime64_any_dtype(series.dtype):
        return series
    return pandas.to_datetime(series.astype(object), format="ISO8601").astype(field.dtype)


def _numbers(pandas: Any, cells: Any, field: FrameColumn) -> Any:
    """Numbers of the type that the models were trained on; floats where that cannot hold them."""
    numbers = np.asarray(cells, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        made = numbers.astype(field.dtype)
    is_exact = made.dtype.kind == "f" or np.array_equal(made, numbers)
    return pandas.Series(made if is_exact else numbers)


def _series(pandas: Any, cells: Any, field: FrameColumn) -> Any:
    if field.kind == NUMBER:
        return _numbers(pandas, cells, field)
    if isinstance(field.dtype, pandas.CategoricalDtype):
        values = {_text(value): value for value in field.dtype.categories}
        return pandas.Series(
            pandas.Categorical([values.get(cell) for cell in cells], dtype=field.dtype)
        )
    if pandas.api.types.is_datetime64_any_dtype(field.dtype):
        times = pandas.to_datetime(pandas.Series(cells, dtype=object), format="ISO8601")
        return times.astype(field.dtype)
    texts = [np.nan if cell is None else cell for cell in cells]
    return pandas.Series(texts, dtype=object).astype(field.dtype)
