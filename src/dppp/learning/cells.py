"""What the cells of a table mean: a number, a text, or nothing.

Used by whoever reads tables. What is missing is empty, or written as statistics programs write it.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dppp.errors import InputError
from dppp.learning.csv_table import CsvTable
from dppp.protocol.columns import (
    CATEGORY,
    LONGEST_VALUE,
    NUMBER,
    TEXT,
    Column,
    ColumnType,
    compose,
)
from dppp.protocol.inputs import Cell

MISSING = frozenset(
    [
        *("", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>"),
        *("NaN", "nan", "-NaN", "-nan", "NaT", "NULL", "null", "None"),
    ]
)
"""Cells that hold nothing, but for spaces around them."""

_MOST_GUESSED_VALUES = 50
"""A column of texts with more different ones is not taken for a category."""

_LARGEST = 1e100
"""Beyond it, squares and their sums are no longer numbers."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
"""1,234,567.8: thousands set apart by commas."""
_GROUPED_BY_POINTS = re.compile(r"[+-]?\d{1,3}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})")
"""1.234,5 or 1.234.567: where commas are decimal. 1.234 alone is what it is to a computer."""
_GROUPED_BY_SPACES = re.compile(r"[+-]?\d{1,3}(?:[ '\u00a0\u202f\u2019]\d{3})+(?:[.,]\d+)?")
_BESIDE_NUMBER = re.compile(r"(\D{0,4}?)([+-]?\d[\d.,]*)(\D{0,4})")
"""A currency or a unit before or after something that may be a number."""


def is_missing(cell: str) -> bool:
    """Whether a cell holds nothing."""
    return cell.strip() in MISSING


def number_in(cell: str, *, has_decimal_commas: bool) -> float | None:
    """The number that is written in a cell; None if it is something else."""
    text = cell.strip()
    if text.endswith("%"):
        text = text[:-1].rstrip()
    if _GROUPED_BY_SPACES.fullmatch(text):
        text = re.sub(r"[ '\u00a0\u202f\u2019]", "", text)
    if has_decimal_commas and _GROUPED_BY_POINTS.fullmatch(text):
        text = text.replace(".", "")
    if has_decimal_commas and _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    elif _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if "_" in text:  # a number to Python, and to nobody else
        return None
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadColumn:
    """One column as it was understood, and what is remarkable about it."""

    column: Column
    cells: tuple[Cell, ...]
    note: str | None = None


def understand(table: CsvTable, names: Sequence[str]) -> tuple[ReadColumn, ...]:
    """Columns of numbers where every cell is one, else of texts; all that are bad at once."""
    found = [_understand(table, name) for name in names]
    problems = [each for each in found if isinstance(each, str)]
    if problems:
        raise InputError(
            f"{table.path} has numbers that cannot be used: {'; '.join(problems)}",
            hint="mend them, empty those cells, or leave the columns out by --drop",
        )
    return tuple(each for each in found if isinstance(each, ReadColumn))


def _understand(table: CsvTable, name: str) -> ReadColumn | str:
    texts = table.texts(name)
    numbers = [
        None if is_missing(text) else number_in(text, has_decimal_commas=table.has_decimal_commas)
        for text in texts
    ]
    others = [
        place
        for place, (text, number) in enumerate(zip(texts, numbers, strict=True))
        if number is None and not is_missing(text)
    ]
    has_missing = any(map(is_missing, texts))
    if others:
        return _of_texts(table, name, texts, others)
    for place, number in enumerate(numbers):
        if number is not None and not abs(number) <= _LARGEST:
            what = "not a finite number" if math.isinf(float(number)) else "too large to learn from"
            line = table.line_numbers[place]
            return f"line {line} has {texts[place].strip()!r} in column {name!r}, {what}"
    note = None
    if texts and all(number is None for number in numbers):
        note = f"the column {name!r} is empty"
    elif table.has_decimal_commas and _may_be_thousands(texts):
        shown = next(text.strip() for text in texts if "," in text)
        note = (
            f"in the column {name!r} commas are decimal: {shown!r} is "
            f"{number_in(shown, has_decimal_commas=True):g}; if they set thousands apart, take "
            "them out"
        )
    elif _is_counter(numbers):
        note = f"the column {name!r} looks like an identifier; if it is, leave it out: --drop"
    of_numbers = ColumnType(kind=NUMBER, may_be_missing=has_missing)
    return ReadColumn(column=Column(name=name, type=of_numbers), cells=tuple(numbers), note=note)


