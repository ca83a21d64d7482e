"""Seals: they open where they should and to one thing only, where AES-GCM's open to two."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.masks.seals import open_many, seal_many

from dppp.errors import InputError, PeerFault, SealUnopened
from dppp.masks.sealing import CONTEXT_BYTES, TAG_BYTES, Pairs, Purpose, open_one

pytestmark = pytest.mark.attack

KEY = bytes(range(32))
CONTEXT = bytes(range(100, 164))
ADDRESS: dict[str, Any] = {
    "purpose": Purpose.SECRET_ROW,
    "dealer": 3,
    "recipient": 5,
    "context": CONTEXT,
}


def bytes_of(name: str, count: int) -> bytes:
    return hashlib.shake_256(name.encode()).digest(count)


def matrix(*rows: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)


def seal_one(key: bytes, row: bytes, *, recipient: int, **address: Any) -> bytes:
    return seal_many([key], matrix(row), recipients=[recipient], **address)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What recipient 2 gets from every dealer."""

    keys: tuple[bytes, ...]
    rows: tuple[bytes, ...]
    contexts: tuple[bytes, ...]
    sealed: tuple[bytes, ...]

    @classmethod
    def of(cls, teachers: int, length: int) -> "Delivery":
        keys = tuple(bytes_of(f"key {each}", 32) for each in range(teachers))
        rows = tuple(bytes_of(f"row {each}", length) for each in range(teachers))
        contexts = tuple(bytes_of(f"context {each}", CONTEXT_BYTES) for each in range(teachers))
        sealed = tuple(
            seal_one(
                key, row, purpose=Purpose.SECRET_ROW, dealer=dealer, recipient=2, context=context
            )
            for dealer, (key, row, context) in enumerate(
                zip(keys, rows, contexts, strict=True), start=1
            )
        )
        return cls(keys=keys, rows=rows, contexts=contexts, sealed=sealed)

    def open(self) -> NDArray[np.uint8]:
        return open_many(
            self.keys,
            self.sealed,
            purpose=Purpose.SECRET_ROW,
            dealers=range(1, len(self.keys) + 1),
            recipient=2,
            contexts=self.contexts,
            length=len(self.rows[0]),
        )

    def with_seal(self, position: int, sealed: bytes) -> "Delivery":
        changed = (*self.sealed[:position], sealed, *self.sealed[position + 1 :])
        return replace(self, sealed=changed)


@given(st.integers(1, 12), st.integers(1, 200), st.sampled_from(Purpose))
def test_every_recipient_opens_its_own_row(count: int, length: int, purpose: Purpose) -> None:
    length = length if purpose is Purpose.SECRET_ROW else min(length, 32)
    keys = [bytes_of(f"key {each}", 32) for each in range(count)]
    rows = [bytes_of(f"row {each}", length) for each in range(count)]
    recipients = range(1, count + 1)
    common: dict[str, Any] = {"purpose": purpose, "dealer": 1, "context": CONTEXT}
    sealed = seal_many(keys, matrix(*rows), recipients=recipients, **common)
    assert {len(each) for each in sealed} == {length + TAG_BYTES}
    for key, row, recipient, each in zip(keys, rows, recipients, sealed, strict=True):
        assert open_one(key, each, recipient=recipient, length=length, **common) == row


@given(st.integers(1, 12), st.integers(1, 200))
def test_a_recipient_opens_what_all_dealers_sent(count: int, length: int) -> None:
    delivery = Delivery.of(count, length)
    assert delivery.open().tobytes() == b"".join(delivery.rows)


def test_a_seal_opens_only_with_its_key_indices_and_context() -> None:
    row = bytes_of("row", 40)
    sealed = seal_one(KEY, row, **ADDRESS)
    assert open_one(KEY, sealed, length=40, **ADDRESS) == row
    others: list[dict[str, Any]] = [
        {"dealer": 4},
        {"recipient": 4},
        {"dealer": 5, "recipient": 3},
        {"context": bytes(64)},
    ]
    for other in others:
        with pytest.raises(SealUnopened):
            open_one(KEY, sealed, length=40, **(ADDRESS | other))
    with pytest.raises(SealUnopened) as caught:
        open_one(bytes(32), sealed, length=40, **ADDRESS)
    assert caught.value.dealers == (3,)
    assert caught.value.culprits == (), "who is at fault is not known yet"


def test_streams_of_different_addresses_have_nothing_in_common() -> None:
    zeros = bytes(32)
    addresses = [
        ADDRESS,
        ADDRESS | {"purpose": Purpose.SEED_ROW},
        ADDRESS | {"dealer": 5, "recipient": 3},
        ADDRESS | {"recipient": 6},
        ADDRESS | {"context": bytes(64)},
    ]
    sealed = [seal_one(KEY, zeros, **each) for each in addresses]
    pieces = {each[at : at + 16] for each in sealed for at in range(0, 64, 16)}
    assert len(pieces) == 4 * len(addresses)


