"""Proof that a shown secret is the one of a pair: equal logarithms (Chaum and Pedersen 1992).

"This seal does not open" needs evidence. The complainer, whose epoch secret has the scalar x, shows
the X25519 value of the pair, and proves that it is the one: it cannot show another value, under
which a good seal fails, and a dealer who sealed under a false key cannot say that it lied.

Keys are u-coordinates, so a point is known up to its sign, and a malicious one may have a component
T of order 2, 4 or 8. Let A and O be the even points over the keys of the complainer and the other,
V the component of O in the subgroup of prime order ℓ, and P the shown point, with a sign that the
prover states. The verifier checks

    P is on the curve, of order exactly ℓ            (not on the twist, no component of low order)
    8A = x·8B and 8P = x·8O for one x modulo ℓ       (proven in the subgroup of order ℓ)

Why this is right, whatever the two keys are:

- It fixes the shown value. 8A fixes x modulo ℓ. From 8P = x·8O = x·8V with P and V of order ℓ
  follows P = x·V. The stated sign decides between P and -P, whose u-coordinates are the same.
- It is the value the other computes. With an honest scalar d, O = ±d·B = V, and X25519 gives
  d·A. As d is a multiple of 8, a component T in A vanishes: d·A = d·x·B = ±x·V = ±P.
- It is the value an honest complainer computes. X25519 gives x·O, and x is a multiple of 8, so
  T in O vanishes: x·O = x·V. That is of order ℓ, so the check of P passes, whatever T is.
- If -x belongs to the even point A, the prover uses -x, and P with the other sign.

The challenge hashes context, indices, all three u-coordinates, the sign and both commitments; what
is multiplied by 8 follows from these. The nonce hashes secret, fresh bytes and statement, so bad
randomness alone does not give the secret away. The proof tells nothing but the shown value, and
that value is the other's to know already, if it proved possession of its key (`possession.py`).
Plain Python, not in constant time: it runs in disputes only, once per complaint.
"""

import hashlib
import os
from dataclasses import dataclass
from typing import Self

from dppp.errors import GroupElementError, ProofError
from dppp.masks.curve25519 import (
    BASE,
    ENCODED_BYTES,
    ORDER,
    Point,
    are_equal,
    clear_cofactor,
    decode_u,
    encode,
    is_of_prime_order,
    lift,
    multiply,
    multiply_two,
    negate,
)
from dppp.masks.epoch_keys import (
    EpochKey,
    EpochSecret,
    RandomBytes,
    pair_secret,
    require_on_curve,
)
from dppp.masks.possession import is_odd_half

PROOF_BYTES = 1 + 2 * ENCODED_BYTES
_CHALLENGE_DOMAIN = b"dppp equal logarithms challenge 1"
_NONCE_DOMAIN = b"dppp equal logarithms nonce 1"
_FRESH_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """What is proven: the points over three u-coordinates, each times 8, and where they belong."""

    own: EpochKey
    other: EpochKey
    shared: bytes
    context: bytes
    is_odd: bool
    own_point: Point
    other_point: Point
    shared_point: Point

    @classmethod
    def of(
        cls, own: EpochKey, other: EpochKey, shared: bytes, context: bytes, *, is_odd: bool
    ) -> Self:
        return cls(
            own=own,
            other=other,
            shared=shared,
            context=context,
            is_odd=is_odd,
            own_point=_eightfold(own.public, is_odd=False),
            other_point=_eightfold(other.public, is_odd=False),
            shared_point=_eightfold(shared, is_odd=is_odd),
        )

    def to_bytes(self) -> bytes:
        """All fields have fixed lengths but the context, which comes last."""
        keys = self.own.to_bytes() + self.other.to_bytes() + self.shared
        return keys + bytes((self.is_odd,)) + self.context

    def challenge(self, first: Point, second: Point) -> int:
        """The challenge to these two commitments."""
        hashed = _CHALLENGE_DOMAIN + encode(first) + encode(second) + self.to_bytes()
        return int.from_bytes(hashlib.sha512(hashed).digest(), "little") % ORDER


def prove_pair_secret(
    own: EpochSecret, other: EpochKey, context: bytes, randomness: RandomBytes = os.urandom
) -> tuple[bytes, bytes]:
    """The raw secret of a pair and the proof that it is the one; run by the complainer.

    Before this, the complainer has checked that the dealer signed what does not open: an aggregator
    that changed a seal on the way must not learn the secret of two honest teachers. The context
    says which epoch and what complaint.
    """
    require_on_curve(other)
    shared = pair_secret(own, other)
    scalar = own.scalar() * (-1 if is_odd_half(own) else 1) % ORDER
    point = multiply(scalar, _eightfold(other.public, is_odd=False))
    is_odd = not are_equal(point, _eightfold(shared, is_odd=False))
    statement = _Statement.of(own.key, other, shared, context, is_odd=is_odd)
    nonce = _nonce(own, statement, randomness(_FRESH_BYTES))
    challenge = statement.challenge(
        multiply(nonce, clear_cofactor(BASE)), multiply(nonce, statement.other_point)
    )
    response = (nonce + challenge * scalar) % ORDER
    parts = (
        challenge.to_bytes(ENCODED_BYTES, "little"),
        response.to_bytes(ENCODED_BYTES, "little"),
    )
    return shared, bytes((is_odd,)) + b"".join(parts)


def verify_pair_secret(
    own: EpochKey, other: EpochKey, shared: bytes, context: bytes, proof: bytes
) -> None:
    """Raise, naming the complainer `own`, unless `shared` is the secret of these two keys.

    Run by everybody in a dispute. A key on the twist convicts its owner: it should not have passed
    the check of keys at the epoch's start.
    """
    require_on_curve(own)
    require_on_curve(other)
    is_odd, challenge, response = _read(own, proof)
    try:
        has_prime_order = is_of_prime_order(lift(decode_u(shared), is_odd=False))
    except GroupElementError as error:
        raise _fault(own, str(error)) from None
    if not has_prime_order or own.teacher == other.teacher:
        raise _fault(own, "what is shown cannot be the secret of two teachers")
    statement = _Statement.of(own, other, shared, context, is_odd=is_odd)
    first = multiply_two(response, clear_cofactor(BASE), challenge, negate(statement.own_point))
    second = multiply_two(
        response, statement.other_point, challenge, negate(statement.shared_point)
    )
    if statement.challenge(first, second) != challenge:
        raise _fault(own, "the proof does not hold")


def _read(own: EpochKey, proof: bytes) -> tuple[bool, int, int]:
    if len(proof) != PROOF_BYTES or proof[0] > 1:
        raise _fault(own, "the proof is malformed")
    challenge = int.from_bytes(proof[1 : 1 + ENCODED_BYTES], "little")
    response = int.from_bytes(proof[1 + ENCODED_BYTES :], "little")
    if challenge >= ORDER or response >= ORDER:
        raise _fault(own, "a number in the proof is not reduced")
    return bool(proof[0]), challenge, response


def _nonce(own: EpochSecret, statement: _Statement, fresh: bytes) -> int:
    hashed = _NONCE_DOMAIN + own.secret + fresh + statement.to_bytes()
    return int.from_bytes(hashlib.sha512(hashed).digest(), "little") % ORDER


def _eightfold(encoded: bytes, *, is_odd: bool) -> Point:
    return clear_cofactor(lift(decode_u(encoded), is_odd=is_odd))


def _fault(complainer: EpochKey, reason: str) -> ProofError:
    return ProofError(
        f"teacher {complainer.teacher} did not show the secret of the pair: {reason}; "
        "its complaint does not count",
        culprits=(complainer.teacher,),
    )
