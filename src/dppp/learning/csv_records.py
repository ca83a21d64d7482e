"""Records from a CSV file: numbers in every column but the label, which may be text."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Rows of features with their labels."""

    features: tuple[str, ...]
    rows: NDArray[np.float64]
    labels: NDArray[np.str_]


def read_records(path: Path, label: str) -> Records:
    """The records in a file with a header; what cannot be used is named by row and column."""
    header, lines = _read(path)
    if label not in header:
        raise InputError(f"{path} has no column {label!r}; it has {', '.join(header)}")
    if len(set(header)) != len(header):
        raise InputError(f"{path} has two columns of the same name", hint="rename one")
    place = header.index(label)
    features = tuple(name for name in header if name != label)
    if not features:
        raise InputError(f"{path} has no column besides {label!r}; there is nothing to learn from")
    labels, rows = [], []
    for number, line in lines:
        if len(line) != len(header):
            raise InputError(
                f"line {number} of {path} has {len(line)} values, expected {len(header)}"
            )
        if not line[place].strip():
            raise InputError(
                f"line {number} of {path} has no label", hint="fill it in or leave it out"
            )
        labels.append(line[place].strip())
        rows.append(
            [
                _number(value, path, number, name)
                for name, value in zip(header, line, strict=True)
                if name != label
            ]
        )
    if len(set(labels)) < 2:
        raise InputError(f"the column {label!r} holds fewer than two classes; nothing to vote on")
    return Records(features=features, rows=np.array(rows), labels=np.array(labels))


def _read(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and each record with the number of its line; empty lines are passed over."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            lines = [(reader.line_num, line) for line in reader if line]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file in UTF-8: {error}") from error
    if len(lines) < 2:
        raise InputError(f"{path} has no records below its header")
    return [name.strip() for name in lines[0][1]], lines[1:]


def _number(value: str, path: Path, line: int, column: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise InputError(
            f"line {line} of {path} has {value!r} in column {column!r}, expected a number",
            hint="turn text into numbers, or leave the column out",
        ) from None
    if not math.isfinite(number):
        raise InputError(
            f"line {line} of {path} has {value!r} in column {column!r}",
            hint="fill in what is missing",
        )
    return number
