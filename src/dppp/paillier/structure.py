"""What a ciphertext is made of: (1 + n)^m · r^(n^s) modulo n^(s+1) (paper, Eq. 1; here any s).

The map from (m modulo n^s, r modulo n) to ciphertexts is a bijection. Its three parts are cheap
in closed form and need no secret: the power of 1 + n, its logarithm, and the lift of r.
"""

import functools

import gmpy2
from gmpy2 import mpz

from dppp.paillier.keys import PublicKey


def raise_generator(public: PublicKey, plaintext: mpz) -> mpz:
    """(1 + n)^m by its binomial expansion of s + 1 terms, nested as in Horner's rule."""
    modulus, s = public.modulus, public.s
    inverses = _inverses(modulus, s)
    result, precision = mpz(1), mpz(1)
    for step in range(s, 0, -1):
        precision *= modulus
        ratio = (plaintext - (step - 1)) * inverses[step - 1] % precision
        result = 1 + modulus * (ratio * result % precision)
    return result


def generator_logarithm(public: PublicKey, element: mpz) -> mpz:
    """The m of (1 + n)^m; `element` must be 1 modulo n.

    log((1 + n)^m) = m·log(1 + n), with log(1 + nb)/n = b - nb²/2 + … + (-n)^(s-1) b^s/s.
    """
    quotient = gmpy2.divexact(element - 1, public.modulus)
    logarithm = _logarithm_over_modulus(public.modulus, public.s, quotient)
    return (
        logarithm
        * _inverse_of_unit_logarithm(public.modulus, public.s)
        % (public.plaintext_modulus)
    )


def lift_root(public: PublicKey, root: mpz) -> mpz:
    """r^(n^s) modulo n^(s+1), one power of n at a time.

    When a = b modulo n^k, then a^n = b^n modulo n^(k+1): so each step needs one more factor n of
    precision only, which at s = 4 takes two thirds of the time of the direct way.
    """
    lifted, precision = root, public.modulus
    for _ in range(public.s):
        precision *= public.modulus
        lifted = gmpy2.powmod(lifted, public.modulus, precision)
    return lifted


def _logarithm_over_modulus(modulus: mpz, s: int, quotient: mpz) -> mpz:
    inverses, precision = _inverses(modulus, s), modulus**s
    result = inverses[s - 1]
    for step in range(s - 1, 0, -1):
        result = (inverses[step - 1] - modulus * (quotient * result % precision)) % precision
    return quotient * result % precision


@functools.lru_cache(maxsize=16)
def _inverses(modulus: mpz, s: int) -> tuple[mpz, ...]:
    """1/1, 1/2, …, 1/s modulo n^s."""
    return tuple(gmpy2.invert(mpz(step), modulus**s) for step in range(1, s + 1))


@functools.lru_cache(maxsize=16)
def _inverse_of_unit_logarithm(modulus: mpz, s: int) -> mpz:
    return gmpy2.invert(_logarithm_over_modulus(modulus, s, mpz(1)), modulus**s)