def _of_texts(
    table: CsvTable, name: str, texts: Sequence[str], others: Sequence[int]
) -> ReadColumn:
    cells = tuple(None if is_missing(text) else compose(text.strip()) for text in texts)
    values = sorted({cell for cell in cells if cell is not None})
    note = None
    present = sum(cell is not None for cell in cells)
    if len(others) < present / 2:
        first = others[0]
        note = (
            f"the column {name!r} is read as text: {len(others):,} of {present:,} cells are not "
            f"numbers, the first is {texts[first].strip()[:40]!r} in line "
            f"{table.line_numbers[first]}"
        )
    elif (beside := _unit_of(cell for cell in cells if cell is not None)) is not None:
        note = (
            f"the column {name!r} is read as text: its cells look like numbers with {beside!r} "
            "beside them; take that out if they are"
        )
    elif _is_name(values, present):
        note = f"the column {name!r} looks like an identifier; if it is, leave it out: --drop"
    is_category = len(values) <= _MOST_GUESSED_VALUES and all(
        len(value) <= LONGEST_VALUE and value.isprintable() for value in values
    )
    return ReadColumn(
        column=Column(
            name=name,
            type=ColumnType(
                kind=CATEGORY if is_category else TEXT,
                values=tuple(values) if is_category else (),
                may_be_missing=present < len(cells),
            ),
        ),
        cells=cells,
        note=note,
    )


def _unit_of(cells: Iterable[str]) -> str | None:
    """What stands beside every number of a column, the same in all cells; None if that is not so.

    Cells whose parts are divided by signs, such as dates, are not numbers beside something.
    """
    found = [_BESIDE_NUMBER.fullmatch(cell) for cell in cells]
    beside = {(each[1].strip(), each[3].strip()) for each in found if each is not None}
    if None in found or len(beside) != 1:
        return None
    ((before, after),) = beside
    if any(sign.isalpha() or sign == "-" for sign in before):  # a name: ward 7, P-0012
        return None
    return " ".join(filter(None, (before, after))) or None


def _is_name(values: Sequence[str], present: int) -> bool:
    """Whether texts without a space are all different: most likely a record's name."""
    return len(values) == present >= 20 and not any(" " in value for value in values)


def _may_be_thousands(texts: Sequence[str]) -> bool:
    """Whether every comma stands before exactly three digits and one may divide thousands."""
    commas = [text.strip() for text in texts if "," in text]
    return bool(commas) and all(_GROUPED.fullmatch(text) for text in commas)


def _is_counter(numbers: Sequence[float | None]) -> bool:
    """Whole numbers, all different and without large gaps: most likely a record's number."""
    if len(numbers) < 20 or None in numbers:
        return False
    present = {number for number in numbers if number is not None}
    return (
        len(present) == len(numbers)
        and all(number.is_integer() for number in present)
        and max(present) - min(present) < 2 * len(present)
    )


def inputs_of(table: CsvTable, columns: Sequence[Column]) -> list[list[Cell]]:
    """The rows of a table as a task has them: its columns, in its order; all bad ones at once."""
    found, problems = [], []
    absent = [column.name for column in columns if column.name not in table.columns]
    if absent:
        names = ", ".join(map(repr, absent))
        raise InputError(
            f"{table.path} has no column {names}; it has {', '.join(table.columns)}",
            hint="the first line must name the task's features",
        )
    for column in columns:
        cells: list[Cell] = []
        for line, text in zip(table.line_numbers, table.texts(column.name), strict=True):
            cell, problem = _cell(text, column, has_decimal_commas=table.has_decimal_commas)
            if problem is not None:
                problems.append(f"line {line} of {table.path} has {problem}")
                break
            cells.append(cell)
        found.append(cells)
    if problems:
        hint = "the task says what a column holds: see `dppp federation`"
        raise InputError("; ".join(problems), hint=hint)
    return [list(row) for row in zip(*found, strict=True)]


def _cell(text: str, column: Column, *, has_decimal_commas: bool) -> tuple[Cell, str | None]:
    """What is in a cell of a column of the task; or what is wrong with it."""
    shown = f"{text.strip()[:40]!r} in column {column.name!r}"
    if is_missing(text):
        if column.type.may_be_missing:
            return None, None
        return None, f"nothing in column {column.name!r}, which the task needs"
    if column.type.kind == NUMBER:
        number = number_in(text, has_decimal_commas=has_decimal_commas)
        if number is None:
            return None, f"{shown}, expected a number"
        return number, None if math.isfinite(number) else f"{shown}, expected a finite number"
    value = compose(text.strip())
    if column.type.kind == CATEGORY and value not in column.type.values:
        known = ", ".join(column.type.values[:8]) + (", …" if len(column.type.values) > 8 else "")
        return None, f"{shown}, which is not one of {known}"
    return value, None
