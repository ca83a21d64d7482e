"""The groups in which everything happens, and who is an element.

Every element has Jacobi symbol 1 modulo n, which anyone can check. As n is a product of two primes
that are 3 modulo 4, these elements are exactly the squares and their negatives: up to sign they
form a group of odd order p′q′ (times n^s for ciphertexts) without any element of small order.
Proofs and batch checks rest on that, and so does the key itself: a blinding of Jacobi symbol -1
would let teachers who pool their key shares factor n from one opening (docs/protocol.md,
section 2).

Ciphertexts are elements modulo n^(s+1). Roots of blindings, decryption shares, commitments and
responses are elements *up to sign* and written as the smaller of x and -x.
"""

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from dppp.errors import GroupElementError


def absolute(value: mpz, modulus: mpz) -> mpz:
    """The residue without its sign: the smaller of value and -value."""
    residue = value % modulus
    return min(residue, modulus - residue)


def check_elements(
    values: Sequence[mpz], modulus: mpz, bound: mpz, *, what: str
) -> tuple[mpz, ...]:
    """Refuse a value that is not in [1, bound) or has not Jacobi symbol 1 modulo n.

    Returns the values modulo n. The symbol is 0 for a value that shares a factor with n; the
    error says nothing about the factor.
    """
    residues = tuple(value % modulus for value in values)
    for position, (value, residue) in enumerate(zip(values, residues, strict=True)):
        if not 0 < value < bound:
            reason = "is outside the group"
        elif (symbol := gmpy2.jacobi(residue, modulus)) != 1:
            reason = "is not invertible" if symbol == 0 else "has Jacobi symbol -1"
        else:
            continue
        raise GroupElementError(
            f"{what} {position} {reason}; refuse what it came from", position=position
        )
    return residues


def check_absolute_elements(
    values: Sequence[mpz], modulus: mpz, group_modulus: mpz, *, what: str
) -> None:
    """Refuse any value that is not an element written as its own absolute value."""
    check_elements(values, modulus, (group_modulus + 1) // 2, what=what)
