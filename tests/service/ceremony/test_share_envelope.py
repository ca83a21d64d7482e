"""A share reaches the teacher that it was sealed to, and nobody else."""

from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol import small

from dppp.errors import KeyMaterialError
from dppp.protocol.messages import TaskId
from dppp.service.ceremony.share_envelope import seal_to, unseal_from

KEY = X25519PrivateKey.generate()
TASK, OTHER_TASK = TaskId(b"t" * 32), TaskId(b"o" * 32)
SHARE = small.dealt(3, 2).shares[1]
SEALED = seal_to(KEY.public_key().public_bytes_raw(), SHARE, TASK)


def test_its_teacher_opens_it() -> None:
    assert unseal_from(SEALED, KEY, TASK) == SHARE
    assert seal_to(KEY.public_key().public_bytes_raw(), SHARE, TASK) != SEALED


def test_nobody_else_opens_it() -> None:
    with pytest.raises(KeyMaterialError, match="ask the dealer"):
        unseal_from(SEALED, X25519PrivateKey.generate(), TASK)


def test_it_opens_in_no_other_federation() -> None:
    with pytest.raises(KeyMaterialError, match="another federation"):
        unseal_from(SEALED, KEY, OTHER_TASK)


def test_the_share_is_not_readable_in_it() -> None:
    assert SHARE.to_bytes()[-16:] not in SEALED


@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(place: int, mask: int) -> None:
    changed = bytearray(SEALED)
    changed[place] ^= mask
    with pytest.raises(KeyMaterialError):
        unseal_from(bytes(changed), KEY, TASK)


@given(st.integers(0, len(SEALED) - 1))
def test_any_cut_is_noticed(length: int) -> None:
    with pytest.raises(KeyMaterialError):
        unseal_from(SEALED[:length], KEY, TASK)


def test_an_envelope_with_another_share_in_it_than_it_names_is_refused() -> None:
    """Only a dealer can make one: the name is authenticated."""
    lying = SimpleNamespace(index=SHARE.index + 1, to_bytes=SHARE.to_bytes)
    sealed = seal_to(KEY.public_key().public_bytes_raw(), lying, TASK)  # type: ignore[arg-type]
    with pytest.raises(KeyMaterialError, match="not the one its envelope names"):
        unseal_from(sealed, KEY, TASK)


def test_a_sealing_key_of_low_order_is_refused() -> None:
    with pytest.raises(KeyMaterialError, match="no key"):
        seal_to(bytes(32), SHARE, TASK)
