"""Root decryption: shares modulo n, and an opening that needs no trust in anyone.

The secret is d = (n^s)⁻¹ modulo m′, so t teachers together take n^s-th roots modulo n. From the
root of the blinding the plaintext follows by public arithmetic, and the same arithmetic checks it.
Equations 5 to 8 of docs/protocol.md; the paper has nothing like it.
"""

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from dppp.errors import DecryptionError
from dppp.paillier.decryption.opening import Opening
from dppp.paillier.encryption import Ciphertext
from dppp.paillier.groups import absolute
from dppp.paillier.keys import PublicKey
from dppp.paillier.lagrange import Interpolation, interpolate
from dppp.paillier.modexp import power_public, power_secret
from dppp.paillier.multiexp import multiply_powers
from dppp.paillier.structure import generator_logarithm, lift_root


def make_share(public: PublicKey, exponent: mpz, ciphertext: Ciphertext) -> mpz:
    """(c mod n)^(2 d_i) modulo n, up to sign: one exponentiation of the modulus' size."""
    power = power_secret(ciphertext % public.modulus, 2 * exponent, public.modulus)
    return absolute(power, public.modulus)


def combine(
    public: PublicKey, ciphertext: Ciphertext, subset: tuple[int, ...], shares: Sequence[mpz]
) -> Opening:
    """The opening of one ciphertext from the shares of exactly t teachers."""
    weights = interpolate(subset)
    root = multiply_powers(shares, weights.coefficients, public.modulus)
    plaintext = _open(public, ciphertext, root, weights)
    return Opening(plaintext=plaintext, root=absolute(root, public.modulus), subset=subset)


def _open(public: PublicKey, ciphertext: Ciphertext, root: mpz, weights: Interpolation) -> mpz:
    """The m of c^(2Δ) = ±(1+n)^(2Δm) · y^(n^s); that y is right is seen modulo n."""
    modulus, doubled = public.ciphertext_modulus, 2 * weights.denominator
    raised = power_public(ciphertext, doubled, modulus)
    remainder = raised * gmpy2.invert(lift_root(public, root), modulus) % modulus
    if remainder % public.modulus == public.modulus - 1:
        remainder = modulus - remainder
    if remainder % public.modulus != 1:
        raise DecryptionError(
            "these decryption shares do not open the ciphertext; ask their teachers for proofs"
        )
    logarithm = generator_logarithm(public, remainder)
    return logarithm * gmpy2.invert(doubled, public.plaintext_modulus) % public.plaintext_modulus
