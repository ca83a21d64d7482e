"""Proof that a teacher knows what is in its ballot: one for all its ciphertexts.

A ciphertext c determines its root r modulo n with r^(n^s) = c modulo n, and whoever knows r can
compute the plaintext from c. So it is enough to prove knowledge of the roots, modulo n, as
Guillou and Quisquater do (1988): no plaintext appears in the proof and the check costs the same
for every s. The challenge is a vector e_j from the hash of the whole ballot, so one response covers
every ciphertext (docs/protocol.md, equations B1 to B4). Bound to a context: task, query and
teacher. Made by teachers; checked by the aggregator and by every teacher before it decrypts.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from gmpy2 import mpz

from dppp.errors import GroupElementError, InputError, ProofError
from dppp.hashing import hash_parts
from dppp.paillier.arithmetic.groups import are_equal_up_to_sign, check_units
from dppp.paillier.arithmetic.modexp import power_public, power_secret
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.blinding import Blinding
from dppp.paillier.encoding import Reader, byte_length
from dppp.paillier.encryption import Ciphertext, check_ciphertexts, write_ciphertexts
from dppp.paillier.keys import PublicKey
from dppp.paillier.proofs.challenges import (
    CHALLENGE_BITS,
    MASK_BITS,
    expand_challenges,
)
from dppp.randomness import RandomSource, random_bits, random_unit, system_randomness

# A batch with a false ballot passes with probability 2^-64, against weights that the checker
# draws anew each time: there is nothing to try out beforehand, and every failure is named.
BATCH_BITS = 64
_TAG = b"dppp ballot proof 2\n"
_DOMAIN = "dppp ballot proof challenge 2"


@dataclass(frozen=True, slots=True, kw_only=True)
class BallotProof:
    """Commitment and response, units modulo n."""

    commitment: mpz
    response: mpz

    def to_bytes(self, public: PublicKey) -> bytes:
        """The canonical encoding; its length depends on the key only."""
        length = byte_length(public.modulus)
        return b"".join(
            (_TAG, self.commitment.to_bytes(length, "big"), self.response.to_bytes(length, "big"))
        )

    @classmethod
    def from_bytes(cls, public: PublicKey, data: bytes) -> Self:
        """Read strictly; parts that are not units are refused."""
        length = byte_length(public.modulus)
        reader = Reader(data, tag=_TAG, kind="a ballot proof")
        commitment, response = reader.integer(length), reader.integer(length)
        reader.finish()
        proof = cls(commitment=commitment, response=response)
        proof.check(public)
        return proof

    def check(self, public: PublicKey) -> None:
        """Refuse parts that are not units: with 0 for both, every equation would hold."""
        parts = (self.commitment, self.response)
        check_units(parts, public.modulus, public.modulus, what="part of a ballot proof")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenBallot:
    """The ballot of teacher `index` as it is checked: its ciphertexts, context and proof."""

    index: int
    ciphertexts: tuple[Ciphertext, ...] = field(repr=False)
    context: bytes
    proof: BallotProof = field(repr=False)


def prove_ballot(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    blindings: Sequence[Blinding],
    *,
    context: bytes,
    randomness: RandomSource = system_randomness,
) -> BallotProof:
    """The teacher's proof that it knows the blindings, and so the plaintexts, of its ballot."""
    if not ciphertexts or len(ciphertexts) != len(blindings):
        raise InputError("a ballot needs one blinding for each of its ciphertexts")
    modulus = public.modulus
    mask = _draw_mask(public, blindings, randomness)
    commitment = _raise_root(public, mask)
    challenges = _challenges(public, ciphertexts, context, commitment)
    exponent = sum(
        (
            challenge * blinding.exponent
            for challenge, blinding in zip(challenges, blindings, strict=True)
        ),
        start=mask.exponent,
    )
    root = multiply_powers([blinding.root for blinding in blindings], challenges, modulus)
    short = power_secret(public.blinding_base, exponent, modulus)
    return BallotProof(commitment=commitment, response=mask.root * root * short % modulus)


def verify_ballot(public: PublicKey, ballot: ProvenBallot) -> None:
    """Raise, naming the teacher, unless the proof holds."""
    if not _holds(public, [_Claim.of(public, ballot)], [mpz(1)]):
        raise ProofError(
            f"the proof of teacher {ballot.index}'s ballot does not hold",
            culprits=(ballot.index,),
        )


