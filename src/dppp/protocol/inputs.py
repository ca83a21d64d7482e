"""Rows as bytes: one row has one encoding, and two rows never have the same.

Used by the querier's program, which writes them, and by every teacher, which reads them. How a row
is encoded is known here and nowhere else: all other code has a row's bytes, or all rows' bytes.

A task of numbers that are always there: 64-bit floats, little-endian, one for each feature. Any
other task: cell after cell, each of them one of

    00                           missing, where the task allows that
    01, 8 bytes                  a number, as above
    01, 2 bytes                  a category: the place of its value in the task, from 0
    01, 4 bytes, then as many    a text: its length in bytes, and UTF-8 of its composed form (NFC)

Numbers are finite, and zero has no sign. Lengths and places are little-endian. A row ends where its
last cell ends, so rows follow each other without marks between them.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.protocol.columns import (
    CATEGORY,
    NUMBER,
    Column,
    Columns,
    compose,
    is_composed,
    is_plain,
    require_width,
)

_FLOAT_BYTES = 8
_MISSING, _PRESENT = b"\x00", b"\x01"

_NOT_FINITE = "fill in what is missing, and mend or leave out what is infinite"
_ONE_ROW = "give each input as a list, with a value for each of the task's columns"

LONGEST_TEXT_BYTES = 2**16
"""Of one cell."""
LONGEST_ROW_BYTES = 2**20
"""Of one row with texts."""

Cell = float | str | None
"""A number, a category's value or a text; None is missing."""


class MixedRows:
    """Rows of a task that has more than plain numbers: for each column, its cells from the top."""

    def __init__(self, columns: Sequence[Column], cells: Sequence[Sequence[Cell]]) -> None:
        self.columns = tuple(columns)
        self.cells = tuple(tuple(each) for each in cells)

    def __len__(self) -> int:
        return len(self.cells[0])

    def __getitem__(self, rows: slice) -> "MixedRows":
        return MixedRows(self.columns, [column[rows] for column in self.cells])

    def tolist(self) -> list[list[Cell]]:
        """The cells row by row."""
        return [list(row) for row in zip(*self.cells, strict=True)]


Inputs = NDArray[np.float64] | MixedRows
"""What a teacher's models are asked about: an array where the task has plain numbers only."""


