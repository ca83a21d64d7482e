"""Lagrange coefficients at 0 over the integers, with the smallest common denominator.

The paper (after Damgard-Jurik 2001) multiplies by N! to clear every possible denominator; at
N = 250 that makes exponents of 1,600 bits. The subset that answered needs far less.
"""

import functools
import math
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpolation:
    """f(0) · denominator = Σ coefficients[k] · f(subset[k]), for deg f < len(subset)."""

    subset: tuple[int, ...]
    denominator: mpz
    coefficients: tuple[mpz, ...]


@functools.lru_cache(maxsize=32)
def interpolate(subset: tuple[int, ...]) -> Interpolation:
    """The smallest integers that interpolate at 0 from `subset`, distinct indices from 1."""
    product = math.prod(subset)
    fractions = []
    for index in subset:
        # λ_i = Π j / Π (j - i) over all j ≠ i of the subset
        below = mpz(math.prod(other - index for other in subset if other != index))
        above = mpz(product // index)
        common = gmpy2.gcd(above, below)
        sign = 1 if below > 0 else -1
        fractions.append((sign * above // common, abs(below) // common))
    denominator = gmpy2.lcm(*(below for _, below in fractions)) if fractions else mpz(1)
    return Interpolation(
        subset=subset,
        denominator=denominator,
        coefficients=tuple(above * (denominator // below) for above, below in fractions),
    )


def interpolate_with_factorial(subset: tuple[int, ...], teachers: int) -> Interpolation:
    """The same with the denominator N! of the paper."""
    smallest = interpolate(subset)
    factorial = gmpy2.fac(teachers)
    factor = factorial // smallest.denominator
    return Interpolation(
        subset=subset,
        denominator=factorial,
        coefficients=tuple(factor * coefficient for coefficient in smallest.coefficients),
    )
