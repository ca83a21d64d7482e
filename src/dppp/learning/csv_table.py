"""A CSV file as a table: the one reader for records, votes, queries and lists of features.

The first line names the columns. A mistake is told by line and column, so that it can be found.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dppp.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvTable:
    """Columns that are named, each once, and rows that have a value for every column."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    line_numbers: tuple[int, ...]
    """Where each row ends in the file; empty lines are passed over."""

    def __post_init__(self) -> None:
        twice = [name for name in self.columns if self.columns.count(name) > 1]
        if twice:
            raise InputError(
                f"the first line of {self.path} names the column {twice[0]!r} twice; it must name "
                "every column, each once"
            )
        for number, row in zip(self.line_numbers, self.rows, strict=True):
            if len(row) != len(self.columns):
                raise InputError(
                    f"line {number} of {self.path} has {len(row)} values, expected "
                    f"{len(self.columns)}"
                )

    def texts(self, column: str) -> list[str]:
        """The values of one column, as they are written."""
        place = self._place(column)
        return [row[place] for row in self.rows]

    def numbers(self, columns: Sequence[str]) -> list[list[float]]:
        """The values of some columns in that order, row by row."""
        places = [self._place(column) for column in columns]
        return [
            [self._number(number, row, place) for place in places]
            for number, row in zip(self.line_numbers, self.rows, strict=True)
        ]

    def _place(self, column: str) -> int:
        if column not in self.columns:
            raise InputError(
                f"{self.path} has no column {column!r}; it has {', '.join(self.columns)}"
            )
        return self.columns.index(column)

    def _number(self, line: int, row: Sequence[str], place: int) -> float:
        try:
            number = float(row[place])
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise InputError(
                f"line {line} of {self.path} has {row[place]!r} in column "
                f"{self.columns[place]!r}, expected a finite number",
                hint="turn text into numbers, and fill in what is missing",
            )
        return number


def read_table(path: Path) -> CsvTable:
    """The table in a CSV file in UTF-8; a file with nothing in it is a table without columns."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            lines = [(reader.line_num, tuple(line)) for line in reader if line]
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}",
            hint="check the path",
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file in UTF-8: {error}") from error
    header: tuple[str, ...] = lines[0][1] if lines else ()
    return CsvTable(
        path=path,
        columns=tuple(name.strip() for name in header),
        rows=tuple(line for _, line in lines[1:]),
        line_numbers=tuple(number for number, _ in lines[1:]),
    )
