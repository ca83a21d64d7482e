"""The one hash of everything that is bound together: ids, signatures, challenges, ledger entries.

SHA-256 over a domain and parts, each behind its length, so that no two statements share an input to
the hash.
"""

import hashlib
from collections.abc import Iterable

HASH_BYTES = 32
_JOINED_BYTES = 2**16
"""Up to here one call for all parts is faster than two for each; above, joining is a waste."""


def hash_parts(domain: str, parts: Iterable[bytes]) -> bytes:
    """SHA-256 of the domain and the parts, each with its length before it."""
    pieces: list[bytes] = []
    for part in (domain.encode(), *parts):
        pieces += (len(part).to_bytes(8, "big"), part)
    if sum(map(len, pieces)) <= _JOINED_BYTES:
        return hashlib.sha256(b"".join(pieces)).digest()
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()
