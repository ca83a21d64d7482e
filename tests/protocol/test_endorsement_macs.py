"""The MACs of endorsements are HMAC-SHA-256, cut to 16 bytes."""

import hmac

from hypothesis import given
from hypothesis import strategies as st

from dppp.protocol.with_masks import keys
from dppp.protocol.with_masks.messages import MAC_BYTES


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200))
def test_a_mac_is_the_standard_one(key: bytes, statement: bytes) -> None:
    assert keys.MacKey.of(key).mac(statement) == hmac.digest(key, statement, "sha256")[:MAC_BYTES]