@given(st.integers(0, 72 * 8 - 1))
def test_no_bit_of_a_seal_can_be_changed(bit: int) -> None:
    sealed = bytearray(seal_one(KEY, bytes_of("row", 40), **ADDRESS))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SealUnopened):
        open_one(KEY, bytes(sealed), length=40, **ADDRESS)


def test_a_seal_of_another_length_does_not_open() -> None:
    sealed = seal_one(KEY, bytes_of("row", 40), **ADDRESS)
    for changed in (b"", sealed[:32], sealed[1:], sealed[:-1], sealed + b"\0"):
        with pytest.raises(SealUnopened):
            open_one(KEY, changed, length=40, **ADDRESS)
        if len(changed) > TAG_BYTES:
            with pytest.raises(SealUnopened):
                open_one(KEY, changed, length=len(changed) - TAG_BYTES, **ADDRESS)


@given(st.sets(st.integers(0, 8), min_size=1))
def test_exactly_the_bad_seals_are_named(bad: set[int]) -> None:
    delivery = Delivery.of(9, 10)
    for position in bad:
        sealed = delivery.sealed[position]
        delivery = delivery.with_seal(position, bytes((sealed[0] ^ 1,)) + sealed[1:])
    with pytest.raises(SealUnopened) as caught:
        delivery.open()
    assert caught.value.dealers == tuple(position + 1 for position in sorted(bad))


def test_a_seal_of_one_kind_does_not_open_as_the_other() -> None:
    for purpose, other in (tuple(Purpose), tuple(Purpose)[::-1]):
        sealed = seal_one(KEY, bytes_of("row", 32), **(ADDRESS | {"purpose": purpose}))
        with pytest.raises(SealUnopened):
            open_one(KEY, sealed, length=32, **(ADDRESS | {"purpose": other}))


def test_a_row_longer_than_its_stream_is_refused() -> None:
    """Or the bytes that hide a long row of a seed would hide one of a secret as well."""
    for purpose, longest in ((Purpose.SEED_ROW, 32), (Purpose.SECRET_ROW, 40)):
        pairs = Pairs.of_dealer([KEY], dealer=3, recipients=[5], context=CONTEXT, length=40)
        assert len(pairs.seal(purpose, matrix(bytes(longest)))) == longest + TAG_BYTES
        with pytest.raises(InputError):
            pairs.seal(purpose, matrix(bytes(longest + 1)))


def test_both_kinds_of_one_pair_have_no_byte_of_the_stream_in_common() -> None:
    pairs = Pairs.of_dealer([KEY], dealer=3, recipients=[5], context=CONTEXT, length=64)
    secret = pairs.seal(Purpose.SECRET_ROW, matrix(bytes(64)))[:64]
    seed = pairs.seal(Purpose.SEED_ROW, matrix(bytes(32)))[:32]
    (expanded,) = pairs.expanded
    assert expanded[64:] == seed + secret
    windows = [expanded[at : at + 8] for at in range(len(expanded) - 7)]
    assert len(set(windows)) == len(windows), "neither tag key is in a stream, nor one in the other"


def test_seals_of_another_length_in_all_are_refused() -> None:
    delivery = Delivery.of(5, 10)
    for sealed in (b"", delivery.sealed[1] + b"\0"):
        with pytest.raises(InputError):
            delivery.with_seal(1, sealed).open()


def test_tags_that_only_moved_between_seals_are_found() -> None:
    """The tags are compared joined first."""
    delivery = Delivery.of(3, 10)
    one, other = delivery.sealed[0], delivery.sealed[1]
    exchanged = delivery.with_seal(0, one[:10] + other[10:]).with_seal(1, other[:10] + one[10:])
    with pytest.raises(SealUnopened) as caught:
        exchanged.open()
    assert caught.value.dealers == (1, 2)


def test_a_seal_to_one_teacher_does_not_open_for_another_dealer_or_batch() -> None:
    delivery = Delivery.of(4, 10)
    exchanged = delivery.with_seal(0, delivery.sealed[1]).with_seal(1, delivery.sealed[0])
    with pytest.raises(SealUnopened) as caught:
        exchanged.open()
    assert caught.value.dealers == (1, 2)


