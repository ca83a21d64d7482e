"""What the cells of a table mean, and what is said where they mean nothing."""

import gzip
import math
from pathlib import Path

import pytest

from dppp.errors import InputError
from dppp.learning.cells import inputs_of, number_in, understand
from dppp.learning.csv_records import read_records
from dppp.learning.csv_table import CsvTable, read_table
from dppp.protocol.columns import CATEGORY, NUMBER, TEXT, Column, ColumnType


def table(folder: Path, text: str) -> CsvTable:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path)


@pytest.mark.parametrize(
    ("cell", "commas", "number"),
    [
        ("1", False, 1.0),
        (" -2.5e3 ", False, -2500.0),
        ("1,5", True, 1.5),
        ("-10,25", True, -10.25),
        ("1,5", False, None),
        ("1.234,5", True, 1234.5),
        ("1.234.567", True, 1234567.0),
        ("1.234", True, 1.234),
        ("1,234", True, 1.234),
        ("1,234", False, 1234.0),
        ("-12,345,678.5", False, -12345678.5),
        ("1,23", False, None),
        ("12,34,567", False, None),
        ("1 234 567,5", True, 1234567.5),
        ("1\u202f234", False, 1234.0),
        ("12'345.5", False, 12345.5),
        ("12 34", False, None),
        ("12.5%", False, 12.5),
        ("12,5 %", True, 12.5),
        ("%", False, None),
        ("1_000", False, None),
        ("abc", False, None),
        ("inf", False, math.inf),
    ],
)
def test_a_number_is_what_people_write_as_one(
    cell: str, commas: bool, number: float | None
) -> None:
    assert number_in(cell, has_decimal_commas=commas) == number


def test_columns_are_understood_by_their_cells(tmp_path: Path) -> None:
    notes = [f"word{place} and more" for place in range(60)]
    lines = [
        f"{place}.5,{'red' if place % 2 else 'blue'},{note},2024-01-{place % 28 + 1:02d},"
        for place, note in enumerate(notes)
    ]
    found = understand(
        table(tmp_path, "n,c,t,d,e\n" + "\n".join(lines) + "\nNA,?,,null,\n"),
        ["n", "c", "t", "d", "e"],
    )
    kinds = [each.column.type.kind for each in found]
    assert kinds == [NUMBER, CATEGORY, TEXT, CATEGORY, NUMBER]
    assert found[1].column.type.values == ("blue", "red")
    assert all(each.column.type.may_be_missing for each in found)
    assert [each.cells[-1] for each in found] == [None] * 5
    assert found[4].note == "the column 'e' is empty"


def test_amounts_with_a_currency_are_text_and_that_is_said(tmp_path: Path) -> None:
    lines = [
        f'"$ {1000 + place:,}",P-{place % 9},{place} kg,2024-01-0{place % 9 + 1}'
        for place in range(40)
    ]
    found = understand(
        table(tmp_path, "price,ward,weight,day\n" + "\n".join(lines)),
        ["price", "ward", "weight", "day"],
    )
    assert all(each.column.type.kind != NUMBER for each in found)
    price, ward, weight, day = (each.note for each in found)
    assert price is not None
    assert "look like numbers with '$'" in price
    assert weight is not None
    assert "'kg'" in weight
    assert (ward, day) == (None, None)


def test_commas_that_may_set_thousands_apart_are_decimal_and_that_is_said(tmp_path: Path) -> None:
    read = table(tmp_path, "a;b\n1,234;1,5\n12;2,345\n")
    a, b = understand(read, ["a", "b"])
    assert (a.cells, b.cells) == ((1.234, 12.0), (1.5, 2.345))
    assert a.note is not None
    assert "commas are decimal: '1,234' is 1.234" in a.note
    assert b.note is None


def test_texts_that_are_all_different_look_like_an_identifier(tmp_path: Path) -> None:
    lines = [f"{place * 7919 % 65536:04x}-x,two words {place}" for place in range(60)]
    name, words = understand(table(tmp_path, "a,b\n" + "\n".join(lines)), ["a", "b"])
    assert name.note is not None
    assert "looks like an identifier" in name.note
    assert words.note is None