def join_inputs(parts: Sequence[Inputs]) -> Inputs:
    """Rows of one task, one part after the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, MixedRows):
        every = [each.cells for each in parts if isinstance(each, MixedRows)]
        columns = [sum(cells, ()) for cells in zip(*every, strict=True)]
        return MixedRows(first.columns, columns)
    return np.concatenate([each for each in parts if isinstance(each, np.ndarray)])


def encode_rows(rows: Any, columns: Columns) -> tuple[bytes, ...]:
    """The bytes of each row; run by the querier."""
    if isinstance(columns, int) or is_plain(columns):
        return _encode_numbers(rows, _width(columns))
    if isinstance(rows, MixedRows):
        rows = rows.tolist()
    return tuple(_encode_row(place, row, columns) for place, row in enumerate(_listed(rows)))


def join_rows(rows: Iterable[bytes]) -> bytes:
    """All rows in one piece; run by the querier."""
    return b"".join(rows)


def split_rows(data: bytes, count: int, columns: Columns) -> Sequence[bytes]:
    """The bytes of each of `count` rows; run by every teacher, on bytes from a stranger."""
    if isinstance(columns, int) or is_plain(columns):
        _require_size(data, count, _width(columns))
        rows: list[bytes] = np.frombuffer(data, dtype=f"V{_width(columns) * _FLOAT_BYTES}").tolist()
        return rows
    return [data[start:end] for start, end, _ in _read_rows(data, count, columns)]


def decode_rows(data: bytes, count: int, columns: Columns) -> Inputs:
    """The rows as a table; run by every teacher before its model sees them."""
    if isinstance(columns, int) or is_plain(columns):
        return _decode_numbers(data, count, _width(columns))
    rows = [cells for _, _, cells in _read_rows(data, count, columns)]
    return MixedRows(columns, list(zip(*rows, strict=True)))


def rows_bytes(rows: Sequence[bytes]) -> int:
    """The bytes of these rows together; also run by the gateway before it takes them."""
    return sum(map(len, rows))


def _width(columns: Columns) -> int:
    return columns if isinstance(columns, int) else len(columns)


def _encode_numbers(rows: Any, features: int) -> tuple[bytes, ...]:
    try:
        _require_no_text(np.asarray(rows))
        table = np.asarray(rows, dtype="<f8")
    except (TypeError, ValueError) as error:
        raise InputError(f"inputs must be numbers: {error}", hint="give rows of numbers") from error
    if table.ndim != 2 or table.shape[1] != features:
        raise InputError(
            f"inputs must be rows of {features} numbers, got shape {table.shape}",
            hint="give one row per input, with a number for each feature",
        )
    _require_finite(table)
    return tuple(row.tobytes() for row in table + 0.0)  # a sum with 0.0 is never -0.0


def _require_no_text(table: NDArray[Any]) -> None:
    """A text of digits is not a number: numpy would take it for one."""
    is_text = table.dtype.kind in "US" or (
        table.dtype.kind == "O" and any(isinstance(cell, str | bytes) for cell in table.ravel())
    )
    if is_text:
        raise TypeError("there is a text among them")


def _decode_numbers(data: bytes, count: int, features: int) -> NDArray[np.float64]:
    _require_size(data, count, features)
    table = np.frombuffer(data, dtype="<f8").reshape(count, features)
    _require_finite(table)
    if np.any((table == 0) & np.signbit(table)):
        raise InputError("a number is -0.0, and zero has no sign here")
    return table.astype(np.float64)


def _require_size(data: bytes, count: int, features: int) -> None:
    if count < 1 or len(data) != count * features * _FLOAT_BYTES:
        raise InputError(
            f"{len(data):,} bytes are not {count:,} rows of {features:,} numbers of "
            f"{_FLOAT_BYTES} bytes"
        )


def _require_finite(table: NDArray[np.float64]) -> None:
    broken = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(broken):
        raise InputError(
            f"input {int(broken[0])} holds a value that is not a finite number",
            hint=_NOT_FINITE,
        )


def _listed(rows: Any) -> list[Any]:
    try:
        found = list(rows.tolist() if isinstance(rows, np.ndarray) else rows)
    except TypeError as error:
        raise InputError(f"inputs must be rows: {error}", hint=_ONE_ROW) from error
    if not found:
        raise InputError("there are no rows", hint="give one at least")
    return found


def _encode_row(place: int, row: Any, columns: Sequence[Column]) -> bytes:
    if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
        raise InputError(f"input {place} is not a row of values", hint=_ONE_ROW)
    require_width(len(row), columns, f"input {place}")
    cells = [_encode_cell(cell, column, place) for cell, column in zip(row, columns, strict=True)]
    encoded = b"".join(cells)
    if len(encoded) > LONGEST_ROW_BYTES:
        raise InputError(
            f"input {place} is {len(encoded):,} bytes, {LONGEST_ROW_BYTES:,} at most",
            hint="shorten its texts",
        )
    return encoded


def _encode_cell(cell: Any, column: Column, place: int) -> bytes:
    where = f"input {place}, column {column.name!r}"
    if _is_missing(cell):
        if not column.type.may_be_missing:
            raise InputError(
                f"{where}: the value is missing", hint="the task needs one: fill it in"
            )
        return _MISSING
    if column.type.kind == NUMBER:
        return _PRESENT + _number_bytes(cell, where)
    if not isinstance(cell, str):
        raise InputError(
            f"{where}: expected text, got {type(cell).__name__}", hint="put it in quotes"
        )
    if column.type.kind == CATEGORY:
        return _PRESENT + _category_bytes(cell, column, where)
    return _PRESENT + _text_bytes(cell, where)


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float | np.floating) and bool(np.isnan(cell)))


def _number_bytes(cell: Any, where: str) -> bytes:
    if isinstance(cell, str | bytes | bool) or not isinstance(cell, int | float | np.number):
        raise InputError(
            f"{where}: expected a number, got {type(cell).__name__}",
            hint="give it as a number, without quotes",
        )
    try:
        number = float(cell)
    except (OverflowError, TypeError):
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{where}: expected a finite number", hint=_NOT_FINITE)
    return struct.pack("<d", number + 0.0)


def _category_bytes(cell: str, column: Column, where: str) -> bytes:
    values = column.type.values
    value = compose(cell.strip())
    if value not in values:
        known = ", ".join(values[:8]) + (", …" if len(values) > 8 else "")
        raise InputError(f"{where}: {value[:40]!r} is not one of its values", hint=f"take {known}")
    return struct.pack("<H", values.index(value))


def _text_bytes(cell: str, where: str) -> bytes:
    try:
        encoded = compose(cell).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: the text is not Unicode: {error.reason}",
            hint="read it again from its source, in the encoding that it has",
        ) from error
    if len(encoded) > LONGEST_TEXT_BYTES:
        raise InputError(
            f"{where}: the text has {len(encoded):,} bytes, {LONGEST_TEXT_BYTES:,} at most",
            hint="shorten it",
        )
    return struct.pack("<I", len(encoded)) + encoded


def _read_rows(
    data: bytes, count: int, columns: Sequence[Column]
) -> Iterator[tuple[int, int, list[Cell]]]:
    """Where each row starts and ends, and its cells; the bytes end with the last row."""
    if count < 1:
        raise InputError(f"{len(data):,} bytes are not {count:,} rows")
    end = 0
    for _ in range(count):
        start, cells = end, []
        for column in columns:
            cell, end = _read_cell(data, end, column)
            cells.append(cell)
        if end - start > LONGEST_ROW_BYTES:
            raise InputError(f"a row has more than {LONGEST_ROW_BYTES:,} bytes")
        yield start, end, cells
    if end != len(data):
        raise InputError(f"{len(data) - end:,} bytes follow the last of {count:,} rows")


def _read_cell(data: bytes, at: int, column: Column) -> tuple[Cell, int]:
    mark, at = _take(data, at, 1)
    if mark == _MISSING and column.type.may_be_missing:
        return None, at
    if mark != _PRESENT:
        raise InputError(f"column {column.name!r}: a cell that is neither there nor may be missing")
    if column.type.kind == NUMBER:
        taken, at = _take(data, at, _FLOAT_BYTES)
        return _read_number(taken, column), at
    if column.type.kind == CATEGORY:
        taken, at = _take(data, at, 2)
        (place,) = struct.unpack("<H", taken)
        if place >= len(column.type.values):
            raise InputError(f"column {column.name!r} has no value {place}")
        return column.type.values[place], at
    taken, at = _take(data, at, 4)
    (length,) = struct.unpack("<I", taken)
    if length > LONGEST_TEXT_BYTES:
        raise InputError(f"column {column.name!r}: a text of {length:,} bytes is too long")
    taken, at = _take(data, at, length)
    return _read_text(taken, column), at


def _take(data: bytes, at: int, count: int) -> tuple[bytes, int]:
    if at + count > len(data):
        raise InputError("the bytes end in the middle of a row")
    return data[at : at + count], at + count


def _read_number(taken: bytes, column: Column) -> float:
    (number,) = struct.unpack("<d", taken)
    if not math.isfinite(number) or (number == 0 and math.copysign(1, number) < 0):
        raise InputError(f"column {column.name!r}: not a finite number, or a zero with a sign")
    return float(number)


def _read_text(taken: bytes, column: Column) -> str:
    try:
        text = taken.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"column {column.name!r}: a text that is not UTF-8") from error
    if not is_composed(text):
        raise InputError(f"column {column.name!r}: a text that is not in its composed form (NFC)")
    return text
