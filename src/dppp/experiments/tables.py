"""Tables of results as CSV: a line per row, a column for each field of its data class.

Used by `dppp reproduce` and the student's curve.
"""

import csv
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from dppp.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def write_table(rows: "Sequence[DataclassInstance]", path: Path) -> Path:
    """Nothing where there is no value; true and false in lower case, as in JSON."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(rows[0])])
            writer.writeheader()
            writer.writerows(
                {name: _cell(value) for name, value in asdict(row).items()} for row in rows
            )
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return path


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value
