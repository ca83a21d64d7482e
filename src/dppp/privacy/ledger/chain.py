"""Entries chained by their hashes, so that no past can be changed without changing the head.

hash = SHA-256(domain, previous hash, index, kind, payload), each part behind its length.
"""

from dataclasses import dataclass

from dppp.errors import InputError
from dppp.hashing import HASH_BYTES, hash_parts
from dppp.privacy.ledger.records import Record, encode_record

_DOMAIN = "dppp ledger entry, version 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The index and hash of an entry: everything up to it in 40 bytes, to be compared."""

    index: int
    hash: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.index, int) or isinstance(self.index, bool) or self.index < -1:
            raise InputError(f"the index of a head must be a whole number, got {self.index!r}")
        if not isinstance(self.hash, bytes) or len(self.hash) != HASH_BYTES:
            raise InputError(f"the hash of a head must have {HASH_BYTES} bytes")

    def __str__(self) -> str:
        return f"entry {self.index}, hash {self.hash.hex()}"


BEGINNING = Head(index=-1, hash=bytes(HASH_BYTES))
"""What the first entry follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One record as it is stored."""

    index: int
    kind: str
    payload: bytes
    hash: bytes

    @property
    def head(self) -> Head:
        """The head of a ledger that ends here."""
        return Head(index=self.index, hash=self.hash)

    def follows(self, previous: Head) -> bool:
        """Whether this is what was written after `previous`."""
        return self.index == previous.index + 1 and self.hash == entry_hash(
            previous.hash, self.index, self.kind, self.payload
        )


def chain_record(previous: Head, record: Record) -> Entry:
    """The entry that follows `previous`."""
    kind, payload = encode_record(record)
    index = previous.index + 1
    digest = entry_hash(previous.hash, index, kind, payload)
    return Entry(index=index, kind=kind, payload=payload, hash=digest)


def entry_hash(previous: bytes, index: int, kind: str, payload: bytes) -> bytes:
    """The hash of one entry, over everything in it and the hash before."""
    return hash_parts(_DOMAIN, (previous, index.to_bytes(8, "big"), kind.encode(), payload))
