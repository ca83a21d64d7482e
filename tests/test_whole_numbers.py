"""Whole numbers as users hand them in: numpy's are taken and become Python's, True is refused."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from dppp import Binomial, Spending, Trust, calibrate
from dppp.errors import InputError
from dppp.whole_numbers import keep_whole, require_whole


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_what_is_a_whole_number_to_python_comes_back_as_an_int(value: object) -> None:
    assert require_whole("parts", value) == 3
    assert type(require_whole("parts", value)) is int


@pytest.mark.parametrize(
    "value", [True, np.True_, 3.0, np.float64(3), "3", None, math.nan, [3], np.array([3, 4]), 0, -1]
)
def test_anything_else_is_refused_by_name(value: object) -> None:
    with pytest.raises(InputError, match="parts must be a whole number, 1 or more, got"):
        require_whole("parts", value)


def test_the_least_is_taken_and_one_less_is_not() -> None:
    assert require_whole("parts", 0, least=0) == 0
    with pytest.raises(InputError, match="2 or more"):
        require_whole("parts", 1, least=2)


def test_fields_of_a_frozen_record_become_plain_integers() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Parts:
        one: int
        other: int

        def __post_init__(self) -> None:
            keep_whole(self, "one", "other", least=0)

    assert type(Parts(one=np.int32(1), other=0).one) is int  # type: ignore[arg-type]
    with pytest.raises(InputError, match="other"):
        Parts(one=1, other=-1)


def test_numbers_of_numpy_go_through_the_python_interface() -> None:
    two, nine = np.int64(2), np.int64(9)
    trust = Trust.with_defaults(nine)  # type: ignore[arg-type]
    assert {type(trust.teachers), type(trust.colluders), type(trust.dropouts)} == {int}
    assert type(Spending(noise=Binomial(total_tosses=4), queries=two).queries) is int  # type: ignore[arg-type]
    assert type(Binomial(total_tosses=nine).total_tosses) is int  # type: ignore[arg-type]
    found = calibrate("skellam", epsilon=1, delta=1e-5, teachers=nine, queries=two, classes=two)  # type: ignore[arg-type]
    assert json.loads(json.dumps(found.to_json()))["queries"] == 2
