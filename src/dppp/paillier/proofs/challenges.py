"""Fiat-Shamir: challenges from the hash of a whole statement (`dppp.hashing.hash_parts`)."""

import hashlib

from gmpy2 import mpz

CHALLENGE_BITS = 128
CHALLENGE_BYTES = CHALLENGE_BITS // 8
# Extra bits by which a random mask exceeds what it hides in a response over the integers.
MASK_BITS = 128


def expand_challenges(seed: bytes, count: int) -> tuple[mpz, ...]:
    """`count` challenges of 128 bits from the hash of a statement."""
    stream = hashlib.shake_256(b"dppp challenges 1" + seed).digest(count * CHALLENGE_BYTES)
    return tuple(
        mpz.from_bytes(stream[start : start + CHALLENGE_BYTES], "big")
        for start in range(0, len(stream), CHALLENGE_BYTES)
    )
