"""The one hash: what is hashed is fixed for good, because ids, ledgers and proofs rest on it."""

import hashlib

from dppp.hashing import HASH_BYTES, hash_parts


def test_the_bytes_are_the_domain_and_the_parts_each_behind_eight_bytes_of_length() -> None:
    written = bytes(7) + b"\x06domain" + bytes(7) + b"\x02ab" + bytes(8)
    found = hash_parts("domain", [b"ab", b""])
    assert found == hashlib.sha256(written).digest()
    assert len(found) == HASH_BYTES


def test_the_hash_tells_apart_how_bytes_are_divided() -> None:
    hashes = {
        hash_parts("d", [b"ab", b"c"]),
        hash_parts("d", [b"a", b"bc"]),
        hash_parts("d", [b"abc"]),
        hash_parts("da", [b"bc"]),
        hash_parts("d", [b"ab", b"c", b""]),
    }
    assert len(hashes) == 5
