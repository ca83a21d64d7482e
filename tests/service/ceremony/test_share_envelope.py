"""A share reaches the teacher that it was sealed to, and nobody else."""

from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from hypothesis import given
from hypothesis import strategies as st
from tests.small_federation import dealt_key

from dppp.errors import KeyMaterialError
from dppp.protocol.messages import TaskId
from dppp.service.ceremony.share_envelope import TAG, seal_to, unseal_from

KEY = X25519PrivateKey.generate()
TASK, OTHER_TASK = TaskId(b"t" * 32), TaskId(b"o" * 32)
SHARE = dealt_key(3, 2).shares[1]
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
    with pytest.raises(KeyMaterialError, match="not an X25519 key"):
        seal_to(bytes(32), SHARE, TASK)


def test_task_and_index_are_bound_to_the_sealed_bytes() -> None:
    """Whoever rewrites the header to fit another task or teacher has an envelope that is shut."""
    place = len(TAG)
    for_another_task = SEALED[:place] + OTHER_TASK + SEALED[place + 32 :]
    with pytest.raises(KeyMaterialError, match="does not open"):
        unseal_from(for_another_task, KEY, OTHER_TASK)
    index = (SHARE.index + 1).to_bytes(2, "big")
    for_another_teacher = SEALED[: place + 32] + index + SEALED[place + 34 :]
    with pytest.raises(KeyMaterialError, match=f"of teacher {SHARE.index + 1}, does not open"):
        unseal_from(for_another_teacher, KEY, TASK)


def test_it_is_hpke_with_the_header_as_info() -> None:
    """So that any implementation of RFC 9180 opens it."""
    header, sealed = SEALED[: len(TAG) + 34], SEALED[len(TAG) + 34 :]
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
    assert suite.decrypt(sealed, KEY, info=header) == SHARE.to_bytes()


def test_an_envelope_of_the_old_format_says_what_to_do() -> None:
    old = b"dppp share envelope 1\n" + SEALED[len(TAG) :]
    for data in (old, old[:30], old + bytes(32)):
        with pytest.raises(KeyMaterialError, match=r"before 0\.2\.0.*\nhint: .*dealt again"):
            unseal_from(data, KEY, TASK)
