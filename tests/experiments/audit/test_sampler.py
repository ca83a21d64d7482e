"""The audit of the sampler: real draws pass; draws with a planted fault do not."""

import hashlib

import numpy as np
import pytest
from tests.small_federation import kept_certificate

from dppp.experiments.audit.sampler import FALSE_ALARM_RATE, audit_sampler
from dppp.privacy.noise import FAMILIES, Noise, Skellam
from dppp.privacy.sampling import sampling_table
from dppp.randomness import KeyStream

DRAWS = 100_000


def noise_of(family: str) -> Noise:
    return kept_certificate(family, epsilon=2, delta=1e-3, teachers=20, queries=4).noise


def stream(*words: object) -> KeyStream:
    return KeyStream(hashlib.sha256(repr(words).encode()).digest())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_real_tables_pass(family: str) -> None:
    found = audit_sampler(noise_of(family), draws=DRAWS, randomness=stream(family))
    assert found.passed
    assert found.limit * len(found.checks) == pytest.approx(FALSE_ALARM_RATE)


def test_draws_of_less_noise_fail() -> None:
    right = noise_of("skellam")
    assert isinstance(right, Skellam)
    wrong = Skellam(share_variance=right.share_variance * 0.95, shares=right.shares)
    table = sampling_table(wrong)
    draw_from = stream("less")
    assert not audit_sampler(right, draws=DRAWS, draw=lambda n: table.draw(n, draw_from)).passed


def test_draws_that_come_twice_fail_though_each_is_right() -> None:
    noise = noise_of("skellam")
    table, draw_from = sampling_table(noise), stream("twice")
    found = audit_sampler(
        noise, draws=DRAWS, draw=lambda n: np.repeat(table.draw((n + 1) // 2, draw_from), 2)[:n]
    )
    assert not found.passed


def test_a_value_that_never_comes_fails() -> None:
    noise = noise_of("polya")
    table, draw_from = sampling_table(noise), stream("hole")

    def with_a_hole(count: int) -> np.ndarray:
        drawn = table.draw(count, draw_from)
        return np.where(drawn == 3, 2, drawn)

    assert not audit_sampler(noise, draws=DRAWS, draw=with_a_hole).passed
