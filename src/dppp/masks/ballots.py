"""A ballot under masks: a header that everybody sees, and a body that the aggregator keeps.

    b_k = a_k·s + e_k + Δ·m_k                      for the vote blocks k ≥ 1, a_k = XOF(batch, k)
    votes = the blocks' bytes XOR pad(seed)
    head   = salt, H(b_0), H(votes), H(seed)
    header = head, H(seals of rows of s), H(seals of rows of the seed)

A teacher casts one; the aggregator checks that its body is the one of its signed header; whoever
verifies a transcript checks the same.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dppp.errors import BallotFault, InputError
from dppp.hashing import HASH_BYTES, hash_parts
from dppp.masks.dealing import (
    SALT_BYTES,
    Preparation,
    digest_of_check_block,
    digest_of_head,
    digest_of_seed,
    reduce_to,
    seal_contexts,
    seal_rows,
    secret_row_bytes,
    seed_row_bytes,
)
from dppp.masks.gaussian import RandomStream, draw
from dppp.masks.packing import Slots, pack_bits
from dppp.masks.parameters import Parameters
from dppp.masks.ring import ShortPolynomial, multiply, public_polynomials
from dppp.masks.sealing import TAG_BYTES
from dppp.randomness import KeyStream, RandomSource, expand_key, system_randomness

_COEFFICIENTS_AT_ONCE = 12 * 1024
"""What these take fits a processor's cache."""
_FIELDS = 6
HEADER_BYTES = SALT_BYTES + (_FIELDS - 1) * HASH_BYTES
HEADER_DIGESTS_BYTES = 2 * HASH_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a teacher signs of its ballot: every other byte of it follows, or is covered."""

    salt: bytes
    check_digest: bytes
    votes_digest: bytes
    seed_digest: bytes
    secret_seals_digest: bytes
    seed_seals_digest: bytes

    def __post_init__(self) -> None:
        if {len(each) for each in self._parts()} != {HASH_BYTES}:
            raise InputError("a ballot's header is a salt and five digests of 32 bytes")

    def _parts(self) -> tuple[bytes, ...]:
        return (
            self.salt,
            self.check_digest,
            self.votes_digest,
            self.seed_digest,
            self.secret_seals_digest,
            self.seed_seals_digest,
        )

    @property
    def head_digest(self) -> bytes:
        """What its seals are bound to: all of it but their own digests."""
        return digest_of_head(
            self.salt, check=self.check_digest, votes=self.votes_digest, seed=self.seed_digest
        )

    @property
    def digests(self) -> bytes:
        """What other teachers see of it: H(head), with which they open seals, and H(the rest)."""
        rest = (self.secret_seals_digest, self.seed_seals_digest)
        return self.head_digest + hash_parts("dppp masks rest 1", rest)

    def to_bytes(self) -> bytes:
        """The canonical encoding, of fixed length."""
        return b"".join(self._parts())

    @classmethod
    def from_bytes(cls, data: bytes) -> "Header":
        """Read what `to_bytes` made."""
        if len(data) != HEADER_BYTES:
            raise InputError(f"a ballot's header has {HEADER_BYTES} bytes, got {len(data)}")
        return cls(
            salt=data[:32],
            check_digest=data[32:64],
            votes_digest=data[64:96],
            seed_digest=data[96:128],
            secret_seals_digest=data[128:160],
            seed_seals_digest=data[160:],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The bytes that a header covers; the seals of all recipients follow each other."""

    check_block: bytes = field(repr=False)
    votes: bytes = field(repr=False)
    secret_seals: bytes = field(repr=False)
    seed_seals: bytes = field(repr=False)


def slots_of(parameters: Parameters) -> Slots:
    """How counts lie in coefficients."""
    return Slots(
        degree=parameters.degree,
        modulus_bits=parameters.modulus_bits,
        scale_bits=parameters.scale_bits,
        slot_bits=parameters.slot_bits,
        slots_per_coefficient=parameters.slots_per_coefficient,
    )


