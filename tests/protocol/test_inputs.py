"""A query's input: rows of finite numbers, by the querier's and by every teacher's reading."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.vectors.make_rows import MIXED_COLUMNS

from dppp.errors import InputError, TaskError
from dppp.protocol.columns import CATEGORY, NUMBER, TEXT, Column, ColumnType, compose
from dppp.protocol.inputs import decode_rows, encode_rows, join_rows, split_rows

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/rows.json").read_text(encoding="utf-8"))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_rows_come_back_as_they_went(rows: list[tuple[float, float]]) -> None:
    encoded = encode_rows(rows, 2)
    data = join_rows(encoded)
    assert [tuple(row) for row in decode_rows(data, len(rows), 2).tolist()] == rows
    assert tuple(split_rows(data, len(rows), 2)) == encoded


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([["a", "b"]], "must be numbers"),
        ([[1, None]], "not a finite number"),
        ([[1, object()]], "must be numbers"),
        ([[1, 2], [3]], "must be numbers"),
        ([1, 2], "rows of 2 numbers"),
        ([[1, 2, 3]], "rows of 2 numbers"),
        ([[[1, 2]]], "rows of 2 numbers"),
        ([[1, math.nan]], "input 0 holds"),
        ([[1, 2], [math.inf, 2]], "input 1 holds"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(rows: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        encode_rows(rows, 2)


@pytest.mark.parametrize(
    ("data", "count", "reason"),
    [
        (b"", 0, "0 bytes are not 0 rows"),
        (b"", 1, "0 bytes are not 1 rows"),
        (bytes(31), 2, "31 bytes are not 2 rows"),
        (bytes(24), 1, "24 bytes are not 1 rows"),
        (bytes(32), 1, "32 bytes are not 1 rows"),
        (bytes(16), 2, "16 bytes are not 2 rows"),
        (struct.pack("<2d", 1, math.nan), 1, "not a finite number"),
        (struct.pack("<2d", -math.inf, 1), 1, "not a finite number"),
    ],
)
def test_no_teacher_shows_its_model_anything_else(data: bytes, count: int, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        decode_rows(data, count, 2)
    if "finite" not in reason:
        with pytest.raises(InputError, match=reason):
            split_rows(data, count, 2)


VALUES = ("east", "west", "süd")
KINDS = st.sampled_from(
    [
        ColumnType(kind=kind, values=VALUES if kind == CATEGORY else (), may_be_missing=missing)
        for kind in (NUMBER, CATEGORY, TEXT)
        for missing in (False, True)
    ]
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)


def cells_of(kind: ColumnType) -> st.SearchStrategy[Any]:
    """Cells in their one form: zero without a sign, texts composed."""
    cells = {
        NUMBER: NUMBERS.map(lambda number: number + 0.0),
        CATEGORY: st.sampled_from(VALUES),
        TEXT: TEXTS.map(compose),
    }[kind.kind]
    return st.none() | cells if kind.may_be_missing else cells


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[list[Any]]]:
    kinds = draw(st.lists(KINDS, min_size=1, max_size=4))
    columns = [Column(name=f"c{place}", type=kind) for place, kind in enumerate(kinds)]
    row = st.tuples(*(cells_of(kind) for kind in kinds)).map(list)
    return columns, draw(st.lists(row, min_size=1, max_size=4))


@given(tables())
def test_typed_rows_come_back_as_they_went(table: tuple[list[Column], list[list[Any]]]) -> None:
    columns, rows = table
    encoded = encode_rows(rows, columns)
    data = join_rows(encoded)
    assert decode_rows(data, len(rows), columns).tolist() == rows
    assert tuple(split_rows(data, len(rows), columns)) == encoded


@given(tables())
def test_different_rows_have_different_bytes(table: tuple[list[Column], list[list[Any]]]) -> None:
    columns, rows = table
    encoded = encode_rows(rows, columns)
    for one, bytes_of_one in zip(rows, encoded, strict=True):
        for other, bytes_of_other in zip(rows, encoded, strict=True):
            assert (one == other) == (bytes_of_one == bytes_of_other)


@given(tables(), st.data())
def test_bytes_are_read_only_if_they_are_the_one_encoding(
    table: tuple[list[Column], list[list[Any]]], data: st.DataObject
) -> None:
    columns, rows = table
    found = bytearray(join_rows(encode_rows(rows, columns)))
    place = data.draw(st.integers(0, len(found) - 1))
    found[place] = data.draw(st.integers(0, 255))
    try:
        read = decode_rows(bytes(found), len(rows), columns)
    except InputError:
        return
    assert join_rows(encode_rows(read, columns)) == bytes(found)


@pytest.mark.parametrize("vector", VECTORS["mixed"], ids=lambda vector: vector["name"])
def test_typed_rows_are_those_of_the_vectors(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["bytes"])
    if vector["reason"] is None:
        assert join_rows(encode_rows(vector["rows"], MIXED_COLUMNS)) == data
        assert decode_rows(data, vector["count"], MIXED_COLUMNS).tolist() == vector["rows"]
        return
    with pytest.raises(InputError, match=vector["reason"]):
        decode_rows(data, vector["count"], MIXED_COLUMNS)
    with pytest.raises(InputError, match=vector["reason"]):
        split_rows(data, vector["count"], MIXED_COLUMNS)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([1.0, "east"], "input 0 has 2 values; the task has 3 features"),
        ([1.0, None, "x"], "column 'ward': the value is missing"),
        (["1", "east", "x"], "column 'age': expected a number, got str"),
        ([True, "east", "x"], "column 'age': expected a number, got bool"),
        ([math.inf, "east", "x"], "column 'age': expected a finite number"),
        ([10**400, "east", "x"], "column 'age': expected a finite number"),
        ([1.0, "north", "x"], "'north' is not one of its values"),
        ([1.0, 3, "x"], "column 'ward': expected text, got int"),
        ([1.0, "east", 3.5], "column 'note': expected text, got float"),
        ([1.0, "east", "\ud800"], "the text is not Unicode"),
        ([1.0, "east", "x" * 65_537], "65,537 bytes, 65,536 at most"),
        ("abc", "input 0 is not a row"),
        (7, "input 0 is not a row"),
    ],
)
def test_a_cell_that_is_not_of_its_column_is_named(row: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        encode_rows([row], MIXED_COLUMNS)


def test_one_row_has_one_encoding_whatever_way_it_is_written() -> None:
    assert encode_rows([[-0.0]], 1) == encode_rows([[0.0]], 1)
    one = encode_rows([[-0.0, " süd ", "cafe\u0301"]], MIXED_COLUMNS)
    assert one == encode_rows([[0, "su\u0308d", "caf\u00e9"]], MIXED_COLUMNS)
    assert encode_rows([[math.nan, "east", None]], MIXED_COLUMNS) == encode_rows(
        [[None, "east", math.nan]], MIXED_COLUMNS
    )
    with pytest.raises(InputError, match="zero has no sign"):
        decode_rows(struct.pack("<d", -0.0), 1, 1)


def test_a_missing_text_is_not_an_empty_one() -> None:
    empty, missing = encode_rows([[1, "east", ""], [1, "east", None]], MIXED_COLUMNS)
    assert empty != missing


def test_numbers_alone_keep_their_bytes() -> None:
    columns = [Column(name="a"), Column(name="b")]
    assert encode_rows([[1, 2.5]], columns) == (struct.pack("<2d", 1, 2.5),)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kind": "date"}, "a column is one of number, category, text, not 'date'"),
        ({"kind": CATEGORY}, "a category has its values"),
        ({"kind": TEXT, "values": ("a",)}, "a category has its values"),
        ({"kind": CATEGORY, "values": ("a", "a")}, "all different"),
        ({"kind": CATEGORY, "values": tuple(map(str, range(10_001)))}, "at most 10,000"),
        ({"kind": CATEGORY, "values": ("",)}, "1 to 200 printable"),
        ({"kind": CATEGORY, "values": (" a",)}, "1 to 200 printable"),
        ({"kind": CATEGORY, "values": ("a\nb",)}, "1 to 200 printable"),
        ({"kind": CATEGORY, "values": ("x" * 201,)}, "1 to 200 printable"),
        ({"kind": CATEGORY, "values": ("e\u0301",)}, "composed"),
    ],
)
def test_a_column_that_cannot_be_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(TaskError, match=reason):
        ColumnType(**fields)
