"""Fiat-Shamir: challenges from a hash of the whole statement.

Every part is preceded by its length and the whole by a domain, so no two statements share an
input to the hash.
"""

import hashlib
from collections.abc import Iterable

from gmpy2 import mpz

CHALLENGE_BITS = 128
CHALLENGE_BYTES = CHALLENGE_BITS // 8
# Extra bits by which a random mask exceeds what it hides in a response over the integers.
MASK_BITS = 128


def hash_statement(domain: bytes, parts: Iterable[bytes]) -> bytes:
    """SHA-256 of the domain and the parts, each with its length before it."""
    digest = hashlib.sha256()
    for part in (domain, *parts):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def expand_challenges(seed: bytes, count: int) -> tuple[mpz, ...]:
    """`count` challenges of 128 bits from the hash of a statement."""
    stream = hashlib.shake_256(b"dppp challenges 1" + seed).digest(count * CHALLENGE_BYTES)
    return tuple(
        mpz.from_bytes(stream[start : start + CHALLENGE_BYTES], "big")
        for start in range(0, len(stream), CHALLENGE_BYTES)
    )
