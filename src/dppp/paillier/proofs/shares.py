"""Proofs that decryption shares are right: equality of discrete logarithms, after Shoup 2000.

One proof covers all shares of a teacher in a batch. With weights ρ_j from the hash of the whole
statement, X = Π c_j^(4Δρ_j) and S = Π share_j^(2ρ_j), it shows that S is to X as the teacher's
verification key v_i is to the verification base v (docs/protocol.md, equations S1 to S5). All four
are squares, so nothing here has a sign. A share times -1 passes: combining squares it anyway. The
proof names culprits and no more: an opening is checked without it. Asked for only when shares do
not open (root), or always (paper). Made by teachers, checked by whoever combines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from gmpy2 import mpz

from dppp.errors import GroupElementError, InputError, ProofError
from dppp.hashing import hash_parts
from dppp.paillier.arithmetic.groups import check_units
from dppp.paillier.arithmetic.modexp import power_public, power_secret
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.encoding import Reader, byte_length
from dppp.paillier.encryption import Ciphertext, check_ciphertexts, write_ciphertexts
from dppp.paillier.keys import KeyShare, PublicKey, require_share_of
from dppp.paillier.proofs.challenges import (
    CHALLENGE_BITS,
    CHALLENGE_BYTES,
    MASK_BITS,
    expand_challenges,
)
from dppp.randomness import RandomSource, random_bits, system_randomness

_TAG = b"dppp share proof 2\n"
_WEIGHTS_DOMAIN = "dppp share proof weights 2"
_CHALLENGE_DOMAIN = "dppp share proof challenge 2"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareProof:
    """Challenge and response; the commitments follow from them."""

    challenge: mpz
    response: mpz

    def __post_init__(self) -> None:
        if not 0 <= self.challenge < 1 << CHALLENGE_BITS or self.response < 0:
            raise InputError("a share proof has a challenge or a response out of range")

    def to_bytes(self, public: PublicKey) -> bytes:
        """The canonical encoding; its length depends on the key only."""
        return b"".join(
            (
                _TAG,
                self.challenge.to_bytes(CHALLENGE_BYTES, "big"),
                self.response.to_bytes(_response_bytes(public), "big"),
            )
        )

    @classmethod
    def from_bytes(cls, public: PublicKey, data: bytes) -> Self:
        """Read what to_bytes wrote."""
        reader = Reader(data, tag=_TAG, kind="a share proof")
        challenge = reader.integer(CHALLENGE_BYTES)
        response = reader.integer(_response_bytes(public))
        reader.finish()
        return cls(challenge=challenge, response=response)


def prove_shares(
    public: PublicKey,
    key_share: KeyShare,
    ciphertexts: Sequence[Ciphertext],
    shares: DecryptionShares,
    *,
    context: bytes,
    randomness: RandomSource = system_randomness,
) -> ShareProof:
    """The teacher's proof that its shares were made with its share of the key."""
    require_share_of(public, key_share)
    statement = _Statement.of(public, ciphertexts, shares, context)
    mask = random_bits(_mask_bits(public), randomness)
    modulus = public.share_modulus
    commitments = [
        power_secret(base, mask, modulus) for base in (public.verification_base, statement.base)
    ]
    challenge = statement.challenge(public, commitments)
    return ShareProof(challenge=challenge, response=mask + challenge * key_share.exponent)


def verify_shares(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    shares: DecryptionShares,
    proof: ShareProof,
    *,
    context: bytes,
) -> None:
    """Raise, naming the teacher, unless every share of `shares` is right."""
    statement = _Statement.of(public, ciphertexts, shares, context)
    key = public.verification_keys[shares.index - 1]
    modulus = public.share_modulus
    commitments = [
        multiply_powers(pair, (proof.response, -proof.challenge), modulus)
        for pair in ((public.verification_base, key), (statement.base, statement.product))
    ]
    too_long = proof.response.bit_length() > 8 * _response_bytes(public)
    if too_long or statement.challenge(public, commitments) != proof.challenge:
        raise ProofError(
            f"the proof of teacher {shares.index}'s decryption shares does not hold",
            culprits=(shares.index,),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """X and S of a batch, and the hash of all that they came from."""

    seed: bytes
    base: mpz
    product: mpz

    @classmethod
    def of(
        cls,
        public: PublicKey,
        ciphertexts: Sequence[Ciphertext],
        shares: DecryptionShares,
        context: bytes,
    ) -> Self:
        _check_shares(public, ciphertexts, shares)
        parts = (
            context,
            write_ciphertexts(public, ciphertexts),
            shares.to_bytes(public),
        )
        seed = hash_parts(_WEIGHTS_DOMAIN, (public.key_id, *parts))
        weights = expand_challenges(seed, len(ciphertexts))
        modulus = public.share_modulus
        residues = [ciphertext % modulus for ciphertext in ciphertexts]
        product = multiply_powers(residues, weights, modulus)
        combined = multiply_powers(shares.elements, weights, modulus)
        return cls(
            seed=seed,
            base=power_public(product, 4 * public.factorial, modulus),
            product=combined * combined % modulus,
        )

    def challenge(self, public: PublicKey, commitments: Sequence[mpz]) -> mpz:
        length = byte_length(public.share_modulus)
        parts = [commitment.to_bytes(length, "big") for commitment in commitments]
        return expand_challenges(hash_parts(_CHALLENGE_DOMAIN, (self.seed, *parts)), 1)[0]


def _check_shares(
    public: PublicKey, ciphertexts: Sequence[Ciphertext], shares: DecryptionShares
) -> None:
    check_ciphertexts(public, ciphertexts)
    known = shares.key_id == public.key_id and shares.index <= public.teachers
    if not known or len(shares.elements) != len(ciphertexts) or not ciphertexts:
        raise ProofError(
            f"teacher {shares.index}'s decryption shares are not for this key and these "
            "ciphertexts",
            culprits=(shares.index,),
        )
    try:
        check_units(shares.elements, public.modulus, public.share_modulus, what="decryption share")
    except GroupElementError as error:
        raise ProofError(
            f"teacher {shares.index} sent a decryption share that is not one: {error.message}",
            culprits=(shares.index,),
        ) from error


def _mask_bits(public: PublicKey) -> int:
    """Longer than challenge · exponent by MASK_BITS: d_i is below n, and s_i below n^(s+1)."""
    return public.share_modulus.bit_length() + CHALLENGE_BITS + MASK_BITS


def _response_bytes(public: PublicKey) -> int:
    """The mask plus challenge · exponent stays below twice the mask's bound."""
    return (_mask_bits(public) + 8) // 8
