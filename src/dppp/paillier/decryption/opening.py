"""Openings: the plaintext with what it takes to check it from public data alone.

An opening (m, y, subset) holds when c^(2Δ) = ±(1+n)^(2Δm) · y^(n^s) modulo n^(s+1), with Δ
computed again from the subset (docs/protocol.md, equation 8). Whoever made it, it is then true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import gmpy2
from gmpy2 import mpz

from dppp.errors import DecryptionError, EncodingError, GroupElementError, InputError
from dppp.paillier.encoding import Reader, byte_length
from dppp.paillier.encryption import Ciphertext, check_ciphertexts
from dppp.paillier.groups import check_absolute_elements
from dppp.paillier.keys import PublicKey
from dppp.paillier.lagrange import interpolate
from dppp.paillier.multiexp import multiply_powers
from dppp.paillier.randomness import RandomBytes, random_bits, system_random
from dppp.paillier.structure import lift_root, raise_generator

_TAG = b"dppp opening 1\n"
_BATCH_BITS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What t teachers opened: the plaintext m, the root y up to sign, and who they were."""

    plaintext: mpz
    root: mpz
    subset: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.subset != tuple(sorted(set(self.subset))) or min(self.subset, default=0) < 1:
            raise InputError("an opening's subset must be distinct teachers in order, from 1")

    def to_bytes(self, public: PublicKey) -> bytes:
        """The canonical encoding; its length depends on the key only."""
        members = sum(1 << (index - 1) for index in self.subset)
        return b"".join(
            (
                _TAG,
                members.to_bytes(-(-public.teachers // 8), "big"),
                self.root.to_bytes(byte_length(public.modulus), "big"),
                self.plaintext.to_bytes(byte_length(public.plaintext_modulus), "big"),
            )
        )

    @classmethod
    def from_bytes(cls, public: PublicKey, data: bytes) -> Self:
        """Read what to_bytes wrote; `verify_opening` still has to check it."""
        reader = Reader(data, tag=_TAG, kind="an opening")
        members = reader.count(-(-public.teachers // 8))
        root = reader.integer(byte_length(public.modulus))
        plaintext = reader.integer(byte_length(public.plaintext_modulus))
        reader.finish()
        if members >> public.teachers:
            raise EncodingError("an opening names teachers that do not exist; get it again")
        subset = tuple(index + 1 for index in range(public.teachers) if members >> index & 1)
        return cls(plaintext=plaintext, root=root, subset=subset)


def verify_opening(public: PublicKey, ciphertext: Ciphertext, opening: Opening) -> None:
    """Raise unless the opening holds. Anyone can run this: no share, no secret, no trust."""
    _check_parts(public, [ciphertext], [opening])
    if not _holds(public, [ciphertext], [opening], [mpz(1)]):
        raise DecryptionError("the opening does not fit its ciphertext; refuse the release")


def verify_openings(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    openings: Sequence[Opening],
    random_bytes: RandomBytes = system_random,
) -> None:
    """The same for many at once: one equation with random weights that the checker draws.

    A false opening passes with probability 2^-128 (docs/protocol.md, section 6).
    """
    _check_parts(public, ciphertexts, openings)
    weights = [random_bits(_BATCH_BITS, random_bytes) for _ in openings]
    if not _holds(public, ciphertexts, openings, weights):
        for ciphertext, opening in zip(ciphertexts, openings, strict=True):
            verify_opening(public, ciphertext, opening)


def _check_parts(
    public: PublicKey, ciphertexts: Sequence[Ciphertext], openings: Sequence[Opening]
) -> None:
    if len(ciphertexts) != len(openings):
        raise InputError(f"{len(openings)} openings do not fit {len(ciphertexts)} ciphertexts")
    check_ciphertexts(public, ciphertexts)
    try:
        roots = [opening.root for opening in openings]
        check_absolute_elements(roots, public.modulus, public.modulus, what="root")
    except GroupElementError as error:
        raise DecryptionError(f"an opening is not one of this key: {error}") from error
    for opening in openings:
        if len(opening.subset) != public.threshold or opening.subset[-1] > public.teachers:
            raise DecryptionError(
                f"an opening must name {public.threshold} of {public.teachers} teachers"
            )
        if not 0 <= opening.plaintext < public.plaintext_modulus:
            raise DecryptionError("an opening's plaintext is outside 0..n^s - 1")


def _holds(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    openings: Sequence[Opening],
    weights: Sequence[mpz],
) -> bool:
    """Π c^(2Δw) · Π y^(-n^s·w) · (1+n)^(-Σ 2Δmw) = ±1."""
    modulus = public.ciphertext_modulus
    doubled = [2 * interpolate(opening.subset).denominator for opening in openings]
    exponents = [factor * weight for factor, weight in zip(doubled, weights, strict=True)]
    left = multiply_powers(ciphertexts, exponents, modulus)
    root = multiply_powers([opening.root for opening in openings], weights, public.modulus)
    total = sum(
        (
            exponent * opening.plaintext
            for exponent, opening in zip(exponents, openings, strict=True)
        ),
        start=mpz(0),
    )
    right = lift_root(public, root) * raise_generator(public, total) % modulus
    return left * gmpy2.invert(right, modulus) % modulus in (1, modulus - 1)
