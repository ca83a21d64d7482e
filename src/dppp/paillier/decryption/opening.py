"""Openings: the plaintext with what it takes to check it from public data alone.

An opening (M, R) holds when c = (1+n)^M · R^(n^s) modulo n^(s+1): docs/protocol.md, equation 9.
Whoever made it, M is then the plaintext. There is nothing else to check. Run by anyone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from gmpy2 import mpz

from dppp.errors import DecryptionError, GroupElementError, InputError
from dppp.paillier.arithmetic.groups import are_equal_up_to_sign, check_units
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.encoding import Reader, byte_length
from dppp.paillier.encryption import Ciphertext, check_ciphertexts
from dppp.paillier.keys import PublicKey
from dppp.paillier.structure import lift_root, raise_generator
from dppp.randomness import RandomSource, random_bits, system_randomness

_TAG = b"dppp opening 2\n"
_BATCH_BITS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The plaintext M and the root R, which is the product of all blindings modulo n."""

    plaintext: mpz
    root: mpz

    def to_bytes(self, public: PublicKey) -> bytes:
        """The canonical encoding; its length depends on the key only."""
        return b"".join(
            (
                _TAG,
                self.root.to_bytes(byte_length(public.modulus), "big"),
                self.plaintext.to_bytes(byte_length(public.plaintext_modulus), "big"),
            )
        )

    @classmethod
    def from_bytes(cls, public: PublicKey, data: bytes) -> Self:
        """Read what to_bytes wrote; `verify_opening` still has to check it."""
        reader = Reader(data, tag=_TAG, kind="an opening")
        root = reader.integer(byte_length(public.modulus))
        plaintext = reader.integer(byte_length(public.plaintext_modulus))
        reader.finish()
        return cls(plaintext=plaintext, root=root)


def verify_opening(public: PublicKey, ciphertext: Ciphertext, opening: Opening) -> None:
    """Raise unless the opening holds. Anyone can run this: no share, no secret, no trust."""
    _check_parts(public, [ciphertext], [opening])
    if not _holds(public, [ciphertext], [opening], [mpz(1)]):
        raise DecryptionError("the opening does not fit its ciphertext")


def verify_openings(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    openings: Sequence[Opening],
    randomness: RandomSource = system_randomness,
) -> None:
    """The same for many at once: one equation with random weights that the checker draws.

    A false plaintext passes with probability 2^-128 (docs/protocol.md, section 6).
    """
    _check_parts(public, ciphertexts, openings)
    weights = [random_bits(_BATCH_BITS, randomness) for _ in openings]
    if not _holds(public, ciphertexts, openings, weights):
        for ciphertext, opening in zip(ciphertexts, openings, strict=True):
            verify_opening(public, ciphertext, opening)
        raise AssertionError("openings that all hold alone hold together")


def _check_parts(
    public: PublicKey, ciphertexts: Sequence[Ciphertext], openings: Sequence[Opening]
) -> None:
    if len(ciphertexts) != len(openings):
        raise InputError(f"{len(openings)} openings do not fit {len(ciphertexts)} ciphertexts")
    check_ciphertexts(public, ciphertexts)
    try:
        roots = [opening.root for opening in openings]
        check_units(roots, public.modulus, public.modulus, what="root")
    except GroupElementError as error:
        raise DecryptionError(f"an opening is not one of this key: {error.message}") from error
    if not all(0 <= opening.plaintext < public.plaintext_modulus for opening in openings):
        raise DecryptionError("an opening's plaintext is outside 0..n^s - 1")


def _holds(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    openings: Sequence[Opening],
    weights: Sequence[mpz],
) -> bool:
    """Π c^w = ±(1+n)^(Σ wM) · (Π R^w)^(n^s).

    Up to sign, so that -R gets the same verdict alone and in a batch. A sign never changes M: as
    n^s is odd, -R^(n^s) is (-R)^(n^s), so the sign belongs to the root.
    """
    modulus = public.ciphertext_modulus
    left = multiply_powers(ciphertexts, weights, modulus)
    root = multiply_powers([opening.root for opening in openings], weights, public.modulus)
    total = sum(
        (weight * opening.plaintext for weight, opening in zip(weights, openings, strict=True)),
        start=mpz(0),
    )
    right = lift_root(public, root) * raise_generator(public, total) % modulus
    return are_equal_up_to_sign(left, right, modulus)
