"""The audit of the accountant: ours is between two roundings; accountants with a fault are not."""

import pytest
from tests.small_federation import kept_certificate

from dppp.experiments.audit.accountant import audit_accountant
from dppp.privacy.accounting import Spending, account
from dppp.privacy.noise import FAMILIES, Noise

DELTA = 1e-5


def noise_of(family: str, queries: int) -> Noise:
    return kept_certificate(family, epsilon=2, delta=DELTA, teachers=20, queries=queries).noise


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("queries", [1, 12])
def test_our_accountant_passes(family: str, queries: int) -> None:
    noise = noise_of(family, queries)
    epsilon = account([Spending(noise=noise, queries=queries)], DELTA)
    found = audit_accountant(noise, queries=queries, delta=DELTA, epsilon=epsilon)
    assert found.passed
    assert found.upper - found.lower < 0.003 * epsilon


def test_an_accountant_that_forgets_a_count_or_a_query_fails() -> None:
    noise = noise_of("skellam", 12)
    one_less = account([Spending(noise=noise, queries=11)], DELTA)
    one_count = account([Spending(noise=noise, queries=6)], DELTA)
    for wrong in (one_less, one_count):
        assert not audit_accountant(noise, queries=12, delta=DELTA, epsilon=wrong).passed


def test_an_accountant_that_is_too_careful_fails_too() -> None:
    noise = noise_of("skellam", 12)
    careful = 12 * account([Spending(noise=noise, queries=1)], DELTA / 12)
    assert not audit_accountant(noise, queries=12, delta=DELTA, epsilon=careful).passed


def test_a_count_that_moves_further_costs_more() -> None:
    noise = noise_of("skellam", 1)
    near, far = (
        audit_accountant(noise, queries=1, delta=DELTA, epsilon=1, counts=1, by=by).lower
        for by in (1, 3)
    )
    assert far > 2.5 * near
