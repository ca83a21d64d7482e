"""What a row of a task holds: columns of numbers, categories or texts, some allowed to be missing.

Used by the task, which all parties agree on, by the encoding of rows (protocol/inputs.py) and by
whoever reads tables. Limits are strict, since tasks and rows come from strangers.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from dppp.errors import InputError, TaskError

NUMBER, CATEGORY, TEXT = "number", "category", "text"
KINDS = (NUMBER, CATEGORY, TEXT)

MOST_COLUMNS = 2**16
MOST_VALUES = 10_000
"""That a category can have."""
LONGEST_VALUE = 200
"""Characters of one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """What one column holds. A category has the values that it may have, and nothing else does."""

    kind: str
    values: tuple[str, ...] = ()
    may_be_missing: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise TaskError(f"a column is one of {', '.join(KINDS)}, not {self.kind[:40]!r}")
        if (self.kind == CATEGORY) != bool(self.values):
            raise TaskError("a category has its values in the task, and no other column has any")
        if len(self.values) > MOST_VALUES or len(set(self.values)) < len(self.values):
            raise TaskError(f"the values of a category are at most {MOST_VALUES:,}, all different")
        for value in self.values:
            _require_value(value)

    @property
    def is_plain(self) -> bool:
        """Whether it is a number that is always there."""
        return self.kind == NUMBER and not self.may_be_missing


PLAIN = ColumnType(kind=NUMBER)
"""A number that is always there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column by its name."""

    name: str
    type: ColumnType = PLAIN


Columns = int | Sequence[Column]
"""The columns of a row; a number stands for this many columns of plain numbers."""


def require_types(types: Sequence[ColumnType], features: int) -> None:
    """Refuse types that do not go with the features of a task. None at all: plain numbers only."""
    if features > MOST_COLUMNS:
        raise TaskError(f"a task has at most {MOST_COLUMNS:,} features, not {features:,}")
    if types and len(types) != features:
        raise TaskError(f"{len(types):,} types of columns do not go with {features:,} features")
    if types and all(each.is_plain for each in types):
        raise TaskError("types are left out where every column is a number that is always there")


def types_of(columns: Sequence[Column]) -> tuple[ColumnType, ...]:
    """The types as a task has them: none where all are plain numbers."""
    types = tuple(column.type for column in columns)
    return () if all(each.is_plain for each in types) else types


def as_columns(features: Sequence[str | Column]) -> tuple[Column, ...]:
    """Columns, where names alone are those of plain numbers."""
    return tuple(Column(name=each) if isinstance(each, str) else each for each in features)


def is_plain(columns: Columns) -> bool:
    """Whether a row is numbers only, none of them ever missing."""
    return isinstance(columns, int) or all(column.type.is_plain for column in columns)


def compose(text: str) -> str:
    """The one form of a text (NFC): an accent is part of its letter wherever that can be."""
    return unicodedata.normalize("NFC", text)


def is_composed(text: str) -> bool:
    """Whether a text is in that form."""
    return unicodedata.is_normalized("NFC", text)


def _require_value(value: str) -> None:
    is_short = 0 < len(value) <= LONGEST_VALUE
    if not is_short or not value.isprintable() or value != value.strip() or not is_composed(value):
        raise TaskError(
            f"each value of a category must be 1 to {LONGEST_VALUE} printable characters, without "
            "spaces around them, in Unicode's composed form (NFC)"
        )


def require_width(found: int, columns: Sequence[Column], where: str) -> None:
    """Refuse a row with another number of values."""
    if found != len(columns):
        raise InputError(
            f"{where} has {found:,} values; the task has {len(columns):,} features",
            hint="give a value for each of them, in their order",
        )
