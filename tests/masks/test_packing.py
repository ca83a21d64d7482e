from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dppp.errors import EncodingError, InputError, PaddingFault
from dppp.masks.packing import Slots, pack_bits, unpack_bits, unpack_blocks

TWO_SLOTS: dict[str, int] = {
    "degree": 16,
    "modulus_bits": 43,
    "scale_bits": 11,
    "slot_bits": 16,
    "slots_per_coefficient": 2,
}


@st.composite
def coefficients(draw: st.DrawFn) -> tuple[int, list[int]]:
    bits = draw(st.integers(8, 57))
    groups = draw(st.integers(1, 6))
    whole = st.one_of(st.sampled_from([0, 2**bits - 1]), st.integers(0, 2**bits - 1))
    return bits, draw(st.lists(whole, min_size=8 * groups, max_size=8 * groups))


@given(coefficients())
def test_bytes_are_the_bits_one_after_the_other(given_: tuple[int, list[int]]) -> None:
    bits, values = given_
    whole = sum(value << bits * place for place, value in enumerate(values))
    data = pack_bits(np.array(values, dtype=np.uint64), bits)
    assert data == whole.to_bytes(len(values) * bits // 8, "little")
    assert unpack_bits(data, bits).tolist() == values


@given(st.integers(8, 57), st.data())
def test_any_bytes_of_the_right_length_are_some_mask(bits: int, data: st.DataObject) -> None:
    packed = data.draw(st.binary(min_size=4 * bits, max_size=4 * bits))
    assert pack_bits(unpack_blocks(packed, blocks=2, degree=16, bits=bits), bits) == packed


def test_rows_are_packed_one_after_the_other() -> None:
    rows = np.arange(32, dtype=np.uint64).reshape(2, 16)
    assert pack_bits(rows, 26) == pack_bits(rows[0], 26) + pack_bits(rows[1], 26)
    assert pack_bits(np.asfortranarray(rows), 26) == pack_bits(rows, 26)


@pytest.mark.parametrize("length", [0, 103, 105, 208])
def test_masks_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(EncodingError, match="take 104 bytes"):
        unpack_blocks(bytes(length), blocks=2, degree=16, bits=26)
    if length % 26 or not length:
        with pytest.raises(EncodingError):
            unpack_bits(bytes(length), 26)


def test_coefficients_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="more than 26 bits"):
        pack_bits(np.full(8, 2**26, dtype=np.uint64), 26)
    with pytest.raises(InputError, match="multiple of eight"):
        pack_bits(np.zeros(12, dtype=np.uint64), 26)
    with pytest.raises(InputError, match="multiple of eight"):
        pack_bits(np.zeros(0, dtype=np.uint64), 26)
    with pytest.raises(InputError, match="uint64"):
        pack_bits(np.zeros(8, dtype=np.int64), 26)
    for bits in (7, 58):
        with pytest.raises(InputError, match="8 to 57 bits"):
            pack_bits(np.zeros(8, dtype=np.uint64), bits)
        with pytest.raises(InputError, match="8 to 57 bits"):
            unpack_bits(bytes(bits), bits)


@st.composite
def layouts(draw: st.DrawFn) -> Slots:
    scale_bits = draw(st.integers(1, 20))
    slots = draw(st.integers(1, 4))
    slot_bits = draw(st.integers(1, (57 - scale_bits) // slots))
    spare = draw(st.integers(0, 57 - scale_bits - slots * slot_bits))
    return Slots(
        degree=16,
        modulus_bits=scale_bits + slots * slot_bits + spare,
        scale_bits=scale_bits,
        slot_bits=slot_bits,
        slots_per_coefficient=slots,
    )


@given(layouts(), st.integers(1, 150), st.data())
def test_counts_come_back_from_under_errors_below_half_the_scale(
    slots: Slots, counts: int, data: st.DataObject
) -> None:
    whole = st.integers(0, 2**slots.slot_bits - 1)
    given_ = np.array(data.draw(st.lists(whole, min_size=counts, max_size=counts)), dtype=np.int64)
    encoded = slots.encode_counts(given_)
    half = 1 << (slots.scale_bits - 1)
    for error in (-half, half - 1):
        noisy = encoded + np.int64(error).astype(np.uint64)
        # Also after reduction modulo q, as an opened sum comes.
        reduced = noisy & np.uint64(2**slots.modulus_bits - 1)
        assert (slots.decode_counts(reduced, counts) == given_).all()
        assert (slots.decode_counts(noisy, counts) == given_).all()


def test_an_error_past_half_the_scale_changes_a_count() -> None:
    slots = Slots(**TWO_SLOTS)
    encoded = slots.encode_counts(np.full(32, 5))
    assert slots.decode_slots(encoded + np.uint64(1024))[:2].tolist() == [6, 5]
    assert slots.decode_slots(encoded - np.uint64(1025))[:2].tolist() == [4, 5]


def test_counts_of_many_teachers_add_up_in_their_slots() -> None:
    slots = Slots(**TWO_SLOTS)
    rows = np.arange(20 * 50).reshape(20, 50) * 3
    total = sum((slots.encode_counts(row) for row in rows), np.zeros((2, 16), dtype=np.uint64))
    assert (slots.decode_counts(total, 50) == rows.sum(axis=0)).all()


def test_something_in_the_padding_is_a_fault_with_a_name() -> None:
    slots = Slots(**TWO_SLOTS)
    encoded = slots.encode_counts(np.arange(40))
    assert encoded.shape == (2, 16)
    with pytest.raises(PaddingFault, match="slot 39 is 39"):
        slots.decode_counts(encoded, 39)
    assert slots.decode_counts(encoded, 40).tolist() == list(range(40))
    assert slots.decode_slots(encoded)[40:].tolist() == [0] * 24
    for counts in (0, 65):
        with pytest.raises(InputError, match="64 slots"):
            slots.decode_counts(encoded, counts)


@pytest.mark.parametrize("counts", [[-1], [65536], [], [[1]], [1.0]])
def test_counts_that_no_slot_holds_are_refused(counts: Any) -> None:
    with pytest.raises(InputError, match="to mask"):
        Slots(**TWO_SLOTS).encode_counts(np.array(counts))


@pytest.mark.parametrize(
    "change",
    [{"modulus_bits": 42}, {"modulus_bits": 58}, {"scale_bits": 0}, {"slots_per_coefficient": 0}],
)
def test_slots_without_room_are_refused(change: Any) -> None:
    with pytest.raises(InputError):
        Slots(**{**TWO_SLOTS, **change})
