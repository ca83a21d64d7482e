"""JSON vectors: an earlier program's are met, ours made again, and bad ones fail as they say."""

import hashlib
import json
import re
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from tests.masks.make_vectors import VECTORS, make

from dppp import errors
from dppp.masks.gaussian import gaussian_table
from dppp.masks.packing import Slots, pack_bits, unpack_blocks
from dppp.masks.parameters import FIELD, Parameters
from dppp.masks.ring import ShortPolynomial, multiply, reduce
from dppp.masks.sharing import Sharing, elements_from_bytes

ALL = json.loads(VECTORS.read_text())
PROTOTYPE = ALL["prototype"]
RINGS = [name for name in PROTOTYPE if name.startswith("ring")]


def public_of_the_prototype(seed: bytes, degree: int, modulus_bits: int) -> NDArray[np.uint64]:
    """Block 0: AES-256-CTR, little-endian words, under a hash of everything without lengths."""
    text = seed + bytes([degree.bit_length(), modulus_bits]) + bytes(8)
    key = hashlib.sha256(b"dppp ring public 1" + text).digest()
    encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
    words = np.frombuffer(encryptor.update(bytes(8 * degree)), dtype="<u8")
    return reduce(words, modulus_bits)


@pytest.mark.parametrize("name", RINGS)
def test_masks_are_those_of_the_prototype(name: str) -> None:
    vector = PROTOTYPE[name]
    degree, modulus_bits, scale_bits, slot_bits = map(int, re.findall(r"=(\d+)", name))
    public = public_of_the_prototype(bytes.fromhex(vector["seed"]), degree, modulus_bits)
    assert public[:4].tolist() == vector["public_first"]
    whole_words = public.astype("<u8").tobytes()
    assert hashlib.sha256(whole_words).hexdigest() == vector["public_block0_sha256"]

    places = np.arange(degree)
    secret, error = (7 * places) % 27 - 13, (5 * places) % 23 - 11
    product = multiply(public, ShortPolynomial(secret), modulus_bits=modulus_bits)
    assert product[:4].tolist() == vector["product_block0_first"]

    slots = Slots(
        degree=degree,
        modulus_bits=modulus_bits,
        scale_bits=scale_bits,
        slot_bits=slot_bits,
        slots_per_coefficient=(modulus_bits - scale_bits) // slot_bits,
    )
    counts = 31 * np.arange(degree * slots.slots_per_coefficient) % 1000
    masked = reduce(product + error.view(np.uint64) + slots.encode_counts(counts), modulus_bits)
    packed = pack_bits(masked, modulus_bits)
    assert len(packed) == vector["masked_bytes"]
    assert hashlib.sha256(packed).hexdigest() == vector["masked_block0_sha256"]

    opened = reduce(unpack_blocks(packed, blocks=1, degree=degree, bits=modulus_bits) - product, 64)
    assert (slots.decode_counts(opened, len(counts)) == counts).all()


def test_rows_are_those_of_the_prototype() -> None:
    """It packed 2r - N - C = 2 values. That is too many for its trust, but the rows are right."""
    vector = PROTOTYPE["sharing N=7 C=1 D=1"]
    sharing = Sharing(teachers=7, rows_needed=vector["r"], packed=vector["ell"])
    secret = np.array(vector["secret"])
    rows = sharing.deal_from(secret, np.array(vector["free"], dtype=np.uint16))
    assert vector["p"] == FIELD
    assert rows.tolist() == vector["shares"]
    assert (sharing.combine([7, 2, 4, 6, 1], rows[[6, 1, 3, 5, 0]], 8) == secret).all()


def test_the_gaussian_table_is_that_of_the_prototype() -> None:
    vector, table = PROTOTYPE["gauss sigma=6.4"], gaussian_table()
    assert (table.lowest, table.highest) == (vector["lowest"], vector["highest"])
    assert table.distance == vector["distance"]
    joined = b"".join(threshold.to_bytes(16) for threshold in table.thresholds)
    assert hashlib.sha256(joined).hexdigest() == vector["thresholds_sha256"]


def test_our_vectors_are_made_again() -> None:
    assert json.loads(json.dumps(make(PROTOTYPE))) == ALL


def _combine(given: Any) -> Any:
    names = ("teachers", "rows_needed", "packed")
    sharing = Sharing(**{name: given[name] for name in names})
    columns = sharing.columns_for(given["length"])
    rows = [elements_from_bytes(bytes.fromhex(row), columns) for row in given["rows"]]
    return sharing.combine(given["indices"], np.stack(rows), given["length"])


def _unpack(given: Any) -> Any:
    sizes = {name: given[name] for name in ("blocks", "degree", "bits")}
    return unpack_blocks(bytes.fromhex(given["data"]), **sizes)


def _slots(given: Any) -> Slots:
    names = ("degree", "modulus_bits", "scale_bits", "slot_bits")
    return Slots(**{name: given[name] for name in names}, slots_per_coefficient=1)


OPERATIONS = {
    "combine": _combine,
    "unpack": _unpack,
    "encode": lambda given: _slots(given).encode_counts(np.array(given["counts"])),
    "decode": lambda given: _slots(given).decode_counts(
        np.array(given["opened"], dtype=np.uint64), given["counts"]
    ),
    "parameters": lambda given: Parameters(**given),
}


@pytest.mark.parametrize("vector", ALL["bad"], ids=lambda vector: vector["name"])
def test_bad_vectors_fail_as_they_say(vector: Any) -> None:
    with pytest.raises(errors.DpppError) as caught:
        OPERATIONS[vector["operation"]](vector["given"])
    assert caught.type is getattr(errors, vector["error"])


def test_bad_vectors_have_names_of_their_own() -> None:
    names = [vector["name"] for vector in ALL["bad"]]
    assert len(set(names)) == len(names) > 15
    assert all(name.startswith("bad_") for name in names)
