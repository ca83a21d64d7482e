"""One reader for all CSV files: what it keeps, and what it names when it refuses."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from dppp.errors import InputError
from dppp.learning import csv_table
from dppp.learning.cells import inputs_of
from dppp.learning.csv_table import read_table
from dppp.protocol.columns import as_columns


def written(folder: Path, data: bytes) -> Path:
    path = folder / "table.csv"
    path.write_bytes(data)
    return path


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, b"\xef\xbb\xbf a ,b,name\r\n1,2,ann\r\n\r\n3,4,bob\r\n"))
    assert table.columns == ("a", "b", "name")
    assert inputs_of(table, as_columns(["b", "a"])) == [[2.0, 1.0], [4.0, 3.0]]
    assert table.texts("name") == ["ann", "bob"]
    assert table.line_numbers == (2, 4)


def test_a_header_alone_is_a_table_and_so_is_an_empty_file(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, b"a,b\n")).columns == ("a", "b")
    empty = read_table(written(tmp_path, b""))
    assert (empty.columns, empty.rows) == ((), ())


def test_a_value_may_span_lines_and_the_next_mistake_is_still_found(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, b'a,note\n1,"two\nlines"\nx,short\n'))
    assert table.texts("note") == ["two\nlines", "short"]
    with pytest.raises(InputError, match=r"line 4 of .* has 'x' in column 'a'"):
        inputs_of(table, as_columns(["a"]))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a,b,a,b,c\n1,2,3,4,5\n", "names 'a', 'b' twice"),
        (b"# made by hand\na,b\n1,2\n", "line 2 of .* has 2 values, expected 1"),
        (b"a,b\n1,2\n3\n", "line 3 of .* has 1 values, expected 2"),
        (b"a,b\n1,2,3\n", "line 2 of .* has 3 values, expected 2"),
        (b'a,b\n"1,2\n', "not a CSV file"),
        (b"a,b\n\xff,2\n", "not a CSV file in UTF-8"),
    ],
)
def test_what_is_not_a_table_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_table(written(tmp_path, data))


@pytest.mark.parametrize(
    "data", [b"a|b\n1|2\n", b"sep=;\na;b\n1;2\n", b"\xef\xbb\xbfsep=|\r\na|b\r\n1|2\r\n"]
)
def test_bars_and_the_line_that_tells_excel_the_delimiter(tmp_path: Path, data: bytes) -> None:
    table = read_table(written(tmp_path, data))
    assert (table.columns, table.rows) == (("a", "b"), (("1", "2"),))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_no_more_is_read_than_a_table_may_be(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_table, "_MOST_BYTES", 1_000)
    assert read_table(written(tmp_path, pack(b"a,b\n" + b"1,2\n" * 200))).columns == ("a", "b")
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        read_table(written(tmp_path, pack(b"a,b\n" + b"1,2\n" * 300)))
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        read_table(Path("/dev/zero"))


def test_columns_without_names_may_be_several(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, b",a,\n0,1,\n1,2,\n")).texts("a") == ["1", "2"]


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, b"a,b\n1,2\n"))
    with pytest.raises(InputError, match="no column 'c'; it has a, b"):
        inputs_of(table, as_columns(["a", "c"]))
