"""JSON documents that organisations send each other: one meaning has one text.

Whoever reads one builds the object and writes it again; other bytes than it came in are refused, so
a hash of the bytes is a hash of the meaning. Bytes are base64, keys are in a fixed order.
Used by join requests and the federation file.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dppp.errors import FederationError

VERSION = 1
SIZE_LIMIT = 64 * 2**20


def write_document(kind: str, fields: Mapping[str, object]) -> bytes:
    """The text of a document."""
    whole = {"kind": kind, "version": VERSION, **fields}
    return (json.dumps(whole, indent=2, allow_nan=False) + "\n").encode("ascii")


def read_document(data: bytes, kind: str, names: Sequence[str]) -> "Fields":
    """The fields of a document of this kind, and no others."""
    if len(data) > SIZE_LIMIT:
        raise FederationError(
            f"a {kind} has at most {SIZE_LIMIT:,} bytes, and this has more",
            hint="check which file it is",
        )
    try:
        found = json.loads(data, object_pairs_hook=_refuse_doubles)
    except (ValueError, RecursionError) as error:
        raise FederationError(
            f"this is not a {kind}, since it is not JSON ({error})", hint="get it again"
        ) from error
    fields = Fields(found, kind, ("kind", "version", *names))
    if fields.text("kind") != kind or found["version"] != VERSION:
        raise FederationError(
            f"this is not a {kind} of version {VERSION}", hint="check which file it is"
        )
    return fields


def require_same(written: bytes, data: bytes, kind: str) -> None:
    """Refuse a second text of the same meaning."""
    if written != data:
        raise FederationError(
            f"this {kind} is not byte for byte as dppp wrote it", hint="get it again, as a file"
        )


def to_text(data: bytes) -> str:
    """Bytes as they are written in a document."""
    return base64.b64encode(data).decode("ascii")


class Fields:
    """An object of a document; what is missing, unknown or of another type is named."""

    def __init__(self, found: object, where: str, names: Sequence[str]) -> None:
        if not isinstance(found, dict) or set(found) != set(names):
            there = sorted(found) if isinstance(found, dict) else type(found).__name__
            raise FederationError(
                f"{where} must have exactly the fields {', '.join(names)}; got {str(there)[:200]}",
                hint="ask its sender for the file as dppp wrote it",
            )
        self._found: dict[str, Any] = found
        self._where = where

    def text(self, name: str) -> str:
        """A field that is text."""
        value = self._found[name]
        if not isinstance(value, str):
            raise FederationError(f"{self._where}: {name} must be text")
        return value

    def optional_text(self, name: str) -> str | None:
        """A field that is text or null."""
        return None if self._found[name] is None else self.text(name)

    def optional_number(self, name: str) -> int | None:
        """A field that is a whole number or null."""
        value = self._found[name]
        if value is not None and type(value) is not int:
            raise FederationError(f"{self._where}: {name} must be a whole number or null")
        return value

    def optional_bytes(self, name: str) -> bytes | None:
        """A field that is base64 or null."""
        return None if self._found[name] is None else self.bytes(name)

    def bytes(self, name: str) -> bytes:
        """A field that is base64."""
        try:
            return base64.b64decode(self.text(name), validate=True)
        except (binascii.Error, ValueError) as error:
            raise FederationError(f"{self._where}: {name} is not base64 ({error})") from error

    def texts(self, name: str) -> tuple[str, ...]:
        """A field that is a list of texts."""
        value = self._list(name)
        if not all(isinstance(each, str) for each in value):
            raise FederationError(f"{self._where}: {name} must be a list of texts")
        return tuple(value)

    def inner(self, name: str, names: Sequence[str]) -> "Fields":
        """A field that is an object."""
        return Fields(self._found[name], f"{self._where}: {name}", names)

    def inners(self, name: str, names: Sequence[str]) -> tuple["Fields", ...]:
        """A field that is a list of objects."""
        return tuple(
            Fields(each, f"{self._where}: {name} {place}", names)
            for place, each in enumerate(self._list(name), start=1)
        )

    def _list(self, name: str) -> list[Any]:
        value = self._found[name]
        if not isinstance(value, list):
            raise FederationError(f"{self._where}: {name} must be a list")
        return value


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found