def test_a_column_that_is_nearly_of_numbers_is_text_and_that_is_said(tmp_path: Path) -> None:
    [found] = understand(table(tmp_path, "a\n1\n2\nthree\n4\n5\n"), ["a"])
    assert found.column.type.kind == CATEGORY
    assert found.note is not None
    assert "1 of 5 cells are not numbers, the first is 'three' in line 4" in found.note


def test_all_bad_cells_of_a_query_are_named_at_once(tmp_path: Path) -> None:
    columns = [
        Column(name="n"),
        Column(name="c", type=ColumnType(kind=CATEGORY, values=("x", "y"))),
        Column(name="t", type=ColumnType(kind=TEXT, may_be_missing=True)),
    ]
    good = table(tmp_path, "t;c;n\nhello;x;1,5\n;y;2\n")
    assert inputs_of(good, columns) == [[1.5, "x", "hello"], [2.0, "y", None]]
    with pytest.raises(InputError) as caught:
        inputs_of(table(tmp_path, "n,c,t\n1,x,a\n,z,b\n"), columns)
    assert "line 3 of" in caught.value.message
    assert "nothing in column 'n', which the task needs" in caught.value.message
    assert "'z' in column 'c', which is not one of x, y" in caught.value.message
    with pytest.raises(InputError, match="no column 'c', 't'; it has n"):
        inputs_of(table(tmp_path, "n\n1\n"), columns)
    with pytest.raises(InputError, match="'inf' in column 'n', expected a finite number"):
        inputs_of(table(tmp_path, "n,c,t\ninf,x,a\n"), columns)
    with pytest.raises(InputError, match="'a' in column 'n', expected a number"):
        inputs_of(table(tmp_path, "n,c,t\na,x,a\n"), columns)


def test_a_file_in_another_encoding_or_format_is_named(tmp_path: Path) -> None:
    for data, words in [
        ("größe,kind\n1,x\n".encode("latin-1"), "looks like Windows-1252 (or Latin-1)"),
        ("a,b\n1,x\n".encode("utf-16"), "looks like UTF-16"),
        (b"PK\x03\x04rest", "an Excel workbook"),
        (b"\x1f\x8bnonsense", "packed by gzip, and damaged"),
        (gzip.compress(b"a,b\n1,2\n")[:-9], "packed by gzip, and damaged"),
        (b"PAR1 and nothing", "a damaged Parquet file"),
        (b"a,b\x00\n1,2\n", "bytes that no text has"),
    ]:
        path = tmp_path / "other.csv"
        path.write_bytes(data)
        with pytest.raises(InputError) as caught:
            read_table(path)
        assert words in caught.value.message
        assert caught.value.hint is not None


def test_parquet_gives_the_cells_that_csv_would(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    made = pyarrow.table({"a": [1.5, None, 3.0], "b": ["x", "y", None], "c": [True, False, None]})
    parquet.write_table(made, tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    assert found.columns == ("a", "b", "c")
    assert found.rows == (("1.5", "x", "True"), ("", "y", "False"), ("3.0", "", ""))
    nested = pyarrow.table({"a": [[1, 2]], "b": [1], "c": [{"d": 1}]})
    parquet.write_table(nested, tmp_path / "nested.parquet")
    with pytest.raises(InputError, match="lists or structures: a, c"):
        read_table(tmp_path / "nested.parquet")


def test_records_are_an_array_of_numbers_or_a_data_frame(tmp_path: Path) -> None:
    plain = table(tmp_path, "a,b,k\n1,2,x\n3,4,y\n").path
    assert read_records(plain, "k").rows.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    mixed = table(tmp_path, "a,b,k\n1,,x\n,cafe\u0301,y\n").path
    rows = read_records(mixed, "k").rows
    assert [str(dtype) for dtype in rows.dtypes] == ["float64", "object"]
    assert rows["b"].isna().tolist() == [True, False]
    assert rows["b"][1] == "caf\u00e9"
