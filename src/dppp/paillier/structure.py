"""What a ciphertext is made of: (1 + n)^m · r^(n^s) modulo n^(s+1) (paper, Eq. 1; here any s).

The map from (m modulo n^s, r modulo n) to ciphertexts is a bijection. Its parts are cheap in
closed form and need no secret: the power of 1 + n, its logarithm, and the lift of r.
"""

import functools

import gmpy2
from gmpy2 import mpz

from dppp.paillier.arithmetic.modexp import power_public
from dppp.paillier.keys import PublicKey


def raise_generator(public: PublicKey, plaintext: mpz) -> mpz:
    """(1 + n)^m by its binomial expansion: 1 + nm(1 + n(m-1)/2(1 + n(m-2)/3(…))).

    Each bracket is needed modulo one factor n less than the one around it.
    """
    modulus, powers = public.modulus, _powers(public.modulus, public.s)
    inverses = _inverses(modulus, public.s)
    result = mpz(1)
    for step in range(public.s, 0, -1):
        precision = powers[public.s - step]
        ratio = (plaintext - (step - 1)) % precision * inverses[step - 1] % precision
        result = 1 + modulus * (ratio * result % precision)
    return result


def generator_logarithm(public: PublicKey, element: mpz) -> mpz:
    """The m of (1 + n)^m; `element` must be 1 modulo n."""
    return _logarithm(public, gmpy2.divexact(element - 1, public.modulus))


def split_element(public: PublicKey, element: mpz) -> tuple[mpz, mpz]:
    """(residue, logarithm) with element = residue · (1 + n)^logarithm and residue below n.

    A product of many elements then takes products with short residues and sums of logarithms,
    at s = 4 four times faster than products of whole elements.
    """
    modulus, precision = public.modulus, public.plaintext_modulus
    residue = element % modulus
    rest = gmpy2.divexact(element - residue, modulus)
    quotient = rest * gmpy2.invert(residue, precision) % precision
    return residue, _logarithm(public, quotient)


def lift_root(public: PublicKey, root: mpz) -> mpz:
    """r^(n^s) modulo n^(s+1), one power of n at a time.

    When a = b modulo n^k, then a^n = b^n modulo n^(k+1): so each step needs one more factor n of
    precision only, which at s = 4 takes two thirds of the time of the direct way.
    """
    lifted, precision = root, public.modulus
    for _ in range(public.s):
        precision *= public.modulus
        lifted = power_public(lifted, public.modulus, precision)
    return lifted


def _logarithm(public: PublicKey, quotient: mpz) -> mpz:
    """The m of (1 + n)^m = 1 + n·quotient: log((1 + n)^m) = m·log(1 + n)."""
    modulus, s = public.modulus, public.s
    scale = _inverse_of_unit_logarithm(modulus, s)
    return _logarithm_over_modulus(modulus, s, quotient) * scale % public.plaintext_modulus


def _logarithm_over_modulus(modulus: mpz, s: int, quotient: mpz) -> mpz:
    """log(1 + nb)/n = b(1 - nb(1/2 - nb(1/3 - …))) modulo n^s."""
    powers, inverses = _powers(modulus, s), _inverses(modulus, s)
    result = inverses[s - 1]
    for step in range(s - 1, 0, -1):
        precision = powers[s - step - 1]
        product = quotient % precision * result % precision
        result = inverses[step - 1] - modulus * product
    return quotient * result % powers[s - 1]


@functools.lru_cache(maxsize=16)
def _powers(modulus: mpz, s: int) -> tuple[mpz, ...]:
    """The powers n, n², …, n^s."""
    return tuple(modulus**exponent for exponent in range(1, s + 1))


@functools.lru_cache(maxsize=16)
def _inverses(modulus: mpz, s: int) -> tuple[mpz, ...]:
    """1/1, 1/2, …, 1/s, the k-th modulo n^(s-k+1), which is all that is ever needed of it."""
    powers = _powers(modulus, s)
    return tuple(gmpy2.invert(mpz(step), powers[s - step]) for step in range(1, s + 1))


@functools.lru_cache(maxsize=16)
def _inverse_of_unit_logarithm(modulus: mpz, s: int) -> mpz:
    return gmpy2.invert(_logarithm_over_modulus(modulus, s, mpz(1)), modulus**s)
