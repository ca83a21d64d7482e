"""A table from a file: the one reader for records, votes, queries and lists of features.

Taken are CSV files with commas, semicolons, tabs or bars, the same packed by gzip, and Parquet. The
first line names the columns; Excel's `sep=;` above it is passed over. Cells are texts here; what
they mean is said in cells.py. A mistake is told by line and column, so that it can be found.
"""

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from dppp.errors import InputError, MissingExtraError

_DELIMITERS = ",;\t|"
_NAMED_DELIMITER = re.compile(rf"sep=([{_DELIMITERS}])\r?\n")
"""The line that tells Excel what divides the cells."""
_INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name."""
_MOST_BYTES = 2**30
"""Of a file, packed and unpacked; no more is read, whatever the file is."""

_OTHER_FORMATS = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (b"SQLite format 3", "an SQLite database"),
    (b"%PDF", "a PDF"),
    (b"BZh", "packed by bzip2"),
    (b"\xfd7zXZ", "packed by xz"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvTable:
    """Columns that are named, each once, and rows that have a cell for every column.

    A column without a name (an index that pandas wrote, a comma at the end of each line) is one
    that nobody can ask for.
    """

    path: Path
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    line_numbers: tuple[int, ...]
    """Where each row ends in the file; empty lines are passed over."""
    has_decimal_commas: bool = False
    """Whether 1,5 is a number: the cells are not divided by commas."""

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(self.columns).items() if name and count > 1]
        if twice:
            names = ", ".join(map(repr, twice[:8])) + (", …" if len(twice) > 8 else "")
            raise InputError(
                f"the first line of {self.path} names {names} twice; it must "
                "name every column, each once",
                hint="rename one of each pair; if the first line is a record, put a line of names "
                "above it",
            )
        for number, row in zip(self.line_numbers, self.rows, strict=True):
            if len(row) != len(self.columns):
                raise InputError(
                    f"line {number} of {self.path} has {len(row)} values, expected "
                    f"{len(self.columns)}, as many as names in the first line",
                    hint="look for a delimiter in a text without double quotes, a line of totals, "
                    "or lines above the names",
                )

    def texts(self, column: str) -> list[str]:
        """The cells of one column, as they are written."""
        place = self.place(column)
        return [row[place] for row in self.rows]

    def place(self, column: str) -> int:
        """Where a column is, from 0."""
        if column not in self.columns:
            raise InputError(
                f"{self.path} has no column {column!r}; it has {', '.join(self.columns)}",
                hint="check the name, and that the first line names the columns",
            )
        return self.columns.index(column)


def read_table(path: Path) -> CsvTable:
    """The table in a file; a file with nothing in it is a table without columns."""
    data = _read(path)
    if data.startswith(b"PAR1"):
        return _read_parquet(path, data)
    text = _decode(path, data)
    named = _NAMED_DELIMITER.match(text)
    delimiter = named[1] if named else _delimiter(text)
    try:
        csv.field_size_limit(max(csv.field_size_limit(), len(text)))
        reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
        if named:
            next(reader)
        lines = [(reader.line_num, tuple(line)) for line in reader if line]
    except csv.Error as error:
        raise InputError(
            f"{path} is not a CSV file: {error}", hint="look for a quote that is not closed"
        ) from error
    header: tuple[str, ...] = lines[0][1] if lines else ()
    return CsvTable(
        path=path,
        columns=tuple(name.strip() for name in header),
        rows=tuple(line for _, line in lines[1:]),
        line_numbers=tuple(number for number, _ in lines[1:]),
        has_decimal_commas=delimiter != ",",
    )


def _read(path: Path) -> bytes:
    """The bytes of a file, unpacked."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if data.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = unpacked.read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path} is packed by gzip, and damaged: {error}", hint="get it again"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}",
            hint="check the path",
        ) from error
    if len(data) > _MOST_BYTES:
        raise InputError(
            f"{path} holds more than {_MOST_BYTES:,} bytes", hint="take fewer rows or columns of it"
        )
    return data


def _decode(path: Path, data: bytes) -> str:
    for start, what in _OTHER_FORMATS:
        if data.startswith(start):
            raise InputError(
                f"{path} is {what}, not a CSV file", hint="save the table as CSV in UTF-8"
            )
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _other_encoding(path, "UTF-16", "it begins with the mark of that encoding")
    if b"\x00" in data[:4096]:
        raise InputError(
            f"{path} is not a CSV file: it holds bytes that no text has",
            hint="save the table as CSV in UTF-8",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        around = data[max(0, error.start - 12) : error.start + 12]
        before = around[: min(12, error.start)].rsplit(b"\n", 1)[-1]
        after = around[min(12, error.start) :].split(b"\n", 1)[0]
        word = (before + after).decode("cp1252", "replace").strip()
        reason = f"byte 0x{data[error.start]:02x} in line {number}, which would be {word!r}"
        raise _other_encoding(path, "Windows-1252 (or Latin-1)", reason) from error


def _other_encoding(path: Path, name: str, reason: str) -> InputError:
    iconv = "UTF-16" if name == "UTF-16" else "WINDOWS-1252"
    return InputError(
        f"{path} is not a CSV file in UTF-8; it looks like {name}: {reason}",
        hint=f"convert it: iconv -f {iconv} -t UTF-8 {path.name} > utf8.csv",
    )


def _delimiter(text: str) -> str:
    """What divides the first line most often, outside of quotes; a comma if nothing does."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    outside = "".join(first.split('"')[::2])
    return max(_DELIMITERS, key=outside.count)


def _read_parquet(path: Path, data: bytes) -> CsvTable:
    try:
        import pyarrow  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(f"{path} is a Parquet file", extra="parquet") from error
    try:
        table = parquet.read_table(pyarrow.BufferReader(data))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise InputError(
            f"{path} is a damaged Parquet file: {said}", hint="get it again"
        ) from error
    nested = [field.name for field in table.schema if pyarrow.types.is_nested(field.type)]
    if nested:
        raise InputError(
            f"{path} has columns of lists or structures: {', '.join(nested)}",
            hint="write a Parquet file without them",
        )
    columns = [[_text(value) for value in column.to_pylist()] for column in table.columns]
    return CsvTable(
        path=path,
        columns=tuple(_INDEX.sub("", name.strip()) for name in table.column_names),
        rows=tuple(zip(*columns, strict=True)),
        line_numbers=tuple(range(1, table.num_rows + 1)),
    )


def _text(value: object) -> str:
    """A cell as a CSV file would have it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
