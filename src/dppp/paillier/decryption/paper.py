"""The paper's decryption: Equation 3 and the combination of Damgard-Jurik 2001.

Kept for comparison. A share is an exponentiation modulo n^(s+1) whose exponent grows with N!, and
a wrong share can shift the result unnoticed: only share proofs stand against that. Equations 10 to
12 of docs/protocol.md. Run by whoever has t shares.
"""

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from dppp.errors import DecryptionError
from dppp.paillier.arithmetic.lagrange import interpolate_with_factorial
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.keys import PublicKey
from dppp.paillier.structure import generator_logarithm


def combine(public: PublicKey, subset: tuple[int, ...], shares: Sequence[mpz]) -> mpz:
    """The m of Π share_i^(2λ_i) = c^(4Δ²d) = (1 + n)^(4Δ²m): equation 12.

    The ciphertext itself is not needed, and that is why nothing can be checked against it.
    """
    weights = interpolate_with_factorial(subset, public.teachers)
    exponents = [2 * coefficient for coefficient in weights.coefficients]
    product = multiply_powers(shares, exponents, public.ciphertext_modulus)
    if product % public.modulus != 1:
        raise DecryptionError(
            "these decryption shares do not open the ciphertext", hint="check their proofs"
        )
    factor = 4 * weights.denominator * weights.denominator
    logarithm = generator_logarithm(public, product)
    return logarithm * gmpy2.invert(factor, public.plaintext_modulus) % public.plaintext_modulus
