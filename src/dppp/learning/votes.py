"""Votes as people have them: a matrix of class numbers or names, a row per query.

Used by planning, from Python and from the command line, whose cells are all text.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from dppp.errors import InputError
from dppp.learning.win_probability import ObservedVotes
from dppp.whole_numbers import require_whole

_MOST_CLASSES = 10_000
_CLASSES_WITHOUT_WORD = 100
_QUERIES_TO_JUDGE = 5
"""On fewer, teachers may well vote for different classes throughout."""

_WHAT_VOTES_ARE = (
    "give a row per query, a column per teacher with the class it votes for, and `label` if it is "
    "known; for a table of records use --data FILE --label COLUMN"
)


def count_votes(votes: Any, labels: Any = None, *, classes: int | None = None) -> ObservedVotes:
    """Count a matrix with a row per query and a column per teacher, with the true label of each.

    Whole numbers are class numbers from 0; anything else are names of classes. `classes` is the
    number of classes, by default as many as occur.
    """
    cells = _cells(votes)
    right = None if labels is None else _column(labels, len(cells))
    everything = [cell for row in cells for cell in row] + (right or [])
    if classes is not None:
        classes = require_whole("classes", classes, least=2)
    numbers = _class_numbers(everything)
    if numbers is None:
        numbers = _number_names(everything, len(right or []))
    wide = max(2, max(numbers) + 1) if classes is None else classes
    _require_known(numbers, everything, wide)
    placed = np.array(numbers[: len(cells) * len(cells[0])]).reshape(len(cells), -1)
    counts = np.stack([np.bincount(row, minlength=wide) for row in placed])
    return ObservedVotes(
        counts=counts.astype(np.int64),
        labels=None if right is None else np.array(numbers[-len(right) :], dtype=np.int64),
    )


def require_votes(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Refuse a table of texts that shows that it is not votes: fractions, or columns apart."""
    for row in rows:
        for name, cell in zip(columns, row, strict=True):
            number = _as_number(cell)
            if number is not None and not math.isnan(number) and not _is_class_number(number):
                raise InputError(
                    f"the column {name!r} holds {cell.strip()}, which is not a class: these are "
                    "not votes",
                    hint=_WHAT_VOTES_ARE,
                )
    if len(rows) >= _QUERIES_TO_JUDGE:
        _require_company(columns, rows)


def _require_company(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Teachers vote for the same classes: a column with values of its own is something else."""
    values = [{row[place].strip() for row in rows} for place in range(len(columns))]
    seen = Counter(value for each in values for value in each)
    for name, own in zip(columns, values, strict=True):
        if len(columns) > 1 and all(seen[value] == 1 for value in own):
            raise InputError(
                f"the column {name!r} is not a teacher's votes: no other column has any of its "
                f"values ({_shorten(sorted(own))})",
                hint=_WHAT_VOTES_ARE,
            )


def require_few_classes(rows: Sequence[Sequence[str]]) -> None:
    """Refuse more different values than anybody votes on without saying so."""
    different = len({cell.strip() for row in rows for cell in row})
    if different > _CLASSES_WITHOUT_WORD:
        raise InputError(
            f"{different:,} different values are too many to be taken for votes",
            hint=f"if they are classes, give their number as --classes; {_WHAT_VOTES_ARE}",
        )


def _is_class_number(number: float) -> bool:
    return number >= 0 and number.is_integer()


def _cells(votes: Any) -> list[list[object]]:
    try:
        cells = [list(row) for row in _plain(votes)]
    except TypeError as error:
        raise InputError(
            "votes must be a table", hint="give one row per query, one column per teacher"
        ) from error
    if not cells or not cells[0]:
        raise InputError(
            "the votes hold no query", hint="give one row per query, one column per teacher"
        )
    for place, row in enumerate(cells):
        if len(row) != len(cells[0]):
            raise InputError(
                f"query {place + 1} has {len(row)} votes, the first has {len(cells[0])}",
                hint="every teacher votes in every query",
            )
    return cells


def _column(labels: Any, queries: int) -> list[object]:
    column = list(_plain(labels))
    if len(column) != queries:
        raise InputError(
            f"{len(column)} labels do not go with {queries} queries", hint="give one per query"
        )
    return column


def _plain(values: Any) -> Any:
    """Python's own objects, for arrays and data frames as well."""
    return np.asarray(values).tolist() if hasattr(values, "__array__") else values


def _class_numbers(cells: Sequence[object]) -> list[int] | None:
    """All cells as whole numbers; None if they are names."""
    distinct = {cell: _as_number(cell) for cell in dict.fromkeys(cells)}
    if any(isinstance(number, float) and math.isnan(number) for number in distinct.values()):
        raise InputError("a vote or label is missing (empty or NaN)", hint="give a class for each")
    if any(number is None for number in distinct.values()):
        return None
    for cell, number in distinct.items():
        if number is not None and not _is_class_number(number):
            raise InputError(
                f"unknown class {cell}: class numbers are whole and start at 0",
                hint="number the classes from 0, or give their names",
            )
    return [int(distinct[cell] or 0) for cell in cells]


def _as_number(cell: object) -> float | None:
    """The number in a cell, NaN if there is nothing in it, None if it is a name."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _number_names(cells: Sequence[object], labels: int) -> list[int]:
    """Number names in the order of the alphabet; a label must be a name that gets votes."""
    names = [str(cell).strip() for cell in cells]
    voted = sorted(set(names[: len(names) - labels]))
    numbers = {name: number for number, name in enumerate(voted)}
    for name in names[len(names) - labels :]:
        if name not in numbers:
            raise InputError(
                f"unknown class {name!r} among the labels: no teacher votes for it; "
                f"the votes are for {_shorten(voted)}",
                hint="check the labels, or say how many classes there are",
            )
    return [numbers[name] for name in names]


def _require_known(numbers: Sequence[int], cells: Sequence[object], classes: int) -> None:
    if classes > _MOST_CLASSES:
        raise InputError(
            f"{classes:,} classes are more than {_MOST_CLASSES:,}",
            hint="number the classes from 0, without gaps",
        )
    for number, cell in zip(numbers, cells, strict=True):
        if number >= classes:
            raise InputError(
                f"unknown class {cell}: with {classes} classes the numbers are 0 to "
                f"{classes - 1}, and there is room for {classes} names",
                hint="raise classes or mend the votes",
            )


def _shorten(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
