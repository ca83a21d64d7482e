"""Whole units: exact sums, and never a rounding in our favour."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dppp.errors import InputError
from dppp.privacy.ledger.budget import DELTA_UNITS, EPSILON_UNITS, NOTHING, Budget

epsilons = st.floats(1e-9, 400)
deltas = st.floats(1e-30, 0.5)


@settings(deadline=None)
@given(epsilons, deltas)
def test_a_cost_is_never_below_and_a_cap_never_above_what_was_written(
    epsilon: float, delta: float
) -> None:
    cost, cap = (make(epsilon=epsilon, delta=delta) for make in (Budget.cost, Budget.cap))
    written = Fraction(repr(epsilon)), Fraction(repr(delta))
    assert Fraction(cap.epsilon_units, EPSILON_UNITS) <= written[0]
    assert written[0] <= Fraction(cost.epsilon_units, EPSILON_UNITS)
    assert Fraction(cap.delta_units, DELTA_UNITS) <= written[1]
    assert written[1] <= Fraction(cost.delta_units, DELTA_UNITS)
    assert cost.epsilon_units - cap.epsilon_units <= 1
    assert cost.delta_units - cap.delta_units <= 1


@settings(deadline=None)
@given(st.integers(1, 1000), st.integers(0, 3))
def test_what_people_write_fits_exactly(tenths: int, digits: int) -> None:
    epsilon, delta = tenths / 10 ** (digits + 1), tenths / 10 ** (digits + 9)
    cost = Budget.cost(epsilon=epsilon, delta=delta)
    assert cost == Budget.cap(epsilon=epsilon, delta=delta)
    assert cost.epsilon == epsilon
    assert cost.delta == delta


def test_ten_tenths_are_one() -> None:
    total = NOTHING
    for _ in range(10):
        total = total.plus(Budget.cost(epsilon=0.1, delta=1e-6))
    assert total == Budget.cap(epsilon=1, delta=1e-5)


def test_one_unit_more_does_not_fit() -> None:
    cap = Budget.cap(epsilon=1, delta=1e-5)
    assert cap.fits_within(cap)
    assert not Budget.cost(epsilon=1.0000000001, delta=1e-5).fits_within(cap)
    assert not Budget.cost(epsilon=1, delta=1.0000000000000002e-5).fits_within(cap)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, 0.1), (-1, 0.1), (float("nan"), 0.1), (float("inf"), 0.1), (1, 0), (1, 1), (True, 0.1)],
)
def test_what_is_no_budget_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InputError, match="budget must be"):
        Budget.cap(epsilon=epsilon, delta=delta)