@pytest.mark.parametrize(
    "changed",
    [
        {"pair_keys": [bytes(31)]},
        {"pair_keys": [KEY, KEY]},
        {"pair_keys": []},
        {"plaintexts": np.zeros((1, 4), dtype=np.uint16)},
        {"plaintexts": np.zeros(4, dtype=np.uint8)},
        {"plaintexts": np.zeros((1, 0), dtype=np.uint8)},
        {"plaintexts": np.zeros((2, 4), dtype=np.uint8)},
        {"recipients": [1, 2]},
        {"recipients": [0]},
        {"recipients": [65_536]},
        {"dealer": 0},
        {"context": bytes(33)},
    ],
    ids=str,
)
def test_sealing_refuses_what_does_not_fit_together(changed: dict[str, Any]) -> None:
    given_values: dict[str, Any] = {
        "pair_keys": [KEY],
        "plaintexts": np.zeros((1, 4), dtype=np.uint8),
        "purpose": Purpose.SECRET_ROW,
        "dealer": 1,
        "recipients": [2],
        "context": CONTEXT,
    }
    assert len(seal_many(**given_values)[0]) == 4 + TAG_BYTES
    with pytest.raises(InputError):
        seal_many(**(given_values | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"pair_keys": [bytes(31)]},
        {"pair_keys": []},
        {"sealed": []},
        {"dealers": [1, 3]},
        {"dealers": [0]},
        {"recipient": 65_536},
        {"contexts": [bytes(33)]},
        {"contexts": []},
        {"length": 0},
        {"pair_keys": [], "sealed": [], "dealers": [], "contexts": []},
    ],
    ids=str,
)
def test_opening_refuses_what_does_not_fit_together(changed: dict[str, Any]) -> None:
    common: dict[str, Any] = {"purpose": Purpose.SECRET_ROW}
    sealed = seal_one(KEY, b"four", dealer=1, recipient=2, context=CONTEXT, **common)
    given_values = common | {
        "pair_keys": [KEY],
        "sealed": [sealed],
        "dealers": [1],
        "recipient": 2,
        "contexts": [CONTEXT],
        "length": 4,
    }
    assert open_many(**given_values).tobytes() == b"four"
    with pytest.raises(InputError) as caught:
        open_many(**(given_values | changed))
    assert not isinstance(caught.value, PeerFault)


# AES-GCM, as the control: its tag is a polynomial in a key that the dealer knows.

NONCE = bytes(12)
BLOCK = 16


def field_product(one: int, other: int) -> int:
    """In GF(2^128) with the bits of GCM: the highest bit is the coefficient of 1."""
    result = 0
    for position in range(127, -1, -1):
        if other >> position & 1:
            result ^= one
        one = one >> 1 ^ (0xE1 << 120 if one & 1 else 0)
    return result


def field_inverse(element: int) -> int:
    """The element to the power 2^128 - 2: the product of its squares but for itself."""
    result, square = 1 << 127, element
    for _ in range(127):
        square = field_product(square, square)
        result = field_product(result, square)
    return result


def tag_parts(key: bytes) -> tuple[int, int]:
    """The point at which the polynomial is taken, and what is added to it."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
    blocks = encryptor.update(bytes(BLOCK) + NONCE + (1).to_bytes(4, "big"))
    return int.from_bytes(blocks[:BLOCK], "big"), int.from_bytes(blocks[BLOCK:], "big")


def sealed_for_two_keys(first: bytes, second: bytes) -> bytes:
    """A ciphertext of two blocks with one tag under both keys; its second block is solved for."""
    head = int.from_bytes(bytes_of("any block", BLOCK), "big")
    lengths = 2 * BLOCK * 8
    known, squares = 0, []
    for key in (first, second):
        point, mask = tag_parts(key)
        square = field_product(point, point)
        squares.append(square)
        known ^= field_product(head, field_product(square, point))
        known ^= field_product(lengths, point) ^ mask
    solved = field_product(known, field_inverse(squares[0] ^ squares[1]))
    point, mask = tag_parts(first)
    tag = field_product(head, field_product(squares[0], point)) ^ mask
    tag ^= field_product(solved, squares[0]) ^ field_product(lengths, point)
    return b"".join(part.to_bytes(BLOCK, "big") for part in (head, solved, tag))


def test_a_gcm_ciphertext_opens_to_two_rows_under_two_keys_and_a_seal_does_not() -> None:
    first, second = bytes_of("first", 32), bytes_of("second", 32)
    ambiguous = sealed_for_two_keys(first, second)
    opened = [AESGCM(key).decrypt(NONCE, ambiguous, None) for key in (first, second)]
    assert opened[0] != opened[1], "with GCM's own tag the dealer has two rows in one seal"

    stream = seal_one(first, bytes(2 * BLOCK), **ADDRESS)
    row = bytes(a ^ b for a, b in zip(stream[:-TAG_BYTES], ambiguous[:-BLOCK], strict=True))
    sealed = seal_one(first, row, **ADDRESS)
    assert sealed[:-TAG_BYTES] == ambiguous[:-BLOCK], "the same ciphertext, with our tag"
    assert open_one(first, sealed, length=2 * BLOCK, **ADDRESS) == row
    with pytest.raises(SealUnopened):
        open_one(second, sealed, length=2 * BLOCK, **ADDRESS)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_no_seal_opens_under_two_keys(first: bytes, second: bytes) -> None:
    if first == second:
        return
    sealed = seal_one(first, bytes(8), **ADDRESS)
    with pytest.raises(SealUnopened):
        open_one(second, sealed, length=8, **ADDRESS)
