import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.strategies import trusts

from dppp.errors import InputError
from dppp.privacy.trust import Trust


@given(trusts())
def test_two_quorums_share_an_honest_teacher(trust: Trust) -> None:
    smallest_overlap = 2 * trust.threshold - trust.teachers
    assert smallest_overlap > trust.colluders


@given(trusts())
def test_one_teacher_less_in_the_threshold_would_not_do(trust: Trust) -> None:
    assert 2 * (trust.threshold - 1) - trust.teachers <= trust.colluders


@given(trusts())
def test_colluders_alone_cannot_open(trust: Trust) -> None:
    assert trust.colluders < trust.threshold


@given(st.integers(2, 2000))
def test_the_defaults_make_a_federation_that_can_open(teachers: int) -> None:
    trust = Trust.with_defaults(teachers)
    assert 2 <= trust.threshold <= trust.ballots_needed
    assert trust.colluders == max(1, teachers // 5)
    assert trust.dropouts == teachers // 10


def test_the_numbers_of_the_design() -> None:
    trust = Trust(teachers=250, colluders=50, dropouts=25)
    assert trust.honest_shares == 175
    assert trust.threshold == 151
    assert trust.ballots_needed == 225
    assert trust.survives_withholding


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ((1, 0, 0), "at least 2"),
        ((10, 5, 5), "below teachers"),
        ((10, 3, 4), "threshold would be 7"),
        ((10, -1, 0), "colluders must be"),
        ((10, 0, 1.5), "dropouts must be"),
        ((True, 0, 0), "teachers must be"),
    ],
)
def test_impossible_numbers_are_refused(numbers: tuple[int, int, int], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Trust(teachers=numbers[0], colluders=numbers[1], dropouts=numbers[2])


@pytest.mark.parametrize(
    ("numbers", "advice"),
    [
        ((10, 3, 4), "lower dropouts to 3, lower colluders to 1, or have at least 12 teachers"),
        ((10, 5, 5), "lower dropouts to 2, or have at least 16 teachers"),
        ((3, None, 1), "lower dropouts to 0, or have at least 4 teachers"),
        ((3, 3, 0), "lower colluders to 2, or have at least 4 teachers"),
        ((3, 4, 2), "; have at least 9 teachers"),
    ],
)
def test_a_refusal_says_what_to_choose_and_that_holds(
    numbers: tuple[int, int | None, int], advice: str
) -> None:
    """Also where the default of one colluder does not fit; no colluders is never the advice."""
    teachers, colluders, dropouts = numbers
    with pytest.raises(InputError, match=f"{advice}$"):
        Trust.with_defaults(teachers, colluders, dropouts)
    chosen: dict[str, Any] = {"teachers": teachers, "colluders": colluders, "dropouts": dropouts}
    for way, number in re.findall(r"(?:lower|at) (\w+)(?: to)? (\d+)", advice):
        name = "teachers" if way == "least" else way
        Trust.with_defaults(**{**chosen, name: int(number)})
        if name != "teachers":
            with pytest.raises(InputError):
                Trust.with_defaults(**{**chosen, name: int(number) + 1})
