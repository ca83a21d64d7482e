"""Records from a CSV file: numbers in every column but the label, which may be text."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.learning.csv_table import CsvTable, read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Rows of features with their labels."""

    features: tuple[str, ...]
    rows: NDArray[np.float64]
    labels: NDArray[np.str_]


def read_records(path: Path, label: str) -> Records:
    """The records in a file with a header; what cannot be used is named by line and column."""
    table = read_table(path)
    if not table.rows:
        raise InputError(f"{path} has no records below its header")
    labels = _labels(table, label)
    features = tuple(name for name in table.columns if name != label)
    if not features:
        raise InputError(f"{path} has no column besides {label!r}; there is nothing to learn from")
    rows = table.numbers(features)
    if len(set(labels)) < 2:
        raise InputError(f"the column {label!r} holds fewer than two classes; nothing to vote on")
    return Records(features=features, rows=np.array(rows), labels=np.array(labels))


def _labels(table: CsvTable, column: str) -> list[str]:
    labels = [text.strip() for text in table.texts(column)]
    if "" in labels:
        number = table.line_numbers[labels.index("")]
        raise InputError(
            f"line {number} of {table.path} has no label",
            hint="fill it in or leave the line out",
        )
    return labels
