"""Possession of an epoch key, and what a copied key would give away if nobody asked for proof."""

import hashlib
import os
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from tests.masks.seals import seal_many

from dppp.errors import EpochKeyFault
from dppp.masks.curve25519 import ORDER, PRIME, decode_u, is_on_curve, lift, multiply
from dppp.masks.epoch_keys import Epoch, EpochKey, EpochSecret, derive_pair_keys, pair_secret
from dppp.masks.equal_logarithms import prove_pair_secret
from dppp.masks.possession import prove_possession, verify_possession
from dppp.masks.sealing import CONTEXT_BYTES, Purpose, open_one

pytestmark = pytest.mark.attack

EPOCH = Epoch(task_id=bytes(range(32)), number=7)


def secret_of(teacher: int) -> EpochSecret:
    return EpochSecret(teacher=teacher, secret=hashlib.sha256(bytes((teacher,))).digest())


@given(st.binary(min_size=32, max_size=32), st.integers(1, 65_535))
def test_whoever_has_the_secret_can_prove_it(secret: bytes, teacher: int) -> None:
    own = EpochSecret(teacher=teacher, secret=secret)
    verify_possession(own.key, EPOCH, prove_possession(own, EPOCH))


def test_a_proof_is_for_one_teacher_epoch_task_and_key() -> None:
    own = secret_of(1)
    proof = prove_possession(own, EPOCH)
    other_statements = [
        (EpochKey(teacher=2, public=own.key.public), EPOCH),
        (EpochKey(teacher=1, public=secret_of(2).key.public), EPOCH),
        (own.key, Epoch(task_id=EPOCH.task_id, number=8)),
        (own.key, Epoch(task_id=bytes(32), number=7)),
    ]
    for key, epoch in other_statements:
        with pytest.raises(EpochKeyFault) as caught:
            verify_possession(key, epoch, proof)
        assert caught.value.culprits == (key.teacher,)


def test_no_byte_of_a_proof_can_be_changed() -> None:
    own = secret_of(1)
    proof = prove_possession(own, EPOCH)
    changed = [
        proof[:at] + bytes((proof[at] ^ 1 << at % 8,)) + proof[at + 1 :] for at in range(len(proof))
    ]
    for each in (*changed, b"", proof[:-1], proof + b"\0", b"\2" + proof[1:]):
        with pytest.raises(EpochKeyFault):
            verify_possession(own.key, EPOCH, each)


def test_a_point_on_the_twist_has_no_proof() -> None:
    """Also not the one that satisfies the equation for a key that counts as the identity."""
    identity_signature = (1).to_bytes(32, "little") + bytes(32)
    signatures = (identity_signature, bytes(64), prove_possession(secret_of(1), EPOCH)[1:])
    on_twist = [u for u in range(2, 60) if not is_on_curve(u)]
    assert len(on_twist) > 20
    for u in (*on_twist, 2**255 - 20):
        key = EpochKey(teacher=1, public=u.to_bytes(32, "little"))
        for sign in (b"\0", b"\1"):
            for signature in signatures:
                with pytest.raises(EpochKeyFault):
                    verify_possession(key, EPOCH, sign + signature)


def test_a_copied_key_reads_rows_of_honest_teachers_unless_possession_is_asked_for() -> None:
    """Teacher 9 publishes teacher 3's key as its own and seals rubbish to teacher 1."""
    complainer, honest = secret_of(1), secret_of(3)
    keys = derive_pair_keys(pair_secret(complainer, honest.key), EPOCH, complainer.key, honest.key)
    row, context = os.urandom(24), bytes(CONTEXT_BYTES)
    address: dict[str, Any] = {"purpose": Purpose.SECRET_ROW, "dealer": 1, "context": context}
    (sealed,) = seal_many(
        [keys.sealing_key],
        np.frombuffer(row, dtype=np.uint8).reshape(1, -1),
        recipients=[3],
        **address,
    )

    copied = EpochKey(teacher=9, public=honest.key.public)
    shown, _ = prove_pair_secret(complainer, copied, b"teacher 9's seal does not open")
    stolen = derive_pair_keys(shown, EPOCH, complainer.key, honest.key)
    read = open_one(stolen.sealing_key, sealed, recipient=3, length=24, **address)
    assert read == row, "without the defence the attack works"

    with pytest.raises(EpochKeyFault) as caught:
        verify_possession(copied, EPOCH, prove_possession(honest, EPOCH))
    assert caught.value.culprits == (9,)


def test_a_multiple_of_a_key_reads_them_as_well_and_has_no_proof_either() -> None:
    """The factor is the colluder's own scalar, of which it divides what is shown."""
    complainer, honest, factor = secret_of(1), secret_of(3), secret_of(9)
    multiplied = EpochKey(teacher=9, public=factor.exchange(honest.key))
    shown, _ = prove_pair_secret(complainer, multiplied, b"teacher 9's seal does not open")
    inverse = pow(factor.scalar(), -1, ORDER)
    assert multiple_of(shown, inverse) == pair_secret(complainer, honest.key)
    for proof in (prove_possession(honest, EPOCH), prove_possession(factor, EPOCH)):
        with pytest.raises(EpochKeyFault):
            verify_possession(multiplied, EPOCH, proof)


def multiple_of(shown: bytes, scalar: int) -> bytes:
    _, y, z, _ = multiply(scalar, lift(decode_u(shown), is_odd=False))
    return ((z + y) * pow(z - y, -1, PRIME) % PRIME).to_bytes(32, "little")


def test_the_epoch_key_is_an_ordinary_x25519_key() -> None:
    own = secret_of(5)
    library = X25519PrivateKey.from_private_bytes(hashlib.sha512(own.secret).digest()[:32])
    assert library.public_key().public_bytes_raw() == own.key.public