def cast(
    parameters: Parameters,
    preparation: Preparation,
    counts: NDArray[np.int64],
    *,
    votes_seed: bytes,
    randomness: RandomSource = system_randomness,
) -> tuple[Header, Body]:
    """Mask these counts; by a teacher, with a preparation that was never used before.

    `votes_seed` is another one for each batch and attempt: the seals open for this one only.
    """
    messages = slots_of(parameters).encode_counts(counts)
    secret, errors = preparation.dealing.secret, KeyStream(randomness(32))
    masked = []
    step = max(1, _COEFFICIENTS_AT_ONCE // parameters.degree)
    for first in range(0, len(messages), step):
        some = messages[first : first + step]
        public = vote_polynomials(parameters, votes_seed, len(some), first=first)
        masked.append(_mask(parameters, public, some, secret, errors))
    votes = apply_pad(b"".join(masked), preparation.seed)
    return _seal(preparation, votes, votes_seed)


def _mask(
    parameters: Parameters,
    public: NDArray[np.uint64],
    messages: NDArray[np.uint64],
    secret: ShortPolynomial,
    errors: RandomStream,
) -> bytes:
    """Vote blocks, one for each public polynomial."""
    blocks = multiply(public, secret, modulus_bits=parameters.modulus_bits)
    blocks += messages
    blocks += draw(messages.size, errors).reshape(messages.shape).view(np.uint64)
    return pack_bits(reduce_to(parameters, blocks), parameters.modulus_bits)


def _seal(preparation: Preparation, votes: bytes, votes_seed: bytes) -> tuple[Header, Body]:
    """The votes with the rows sealed for this ballot, and the header of both."""
    check_block = preparation.dealing.check_block
    check, seed = digest_of_check_block(check_block), digest_of_seed(preparation.seed)
    votes_digest = digest_of_votes(votes)
    head = digest_of_head(preparation.salt, check=check, votes=votes_digest, seed=seed)
    (context,) = seal_contexts(preparation.keys.epoch, votes_seed, [head])
    secret_seals, seed_seals = seal_rows(preparation, context)
    header = Header(
        salt=preparation.salt,
        check_digest=check,
        votes_digest=votes_digest,
        seed_digest=seed,
        secret_seals_digest=digest_of_seals(secret_seals),
        seed_seals_digest=digest_of_seals(seed_seals),
    )
    body = Body(
        check_block=check_block, votes=votes, secret_seals=secret_seals, seed_seals=seed_seals
    )
    return header, body


def require_body(
    parameters: Parameters,
    header: Header,
    body: Body,
    *,
    dealer: int,
    recipients: int,
    counts: int,
) -> None:
    """Refuse a body that is not the one of the header, or not of this batch's size."""
    lengths = (
        (body.check_block, parameters.block_bytes),
        (body.votes, parameters.blocks_for(counts) * parameters.block_bytes),
        (body.secret_seals, recipients * (secret_row_bytes(parameters) + TAG_BYTES)),
        (body.seed_seals, recipients * (seed_row_bytes(parameters) + TAG_BYTES)),
    )
    digests = (
        (header.check_digest, digest_of_check_block(body.check_block)),
        (header.votes_digest, digest_of_votes(body.votes)),
        (header.secret_seals_digest, digest_of_seals(body.secret_seals)),
        (header.seed_seals_digest, digest_of_seals(body.seed_seals)),
    )
    if any(len(data) != length for data, length in lengths):
        raise BallotFault(
            f"teacher {dealer}'s ballot has parts of the wrong length", culprits=(dealer,)
        )
    if any(said != found for said, found in digests):
        raise BallotFault(
            f"teacher {dealer}'s ballot is not the one of its header", culprits=(dealer,)
        )


def seal_at(seals: bytes, position: int, recipients: int) -> bytes:
    """The seal of the recipient at this position."""
    length = len(seals) // recipients
    return seals[position * length : (position + 1) * length]


def vote_polynomials(
    parameters: Parameters, votes_seed: bytes, blocks: int, *, first: int = 0
) -> NDArray[np.uint64]:
    """a_1 … of a batch, or those after its first ones."""
    return public_polynomials(
        votes_seed,
        range(first + 1, first + blocks + 1),
        degree=parameters.degree,
        modulus_bits=parameters.modulus_bits,
    )


def apply_pad(data: bytes, seed: bytes) -> bytes:
    """Put the pad of a seed on, or take it off."""
    pad = expand_key(hash_parts("dppp masks pad 1", (seed,)), len(data))
    mixed = np.frombuffer(data, dtype=np.uint8) ^ np.frombuffer(pad, dtype=np.uint8)
    return mixed.tobytes()


def digest_of_votes(votes: bytes) -> bytes:
    """H(votes), pad and all."""
    return hash_parts("dppp masks votes digest 1", (votes,))


def digest_of_seals(seals: bytes) -> bytes:
    """H(all seals of one kind, in the recipients' order)."""
    return hash_parts("dppp masks seals digest 1", (seals,))
