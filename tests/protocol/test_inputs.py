"""A query's input: rows of finite numbers, by the querier's and by every teacher's reading."""

import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dppp.errors import InputError
from dppp.protocol.inputs import decode_inputs, encode_inputs

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_rows_come_back_as_they_went(rows: list[tuple[float, float]]) -> None:
    assert [tuple(row) for row in decode_inputs(encode_inputs(rows, 2), 2)] == rows


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
        encode_inputs(rows, 2)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([b""], "input 0 has 0 bytes"),
        ([bytes(16), bytes(15)], "input 1 has 15 bytes"),
        ([bytes(24)], "input 0 has 24 bytes"),
        ([struct.pack("<2d", 1, math.nan)], "not a finite number"),
        ([struct.pack("<2d", -math.inf, 1)], "not a finite number"),
    ],
)
def test_no_teacher_shows_its_model_anything_else(inputs: list[bytes], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        decode_inputs(inputs, 2)