def verify_ballots(
    public: PublicKey,
    ballots: Sequence[ProvenBallot],
    randomness: RandomSource = system_randomness,
) -> None:
    """Check many ballots by one equation; if it fails, halve until the culprits are named."""
    claims, culprits = [], []
    for ballot in ballots:
        try:
            claims.append(_Claim.of(public, ballot))
        except ProofError:
            culprits.append(ballot.index)
    culprits += _false_claims(public, claims, randomness)
    if culprits:
        named = ", ".join(str(index) for index in sorted(culprits))
        raise ProofError(
            f"the ballots of these teachers have no proof that holds: {named}",
            culprits=tuple(sorted(culprits)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A ballot modulo n with its challenges: commitment · Π residue^challenge = ±response^(n^s)."""

    index: int
    residues: tuple[mpz, ...]
    challenges: tuple[mpz, ...]
    proof: BallotProof

    @classmethod
    def of(cls, public: PublicKey, ballot: ProvenBallot) -> Self:
        try:
            if not ballot.ciphertexts:
                raise GroupElementError("a ballot without ciphertexts proves nothing")
            residues = check_ciphertexts(public, ballot.ciphertexts)
            ballot.proof.check(public)
        except GroupElementError as error:
            raise ProofError(
                f"teacher {ballot.index}'s ballot cannot be checked: {error.message}",
                culprits=(ballot.index,),
            ) from error
        return cls(
            index=ballot.index,
            residues=residues,
            challenges=_challenges(
                public, ballot.ciphertexts, ballot.context, ballot.proof.commitment
            ),
            proof=ballot.proof,
        )


def _false_claims(
    public: PublicKey, claims: Sequence[_Claim], randomness: RandomSource
) -> list[int]:
    weights = [random_bits(BATCH_BITS, randomness) for _ in claims]
    if not claims or _holds(public, claims, weights):
        return []
    if len(claims) == 1:
        return [claims[0].index]
    middle = len(claims) // 2
    halves = (claims[:middle], claims[middle:])
    return [index for half in halves for index in _false_claims(public, half, randomness)]


def _holds(public: PublicKey, claims: Sequence[_Claim], weights: Sequence[mpz]) -> bool:
    """Π (a · Π c_j^e_j)^w = ±(Π z^w)^(n^s) modulo n over all claims, weight w each.

    Up to sign, whatever the weights: -z gets the same verdict alone, in a batch and in half a one.
    It proves the same, for as n^s is odd, -1 is an n^s-th power that everybody can take into z.
    """
    modulus = public.modulus
    bases = [claim.proof.commitment for claim in claims]
    exponents = list(weights)
    for claim, weight in zip(claims, weights, strict=True):
        bases.extend(claim.residues)
        exponents.extend(weight * challenge for challenge in claim.challenges)
    left = multiply_powers(bases, exponents, modulus)
    responses = [claim.proof.response for claim in claims]
    right = multiply_powers(responses, weights, modulus)
    raised = power_public(right, public.plaintext_modulus, modulus)
    return are_equal_up_to_sign(left, raised, modulus)


def _draw_mask(
    public: PublicKey, blindings: Sequence[Blinding], randomness: RandomSource
) -> Blinding:
    """A root that hides Π r_j^e_j: uniform if any root is of full length, h^w otherwise."""
    if any(blinding.root != 1 for blinding in blindings):
        root = random_unit(public.modulus, randomness)
    else:
        root = mpz(1)
    longest = public.modulus_bits // 2 + CHALLENGE_BITS + len(blindings).bit_length()
    exponent = random_bits(longest + MASK_BITS, randomness)
    return Blinding(exponent=exponent, root=root, factor=mpz(1), shift=mpz(0))


def _raise_root(public: PublicKey, mask: Blinding) -> mpz:
    """(root · h^exponent)^(n^s) modulo n."""
    modulus = public.modulus
    short = power_secret(_raised_base(public), mask.exponent, modulus)
    if mask.root == 1:
        return short
    return power_public(mask.root, public.plaintext_modulus, modulus) * short % modulus


@functools.lru_cache(maxsize=8)
def _raised_base(public: PublicKey) -> mpz:
    """h^(n^s) modulo n: the same for every proof under a key."""
    return power_public(public.blinding_base, public.plaintext_modulus, public.modulus)


def _challenges(
    public: PublicKey, ciphertexts: Sequence[Ciphertext], context: bytes, commitment: mpz
) -> tuple[mpz, ...]:
    seed = hash_parts(
        _DOMAIN,
        (
            public.key_id,
            context,
            len(ciphertexts).to_bytes(4, "big"),
            write_ciphertexts(public, ciphertexts),
            commitment.to_bytes(byte_length(public.modulus), "big"),
        ),
    )
    return expand_challenges(seed, len(ciphertexts))
