"""Records from a table: what its columns hold is found out, and the label may be text.

Rows are an array where every column is of numbers and none is missing, and a DataFrame otherwise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.learning.cells import ReadColumn, inputs_of, is_missing, number_in, understand
from dppp.learning.csv_table import CsvTable, read_table
from dppp.learning.frames import frame_of
from dppp.protocol.columns import NUMBER, TEXT, Column, ColumnType, compose, is_plain
from dppp.protocol.inputs import Cell

_MOST_NUMBERS = 20
"""Different labels that are numbers with a fraction: more of them are an amount, not classes."""
_MOST_WHOLE_NUMBERS = 100
_MOST_CLASSES = 1_000
_MOST_SHOWN = 8
"""Names of columns in one note."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """Rows of features with their labels."""

    features: tuple[str, ...]
    rows: Any
    """An array, or a DataFrame with columns of floats and of texts."""
    labels: NDArray[Any]
    """Texts of classes, numbers, or a matrix of zeros and ones with a column for each label."""
    persons: NDArray[np.str_] | None = None
    """Whom each record is about, where a column says so."""
    ids: NDArray[np.str_] | None = None
    """A name of each record that lasts, where a column has one."""
    columns: tuple[Column, ...] = ()
    """What the features hold, where they were read from a table."""
    notes: tuple[str, ...] = ()
    """What somebody should know about how the table was read."""
    label_names: tuple[str, ...] = ()
    """The columns that the labels are from."""


def read_records(
    path: Path,
    label: str | Sequence[str],
    *,
    is_number: bool = False,
    person: str | None = None,
    identifier: str | None = None,
    drop: Sequence[str] = (),
    only: Sequence[str] = (),
    columns: Sequence[Column] | None = None,
) -> Records:
    """The records in a file with a header; what cannot be used is named, all of it at once.

    Without `only` every column is a feature, but those that `drop` names. With `columns`, those of
    a task, the features are these, read as the task says; anything may be missing in a record.
    The label is a class; several columns are several labels, of zeros and ones; with `is_number`
    it is a number.
    """
    label_names = (label,) if isinstance(label, str) else tuple(label)
    table = read_table(path)
    if not table.rows:
        raise InputError(
            f"{path} has no records below its header",
            hint="give a table: a line with the names of the columns, then a line per record",
        )
    others = [name for name in (*label_names, person, identifier) if name is not None]
    _require_columns(table, [*others, *drop, *only], label_names)
    notes: list[str] = []
    for name in label_names:
        table, said = _with_labels(table, name)
        notes += said
    if is_number:
        labels = _numbers_in(table, label_names[0])
    elif isinstance(label, str):
        labels = np.array([compose(text.strip()) for text in table.texts(label)])
        _require_classes(labels.tolist(), label, has_decimal_commas=table.has_decimal_commas)
    else:
        labels = np.stack([_zeros_and_ones(table, name) for name in label_names], axis=1)
    make = partial(
        _records,
        table,
        labels=labels,
        label_names=label_names,
        person=person,
        identifier=identifier,
    )
    if columns is not None:
        return make(columns=columns, cells=_read_as(table, columns), notes=notes)
    names = [
        name
        for name in only or table.columns
        if name not in others and name not in drop and name != ""
    ]
    if not only and (unnamed := table.columns.count("")):
        notes.append(
            "a column without a name is left out"
            if unnamed == 1
            else f"{unnamed:,} columns without a name are left out"
        )
    found = understand(table, names)
    kept = [each for each in found if any(cell is not None for cell in each.cells)]
    if not kept:
        raise InputError(
            f"{path} has nothing to learn from: no column besides "
            f"{', '.join(map(repr, others))} is taken and holds a value",
            hint="give a table with columns of features, or leave --drop and --columns out",
        )
    notes += [each.note + _left_out(each, kept) for each in found if each.note is not None]
    notes += _of_one_value(kept)
    found_columns = tuple(each.column for each in kept)
    cells = [each.cells for each in kept]
    return make(columns=found_columns, cells=cells, notes=notes)


def _records(
    table: CsvTable,
    columns: Sequence[Column],
    cells: Sequence[Sequence[Cell]],
    *,
    labels: NDArray[Any],
    label_names: tuple[str, ...],
    person: str | None,
    identifier: str | None,
    notes: Sequence[str],
) -> Records:
    rows = np.array(cells, dtype=np.float64).T if is_plain(columns) else frame_of(columns, cells)
    return Records(
        features=tuple(column.name for column in columns),
        rows=rows,
        labels=labels,
        persons=None if person is None else np.array(table.texts(person)),
        ids=None if identifier is None else np.array(table.texts(identifier)),
        columns=tuple(columns),
        notes=tuple(notes),
        label_names=label_names,
    )


def _numbers_in(table: CsvTable, label: str) -> NDArray[np.float64]:
    """The numbers to predict."""
    found = [
        number_in(text, has_decimal_commas=table.has_decimal_commas) for text in table.texts(label)
    ]
    for place, number in enumerate(found):
        if number is None or not math.isfinite(number):
            raise InputError(
                f"line {table.line_numbers[place]} of {table.path} has "
                f"{table.texts(label)[place]!r} in column {label!r}, not a finite number",
                hint="mend it, or leave the range out if the column holds classes",
            )
    return np.array(found, dtype=np.float64)


def _zeros_and_ones(table: CsvTable, label: str) -> NDArray[np.int64]:
    """One of several labels: whether each record has it."""
    texts = [text.strip() for text in table.texts(label)]
    for place, text in enumerate(texts):
        if text not in ("0", "1"):
            raise InputError(
                f"line {table.line_numbers[place]} of {table.path} has {text!r} in column "
                f"{label!r}: of several labels each column holds 0 or 1",
                hint="write 1 where the record has the label and 0 where it has not",
            )
    return np.array(texts, dtype=np.int64)


def _read_as(table: CsvTable, columns: Sequence[Column]) -> list[list[Cell]]:
    """Cells by column, as the task says; records may lack what a query must have."""
    relaxed = [
        Column(
            name=column.name,
            type=ColumnType(
                kind=NUMBER if column.type.kind == NUMBER else TEXT, may_be_missing=True
            ),
        )
        for column in columns
    ]
    return [list(cells) for cells in zip(*inputs_of(table, relaxed), strict=True)]


def _left_out(each: ReadColumn, kept: Sequence[ReadColumn]) -> str:
    return "" if each in kept else " and is left out"


def _of_one_value(kept: Sequence[ReadColumn]) -> list[str]:
    names = [each.column.name for each in kept if len(set(each.cells)) == 1]
    if not names:
        return []
    shown = ", ".join(map(repr, names[:_MOST_SHOWN]))
    more = f" and {len(names) - _MOST_SHOWN:,} more" if len(names) > _MOST_SHOWN else ""
    hold = "the column {} holds" if len(names) == 1 else "the columns {} hold"
    return [f"{hold.format(shown + more)} the same in every record: nothing to learn from"]


def _require_columns(table: CsvTable, names: Sequence[str], labels: Sequence[str]) -> None:
    absent = list(dict.fromkeys(name for name in names if name not in table.columns))
    if absent:
        raise InputError(
            f"{table.path} has no column {', '.join(map(repr, absent))}; it has "
            f"{', '.join(table.columns)}",
            hint="the first line of the file must name the columns",
        )
    for label in labels:
        if names.count(label) > 1:
            raise InputError(
                f"the column {label!r} is the label, so it is not among the others",
                hint="name it once, by --label",
            )


def _with_labels(table: CsvTable, label: str) -> tuple[CsvTable, list[str]]:
    """The records that have a label; how many do not is said."""
    has_label = [not is_missing(text) for text in table.texts(label)]
    left_out = len(has_label) - sum(has_label)
    if not left_out:
        return table, []
    first = table.line_numbers[has_label.index(False)]
    if left_out == len(has_label):
        raise InputError(
            f"no record of {table.path} has a label in column {label!r}",
            hint="name another column, or fill this one in",
        )
    places = [place for place, is_there in enumerate(has_label) if is_there]
    kept = CsvTable(
        path=table.path,
        columns=table.columns,
        rows=tuple(table.rows[place] for place in places),
        line_numbers=tuple(table.line_numbers[place] for place in places),
        has_decimal_commas=table.has_decimal_commas,
    )
    records = "record has" if left_out == 1 else "records have"
    are = "is" if left_out == 1 else "are"
    return kept, [f"{left_out:,} {records} no label (the first in line {first}) and {are} left out"]


def _require_classes(labels: Sequence[str], column: str, *, has_decimal_commas: bool) -> None:
    classes = set(labels)
    if len(classes) < 2:
        raise InputError(
            f"the column {column!r} holds fewer than two classes; nothing to vote on",
            hint="name another column, or give records of both",
        )
    numbers = [number_in(text, has_decimal_commas=has_decimal_commas) for text in classes]
    whole = [number is not None and number.is_integer() for number in numbers]
    most = _MOST_WHOLE_NUMBERS if all(whole) else _MOST_NUMBERS
    if None not in numbers and len(classes) > most:
        raise InputError(
            f"the column {column!r} holds {len(classes):,} different numbers: an amount, and "
            "teachers vote on classes",
            hint="ask for a number with --low and --high, make classes of it, such as low, middle "
            "and high, or name another column",
        )
    if len(classes) > min(_MOST_CLASSES, max(2, len(labels) / 2)):
        raise InputError(
            f"the column {column!r} holds {len(classes):,} different labels in {len(labels):,} "
            "records: too many for classes",
            hint="name a column with few different values",
        )
