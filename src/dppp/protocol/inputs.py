"""Inputs as bytes: rows of finite 64-bit floats, little-endian, one for each feature."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dppp.errors import InputError

_FLOAT_BYTES = 8


def encode_inputs(rows: ArrayLike, features: int) -> tuple[bytes, ...]:
    """One input for each row; run by the querier."""
    try:
        table = np.asarray(rows, dtype="<f8")
    except (TypeError, ValueError) as error:
        raise InputError(f"inputs must be numbers: {error}") from error
    if table.ndim != 2 or table.shape[1] != features:
        raise InputError(f"inputs must be rows of {features} numbers, got shape {table.shape}")
    _require_finite(table)
    return tuple(row.tobytes() for row in table)


def decode_inputs(inputs: Sequence[bytes], features: int) -> NDArray[np.float64]:
    """The rows; run by every teacher before its model sees them."""
    for position, each in enumerate(inputs):
        if len(each) != features * _FLOAT_BYTES:
            raise InputError(
                f"input {position} has {len(each)} bytes, expected {features} numbers of "
                f"{_FLOAT_BYTES} bytes"
            )
    table = np.frombuffer(b"".join(inputs), dtype="<f8").reshape(len(inputs), features)
    _require_finite(table)
    return table.astype(np.float64)


def _require_finite(table: NDArray[np.float64]) -> None:
    broken = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(broken):
        raise InputError(
            f"input {int(broken[0])} holds a value that is not a finite number",
            hint="fill in or leave out what is missing",
        )
