"""Canonical bytes: fixed lengths, big-endian, one encoding for one value.

Every encoding starts with a tag that names the kind and its version. Reading is strict: another
tag, too few bytes and bytes left over are all refused.
"""

from gmpy2 import mpz

from dppp.errors import EncodingError


def byte_length(value: mpz) -> int:
    """How many bytes hold every integer up to `value`."""
    return (value.bit_length() + 7) // 8


class Reader:
    """Takes fields from the front of an encoding."""

    def __init__(self, data: bytes, *, tag: bytes, kind: str) -> None:
        self._data = data
        self._position = 0
        self._kind = kind
        if self.take(len(tag)) != tag:
            raise EncodingError(
                f"these bytes are not {kind} of a version known here", hint="check what was sent"
            )

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        taken = self._data[self._position : self._position + length]
        if len(taken) != length:
            raise EncodingError(
                f"{self._kind} ends after {len(self._data)} bytes, in the middle of a field",
                hint="get it again, it was cut short",
            )
        self._position += length
        return taken

    def integer(self, length: int) -> mpz:
        """The next `length` bytes as an integer."""
        return mpz.from_bytes(self.take(length), "big")

    def count(self, length: int) -> int:
        """The next `length` bytes as a small integer."""
        return int.from_bytes(self.take(length), "big")

    def finish(self) -> None:
        """Refuse bytes after the last field."""
        left_over = len(self._data) - self._position
        if left_over:
            raise EncodingError(
                f"{self._kind} has {left_over} bytes after its end",
                hint="get it again, it was changed",
            )
