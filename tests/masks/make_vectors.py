"""Makes tests/vectors/masks.json: `python -m tests.masks.make_vectors`.

`prototype` are vectors of an earlier, independent program; they are kept, never made again. `good`
are ours: what the functions give for fixed bytes. A `bad` one names the operation, what it is
given, and the exception that it must cause. All bytes are in hexadecimal.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from tests.masks.streams import fixed_stream

from dppp.masks.gaussian import draw
from dppp.masks.packing import Slots, pack_bits
from dppp.masks.ring import ShortPolynomial, multiply, public_polynomials, reduce
from dppp.masks.sharing import Sharing, draw_elements, elements_to_bytes

VECTORS = Path(__file__).parents[1] / "vectors" / "masks.json"
RINGS = {
    "small": {"degree": 1024, "modulus_bits": 26, "scale_bits": 10},
    "large": {"degree": 2048, "modulus_bits": 43, "scale_bits": 11},
}
SEED = bytes(range(32))


def make(prototype: Any) -> dict[str, Any]:
    """All vectors."""
    masks = {name: _mask(**ring) for name, ring in RINGS.items()}
    good = {"masks": masks, "gaussian": _gaussian(), "sharing": _sharing()}
    return {"prototype": prototype, "good": good, "bad": _bad()}


def _mask(degree: int, modulus_bits: int, scale_bits: int) -> dict[str, Any]:
    """Two blocks of counts 31·j mod 1000, masked with secret and error from stream 1."""
    slots = Slots(
        degree=degree,
        modulus_bits=modulus_bits,
        scale_bits=scale_bits,
        slot_bits=16,
        slots_per_coefficient=(modulus_bits - scale_bits) // 16,
    )
    stream = fixed_stream(1)
    secret, error = draw(degree, stream), draw(2 * degree, stream).reshape(2, degree)
    public = public_polynomials(SEED, range(2), degree=degree, modulus_bits=modulus_bits)
    product = multiply(public, ShortPolynomial(secret), modulus_bits=modulus_bits)
    counts = 31 * np.arange(degree * slots.slots_per_coefficient + 1) % 1000
    masked = reduce(product + error.view(np.uint64) + slots.encode_counts(counts), modulus_bits)
    return {
        "degree": degree,
        "modulus_bits": modulus_bits,
        "scale_bits": scale_bits,
        "public_seed": SEED.hex(),
        "public_first": public[:, :4].tolist(),
        "public_sha256": _digest(pack_bits(public, modulus_bits)),
        "secret_first": secret[:8].tolist(),
        "product_first": product[:, :4].tolist(),
        "masked_sha256": _digest(pack_bits(masked, modulus_bits)),
    }


def _gaussian() -> dict[str, Any]:
    drawn = draw(100_000, fixed_stream(2))
    return {
        "stream": 2,
        "count": len(drawn),
        "first": drawn[:16].tolist(),
        "sha256": _digest(drawn.astype("<i2").tobytes()),
    }


def _sharing() -> dict[str, Any]:
    """Twenty teachers; the secret is drawn from stream 3, and then the rows."""
    sharing, stream = Sharing(teachers=20, rows_needed=14, packed=2), fixed_stream(3)
    secret = draw(5, stream)
    rows = sharing.deal(secret, stream)
    return {
        "stream": 3,
        "secret": secret.tolist(),
        "rows": [elements_to_bytes(row).hex() for row in rows],
        "elements_sha256": _digest(elements_to_bytes(draw_elements(100_000, fixed_stream(4)))),
    }


def _bad() -> list[dict[str, Any]]:
    seven: dict[str, Any] = {"teachers": 7, "rows_needed": 5, "packed": 2}
    five = {**seven, "indices": [1, 2, 3, 4, 5], "rows": ["00000000"] * 5, "length": 4}
    ring = {"teachers": 20, "colluders": 4, "dropouts": 2, "degree": 1024}
    ring |= {"modulus_bits": 26, "slot_bits": 16, "slots_per_coefficient": 1}
    masks = {"blocks": 1, "degree": 1024, "bits": 26}
    slots = {"degree": 8, "modulus_bits": 26, "scale_bits": 10, "slot_bits": 16}
    too_long = ["01000000", "00000100", *["00000000"] * 3]
    kinds: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
        "bad_row_not_in_the_field": ("combine", five, {"rows": ["f1ff0000"] * 5}, "EncodingError"),
        "bad_row_is_short": ("combine", five, {"rows": ["000000"] * 5}, "EncodingError"),
        "bad_index_0": ("combine", five, {"indices": [0, 1, 2, 3, 4]}, "RowsError"),
        "bad_index_past_the_last": ("combine", five, {"indices": [1, 2, 3, 4, 8]}, "RowsError"),
        "bad_index_twice": ("combine", five, {"indices": [1, 2, 3, 4, 4]}, "RowsError"),
        "bad_too_few_rows": (
            "combine", five, {"indices": [1, 2, 3, 4], "rows": ["00000000"] * 4}, "RowsError"
        ),
        "bad_secret_too_long": ("combine", five, {"rows": too_long, "length": 3}, "PaddingFault"),
        "bad_packed_more_than_needed": ("combine", five, {"packed": 6}, "InputError"),
        "bad_mask_is_short": ("unpack", masks, {"data": "00" * 3327}, "EncodingError"),
        "bad_mask_is_long": ("unpack", masks, {"data": "00" * 3329}, "EncodingError"),
        "bad_mask_of_another_modulus": ("unpack", masks, {"data": "00" * 3456}, "EncodingError"),
        "bad_count_is_negative": ("encode", slots, {"counts": [-1]}, "InputError"),
        "bad_count_is_past_its_slot": ("encode", slots, {"counts": [65536]}, "InputError"),
        "bad_padding": ("decode", slots, {"opened": [0] * 7 + [512], "counts": 7}, "PaddingFault"),
        "bad_ring_hides_too_little": (
            "parameters", ring, {"modulus_bits": 27}, "MaskParametersError"
        ),
        "bad_ring_past_the_table": (
            "parameters", ring, {"degree": 2048, "modulus_bits": 56}, "MaskParametersError"
        ),
        "bad_ring_without_room": ("parameters", ring, {"slot_bits": 17}, "MaskParametersError"),
        "bad_one_honest_teacher": ("parameters", ring, {"colluders": 17}, "MaskParametersError"),
        "bad_too_many_dropouts": ("parameters", ring, {"dropouts": 8}, "MaskParametersError"),
    }  # fmt: skip
    return [
        {"name": name, "operation": operation, "given": {**given, **change}, "error": error}
        for name, (operation, given, change, error) in kinds.items()
    ]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    kept = json.loads(VECTORS.read_text())["prototype"]
    VECTORS.write_text(json.dumps(make(kept), indent=1) + "\n")
