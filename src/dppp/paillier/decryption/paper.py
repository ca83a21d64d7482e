"""The paper's decryption: Equation 3 and the combination of Damgard-Jurik 2001.

Kept for comparison. A share is an exponentiation modulo n^(s+1) whose exponent grows with N!, and
a wrong share can shift the result unnoticed: only share proofs stand against that.
"""

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from dppp.errors import DecryptionError
from dppp.paillier.encryption import Ciphertext
from dppp.paillier.groups import absolute
from dppp.paillier.keys import PublicKey
from dppp.paillier.lagrange import interpolate_with_factorial
from dppp.paillier.modexp import power_secret
from dppp.paillier.multiexp import multiply_powers
from dppp.paillier.structure import generator_logarithm


def make_share(public: PublicKey, exponent: mpz, ciphertext: Ciphertext) -> mpz:
    """c^(2 N! s_i) modulo n^(s+1), up to sign (Eq. 3); `exponent` is N!·s_i."""
    power = power_secret(ciphertext, 2 * exponent, public.ciphertext_modulus)
    return absolute(power, public.ciphertext_modulus)


def combine(
    public: PublicKey, ciphertext: Ciphertext, subset: tuple[int, ...], shares: Sequence[mpz]
) -> mpz:
    """The m of Π c_i^(2 N! λ_i) = c^(4 N!² d) = (1 + n)^(4 N!² m)."""
    del ciphertext  # the shares say all there is; that is why nothing can be checked against it
    weights = interpolate_with_factorial(subset, public.teachers)
    exponents = [2 * coefficient for coefficient in weights.coefficients]
    product = multiply_powers(shares, exponents, public.ciphertext_modulus)
    if product % public.modulus != 1:
        raise DecryptionError(
            "these decryption shares do not open the ciphertext; check their proofs"
        )
    factor = 4 * weights.denominator * weights.denominator
    logarithm = generator_logarithm(public, product)
    return logarithm * gmpy2.invert(factor, public.plaintext_modulus) % public.plaintext_modulus
