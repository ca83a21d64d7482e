"""The groups in which everything happens, and who is an element.

Ciphertexts are units modulo n^(s+1). Roots of blindings, decryption shares, commitments and
responses are units *up to sign* and written as the smaller of x and -x. Up to sign there is no
element of small order except square roots of 1 other than ±1, and whoever knows one of those has
factored n: that is what the batch checks and proofs rest on (docs/protocol.md, section 2).
"""

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from dppp.errors import GroupElementError


def absolute(value: mpz, modulus: mpz) -> mpz:
    """The residue without its sign: the smaller of value and -value."""
    residue = value % modulus
    return min(residue, modulus - residue)


def check_units(values: Sequence[mpz], modulus: mpz, bound: mpz, *, what: str) -> tuple[mpz, ...]:
    """Refuse any value that is not in [1, bound) and invertible; return them modulo `modulus`.

    One greatest common divisor for all: a product is a unit when every factor is.
    """
    residues = []
    product = mpz(1)
    for position, value in enumerate(values):
        if not 0 < value < bound:
            raise GroupElementError(
                f"{what} {position} is outside the group; refuse what it came from",
                position=position,
            )
        residues.append(value % modulus)
        product = product * residues[-1] % modulus
    if gmpy2.gcd(product, modulus) != 1:
        _name_the_divisor(residues, modulus, what)
    return tuple(residues)


def _name_the_divisor(values: Sequence[mpz], modulus: mpz, what: str) -> None:
    """Say which value shares a factor with the modulus, and nothing about the factor."""
    for position, value in enumerate(values):
        if gmpy2.gcd(value, modulus) != 1:
            raise GroupElementError(
                f"{what} {position} is not invertible for this key; refuse what it came from",
                position=position,
            )


def check_absolute_units(values: Sequence[mpz], modulus: mpz, *, what: str) -> None:
    """Refuse any value that is not a unit written as its own absolute value."""
    check_units(values, modulus, (modulus + 1) // 2, what=what)
