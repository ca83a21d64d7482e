"""Rows as text, for models that read: each column by its name, one line each.

Used for the records that a teacher shows to its language model and for the rows that it is asked
about, which look alike. What is missing is left out. A value has no line breaks of its own, so
nothing in it can look like the end of its row or like another column.
"""

from collections.abc import Sequence
from typing import Any

from dppp.learning.frames import rows_as_lists
from dppp.protocol.inputs import Cell

_EMPTY = "(nothing is known)"
_CUT = " …"


def rows_as_texts(rows: Any, names: Sequence[str], *, longest: int) -> list[str]:
    """A text of at most `longest` characters for each row of an array or a DataFrame."""
    listed = rows_as_lists(rows, range(len(rows)))
    return [_cut(_row_as_text(row, names), longest) for row in listed]


def _row_as_text(row: Sequence[Cell], names: Sequence[str]) -> str:
    pairs = zip(names, row, strict=True)
    lines = [f"{name}: {_cell_as_text(cell)}" for name, cell in pairs if cell is not None]
    return "\n".join(lines) or _EMPTY


def _cell_as_text(cell: str | float) -> str:
    """A whole number has no point; a text is on one line."""
    if isinstance(cell, str):
        return " ".join(cell.split())
    number = float(cell)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - len(_CUT)] + _CUT
