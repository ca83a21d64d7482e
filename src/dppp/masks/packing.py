"""Counts to coefficients and coefficients to bytes, and back; all parties.

A coefficient holds `slots_per_coefficient` counts above the error: slot 0 lowest, then scaled by
Δ = 2^scale_bits. In bytes, coefficient j of `bits` bits begins at bit j·bits, lowest bit of the
first byte first. There is no gap and no spare bit, so every string of the right length is the
encoding of exactly one mask.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.errors import EncodingError, InputError, PaddingFault

Words = NDArray[np.uint64]

LEAST_BITS = 8
LARGEST_BITS = 57
"""Eight coefficients begin at any bit of a byte: with more bits one might not fit in 64."""


def pack_bits(coefficients: Words, bits: int) -> bytes:
    """The coefficients as bytes; their number must be divisible by eight."""
    _require_bits(bits)
    if coefficients.dtype != np.uint64 or coefficients.size % 8 or not coefficients.size:
        raise InputError("coefficients to pack are uint64, and a multiple of eight")
    if int(coefficients.max()) >> bits:
        raise InputError(f"a coefficient to pack has more than {bits} bits")
    groups = coefficients.reshape(-1, 8)
    data = np.zeros(len(groups) * bits + 8, dtype=np.uint8)
    for place in range(8):
        start, shift = divmod(place * bits, 8)
        window = _windows(data, start, bits, len(groups))
        # Windows of one place do not overlap: they are `bits` ≥ 8 bytes apart.
        window |= groups[:, place] << np.uint64(shift)
    return data[:-8].tobytes()


def unpack_bits(data: bytes, bits: int) -> Words:
    """The coefficients that these bytes hold, in one row."""
    _require_bits(bits)
    count, left = divmod(len(data), bits)
    if left or not count:
        raise EncodingError(f"{len(data)} bytes do not hold a multiple of 8 × {bits} bits")
    padded = np.frombuffer(data + bytes(8), dtype=np.uint8)
    groups = np.empty((count, 8), dtype=np.uint64)
    for place in range(8):
        start, shift = divmod(place * bits, 8)
        np.right_shift(_windows(padded, start, bits, count), np.uint64(shift), out=groups[:, place])
    groups &= np.uint64((1 << bits) - 1)
    return groups.reshape(-1)


def unpack_blocks(data: bytes, *, blocks: int, degree: int, bits: int) -> Words:
    """The masks that these bytes hold, one per row; any other length is refused."""
    if len(data) * 8 != blocks * degree * bits:
        raise EncodingError(
            f"{blocks} masks of {degree} × {bits} bits take {blocks * degree * bits // 8} bytes, "
            f"got {len(data)}"
        )
    return unpack_bits(data, bits).reshape(blocks, degree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Where the counts are in a coefficient."""

    degree: int
    modulus_bits: int
    scale_bits: int
    slot_bits: int
    slots_per_coefficient: int

    def __post_init__(self) -> None:
        needed = self.scale_bits + self.slots_per_coefficient * self.slot_bits
        if min(self.scale_bits, self.slot_bits, self.slots_per_coefficient, self.degree) < 1:
            raise InputError("degree, scale, slots and their width are whole numbers from 1")
        if not needed <= self.modulus_bits <= LARGEST_BITS:
            raise InputError(
                f"{self.slots_per_coefficient} slots of {self.slot_bits} bits above "
                f"{self.scale_bits} take {needed} bits, and the modulus has {self.modulus_bits} "
                f"of at most {LARGEST_BITS}"
            )

    def encode_counts(self, counts: NDArray[np.int64]) -> Words:
        """Δ·m for these counts, which must fit their slots; one block per row, zeros at the end."""
        if counts.dtype != np.int64 or counts.ndim != 1 or not counts.size:
            raise InputError("counts to mask are one row of int64, at least one")
        if int(counts.min()) < 0 or int(counts.max()) >> self.slot_bits:
            raise InputError(f"a count to mask is not in [0, 2^{self.slot_bits})")
        per_block = self.degree * self.slots_per_coefficient
        blocks = -(-len(counts) // per_block)
        padded = np.zeros(blocks * per_block, dtype=np.uint64)
        padded[: len(counts)] = counts
        slots = padded.reshape(blocks, self.degree, self.slots_per_coefficient)
        coefficients = np.zeros((blocks, self.degree), dtype=np.uint64)
        for slot, shift in enumerate(self._shifts()):
            coefficients |= slots[:, :, slot] << shift
        return coefficients

    def decode_slots(self, opened: Words) -> NDArray[np.int64]:
        """What every slot holds once masks are off: the nearest multiple of Δ, taken apart."""
        # Modulo 2^64 first, then modulo q by cutting the slots: q divides 2^64.
        rounded = opened + np.uint64(1 << (self.scale_bits - 1))
        slots = np.empty((*opened.shape, self.slots_per_coefficient), dtype=np.uint64)
        for slot, shift in enumerate(self._shifts()):
            np.right_shift(rounded, shift, out=slots[..., slot])
        slots &= np.uint64((1 << self.slot_bits) - 1)
        return slots.view(np.int64).reshape(-1)

    def decode_counts(self, opened: Words, counts: int) -> NDArray[np.int64]:
        """The first `counts` slots; those after them were never written to and must be zero."""
        slots = self.decode_slots(opened)
        if not 1 <= counts <= len(slots):
            raise InputError(f"{len(slots)} slots do not hold {counts} counts")
        wrong = np.flatnonzero(slots[counts:])
        if len(wrong):
            raise PaddingFault(
                f"slot {counts + int(wrong[0])} is {slots[counts + wrong[0]]}, and only the first "
                f"{counts} hold counts: a teacher masked something else than its counts"
            )
        return slots[:counts]

    def _shifts(self) -> Words:
        slots = np.arange(self.slots_per_coefficient, dtype=np.uint64)
        return np.uint64(self.scale_bits) + np.uint64(self.slot_bits) * slots


def _windows(data: NDArray[np.uint8], start: int, stride: int, count: int) -> Words:
    """The 64-bit words that begin at byte `start` and every `stride` bytes on, as a view."""
    return np.ndarray((count,), dtype="<u8", buffer=data, offset=start, strides=(stride,))


def _require_bits(bits: int) -> None:
    if not LEAST_BITS <= bits <= LARGEST_BITS:
        raise InputError(f"coefficients have {LEAST_BITS} to {LARGEST_BITS} bits, got {bits}")
