"""The group in which everything happens: who is an element, and when two are the same.

Everything is a unit modulo n (or n^(s+1)). Each number that another party sent is checked to be in
its range and to have no common factor with n: a multiple of p or q, or 0, could make an equation
between products true whatever else stands in it. One gcd of the product tells for a whole list.

The units have elements of order 2, and everybody knows one of them: -1. A check with random weights
sees it in half of all cases only. So two sides of a ballot's or an opening's equation are compared
up to sign, alone and in batches alike; what is proven never depends on the sign. Whoever knew
another element of order 2 could factor n. Share proofs are about squares, which have no sign.
"""

from collections.abc import Iterable, Sequence

import gmpy2
from gmpy2 import mpz

from dppp.errors import GroupElementError


def check_units(values: Sequence[mpz], modulus: mpz, bound: mpz, *, what: str) -> tuple[mpz, ...]:
    """Refuse a value outside [1, bound) or with a common factor with n; return all modulo n.

    The error has the position of the first such value. It says nothing about the factor.
    """
    residues = tuple(value % modulus for value in values)
    if all(0 < value < bound for value in values) and _are_units(residues, modulus):
        return residues
    for position, (value, residue) in enumerate(zip(values, residues, strict=True)):
        is_in_range = 0 < value < bound
        if not is_in_range or not _are_units((residue,), modulus):
            reason = "is not invertible" if is_in_range else "is out of range"
            raise GroupElementError(
                f"{what} {position} {reason}",
                position=position,
            )
    raise AssertionError("a product of units is a unit")


def are_equal_up_to_sign(left: mpz, right: mpz, modulus: mpz) -> bool:
    """Whether left = right or left = -right."""
    return (left - right) % modulus == 0 or (left + right) % modulus == 0


def _are_units(residues: Iterable[mpz], modulus: mpz) -> bool:
    product = mpz(1)
    for residue in residues:
        product = product * residue % modulus
    return gmpy2.gcd(product, modulus) == 1
