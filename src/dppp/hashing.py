"""The one hash of everything that is bound together: ids, signatures, challenges, ledger entries.

SHA-256 over a domain and parts, each behind its length, so that no two statements share an input to
the hash.
"""

import hashlib
from collections.abc import Iterable

HASH_BYTES = 32


def hash_parts(domain: str, parts: Iterable[bytes]) -> bytes:
    """SHA-256 of the domain and the parts, each with its length before it."""
    digest = hashlib.sha256()
    for part in (domain.encode(), *parts):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
