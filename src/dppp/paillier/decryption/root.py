"""Root decryption: t teachers together take the n^s-th root of a ciphertext modulo n.

This is exactly Shoup's threshold RSA (Practical threshold signatures, Eurocrypt 2000) with the
public exponent n^s, applied to x = c mod n. The root R is the product of all blindings. From R the
plaintext follows by public arithmetic, and the same arithmetic checks it. Equations 5 to 9 of
docs/protocol.md; Damgard and Jurik 2001 for the ciphertexts. The nearest modern work is Tiresias
(eprint 2023/998), threshold Paillier by the paper's kind of shares. Run by whoever has t shares.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz

from dppp.errors import DecryptionError
from dppp.paillier.arithmetic.lagrange import interpolate
from dppp.paillier.arithmetic.modexp import power_public
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.decryption.opening import Opening
from dppp.paillier.encryption import Ciphertext
from dppp.paillier.keys import PublicKey
from dppp.paillier.structure import generator_logarithm, lift_root


def combine(
    public: PublicKey, ciphertext: Ciphertext, subset: tuple[int, ...], shares: Sequence[mpz]
) -> Opening:
    """The opening of one ciphertext from the shares of exactly t teachers."""
    exponents = _exponents(public, subset)
    product = multiply_powers(shares, exponents.of_shares, public.modulus)
    root = power_public(product, exponents.of_product, public.modulus)
    root = root * power_public(ciphertext, exponents.of_ciphertext, public.modulus) % public.modulus
    return Opening(plaintext=_open(public, ciphertext, root), root=root)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exponents:
    """What shares, their product w and x are raised to: equations 7 and 8."""

    of_shares: tuple[mpz, ...]
    of_product: mpz
    of_ciphertext: mpz


@functools.lru_cache(maxsize=8)
def _exponents(public: PublicKey, subset: tuple[int, ...]) -> _Exponents:
    """2λ_i, and a and b with 4Δ²·a + n^s·b = 1.

    The λ_i of one subset have a common factor, Δ over their smallest denominator. It is divided
    out: w is then R^(4Δ·denominator), and its exponents are a quarter as long at N = 250.
    """
    weights = interpolate(subset)
    power_of_root = 4 * public.factorial * weights.denominator
    of_product = gmpy2.invert(power_of_root, public.plaintext_modulus)
    of_ciphertext = (1 - power_of_root * of_product) // public.plaintext_modulus
    return _Exponents(
        of_shares=tuple(2 * coefficient for coefficient in weights.coefficients),
        of_product=of_product,
        of_ciphertext=of_ciphertext,
    )


def _open(public: PublicKey, ciphertext: Ciphertext, root: mpz) -> mpz:
    """The M of c = (1+n)^M · R^(n^s): equation 9. Whether R is right is seen modulo n."""
    inverse = lift_root(public, gmpy2.invert(root, public.modulus))
    remainder = ciphertext * inverse % public.ciphertext_modulus
    if remainder % public.modulus != 1:
        raise DecryptionError(
            "these decryption shares do not open the ciphertext",
            hint="ask their teachers for proofs",
        )
    return generator_logarithm(public, remainder)
