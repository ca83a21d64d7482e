"""The bound on ε: exact coverage where everything can be enumerated."""

import math

import pytest
from scipy import stats

from dppp.experiments.audit.bound import epsilon_lower


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.parametrize("named", [0.05, 0.6])
def test_the_bound_is_wrong_in_at_most_5_percent(
    epsilon: float, delta: float, named: float
) -> None:
    """Every result of 40 trials, with its chance, where the mechanism spends all that it may."""
    trials, wrong_chance = 40, named / (1 + math.exp(epsilon))
    right_chance = math.exp(epsilon) * wrong_chance + delta
    table = stats.multinomial(trials, [right_chance, wrong_chance, 1 - right_chance - wrong_chance])
    missed = sum(
        float(table.pmf([right, wrong, trials - right - wrong]))
        for right in range(trials + 1)
        for wrong in range(trials + 1 - right)
        if epsilon_lower(right, wrong, trials=trials, delta=delta) > epsilon
    )
    assert missed <= 0.05


def test_nothing_seen_proves_nothing_and_more_of_the_same_proves_more() -> None:
    assert epsilon_lower(0, 0, trials=100, delta=1e-5) == 0
    bounds = [
        float(epsilon_lower(30 * n, 10 * n, trials=1000 * n, delta=1e-4)) for n in (1, 10, 100)
    ]
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(math.log(3), rel=0.09)
