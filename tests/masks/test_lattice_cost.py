"""The core-SVP figures beside the table of moduli, worked out again from the primal attack.

The estimator that made the table is no dependency of this project. But its core-SVP column follows
from one condition (Alkim, Ducas, Pöppelmann, Schwabe 2016, section 6): BKZ with blocks of β finds
the short vector of a lattice of dimension d = n + m + 1 and volume q^m where

    σ·√β ≤ δ^(2β - d - 1) · q^(m/d),   δ = ((π·β)^(1/β) · β / (2π·e))^(1/(2(β - 1))),

at a cost of 2^(0.292·β). The MATZOV figures, by which a task is refused, count the same attack and
others with the memory and the sieve's smaller terms, so they lie above these.
"""

import math

import pytest

from dppp.masks.parameters import security_bits

WIDTH = 3.2
"""Of secret and error: what two honest teachers' masks of 6.4 leave hidden, given their sum."""
CORE_SVP = {
    1024: {22: 152, 24: 133, 25: 126, 26: 119, 27: 112, 28: 106},
    2048: {42: 150, 43: 145, 47: 127, 50: 116, 53: 107, 54: 104},
}
CASES = [(n, bits, cost) for n, known in CORE_SVP.items() for bits, cost in known.items()]
_FINEST_STEP = 16


def root_factor(block: int) -> float:
    return float(
        ((math.pi * block) ** (1 / block) * block / (2 * math.pi * math.e))
        ** (1 / (2 * (block - 1)))
    )


def is_found(block: int, degree: int, modulus_bits: int) -> bool:
    """Whether blocks of this size find the secret, with the best number of samples."""
    short, root = math.log2(WIDTH) + math.log2(block) / 2, math.log2(root_factor(block))
    dimensions = ((m, degree + m + 1) for m in range(degree // 4, 2 * degree, _FINEST_STEP))
    return any(short <= (2 * block - d - 1) * root + modulus_bits * m / d for m, d in dimensions)


def smallest_block(degree: int, modulus_bits: int) -> int:
    low, high = 60, 1200
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_found(middle, degree, modulus_bits) else (middle, high)
    return high


@pytest.mark.parametrize(("degree", "modulus_bits", "cost"), CASES)
def test_the_primal_attack_costs_what_the_table_says(
    degree: int, modulus_bits: int, cost: int
) -> None:
    assert round(0.292 * smallest_block(degree, modulus_bits)) == cost


@pytest.mark.parametrize(("degree", "modulus_bits", "cost"), CASES)
def test_the_figure_by_which_tasks_are_refused_is_the_primal_attack_and_what_sieving_costs(
    degree: int, modulus_bits: int, cost: int
) -> None:
    assert 20 <= security_bits(degree, modulus_bits) - cost <= 30
