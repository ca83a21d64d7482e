"""The MACs of endorsements: half of SHA-256 over domain, key and statement."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from dppp.protocol.with_masks.keys import mac_of
from dppp.protocol.with_masks.messages import MAC_BYTES

_BYTES = st.binary(min_size=32, max_size=32)


@given(_BYTES, _BYTES)
def test_a_mac_is_what_the_page_says(key: bytes, statement: bytes) -> None:
    whole = hashlib.sha256(b"dppp MAC 2" + key + statement).digest()
    assert mac_of(key, statement) == whole[:MAC_BYTES]


@given(_BYTES, _BYTES, st.integers(0, 511))
def test_another_key_or_statement_has_another_mac(key: bytes, statement: bytes, bit: int) -> None:
    changed = bytearray(key + statement)
    changed[bit // 8] ^= 1 << bit % 8
    assert mac_of(bytes(changed[:32]), bytes(changed[32:])) != mac_of(key, statement)
