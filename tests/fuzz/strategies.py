"""Bytes that are almost right: good ones damaged, rearranged, or encoded in another way."""

import json
import struct
from typing import Any

import msgpack
from hypothesis import strategies as st

_NUMBERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0, 1, -1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63), 2**64 - 1]),
    st.floats(),
)
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    _NUMBERS,
    st.text(max_size=20),
    st.binary(max_size=80),
    st.sampled_from(["", "\x00", "e" * 300, b"", bytes(32), bytes(64)]),
)
VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """Bits flipped, a piece cut, repeated, moved or made up."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        start, stop = sorted(draw(st.integers(0, len(data))) for _ in range(2))
        match draw(st.sampled_from(["flip", "cut", "repeat", "insert", "truncate", "move"])):
            case "flip" if data:
                position = draw(st.integers(0, 8 * len(data) - 1))
                data[position // 8] ^= 1 << position % 8
            case "cut":
                del data[start:stop]
            case "repeat":
                data[stop:stop] = data[start:stop][:10_000]
            case "insert":
                data[start:start] = draw(st.binary(max_size=40))
            case "truncate":
                del data[stop:]
            case "move":
                piece = data[start:stop]
                del data[start:stop]
                place = draw(st.integers(0, len(data)))
                data[place:place] = piece
    return bytes(data)


@st.composite
def rearranged(draw: st.DrawFn, good: bytes) -> bytes:
    """The same tree with values exchanged, fields added, dropped or out of order."""
    return pack(draw, _changed(draw, msgpack.unpackb(good, strict_map_key=False)), is_loose=False)


@st.composite
def encoded_otherwise(draw: st.DrawFn, good: bytes) -> bytes:
    """The same message with lengths and numbers that are longer than they need to be."""
    return pack(draw, msgpack.unpackb(good, strict_map_key=False), is_loose=True)


@st.composite
def rearranged_json(draw: st.DrawFn, good: bytes) -> bytes:
    changed = _changed(draw, json.loads(good))
    return json.dumps(changed, default=lambda value: value.hex()).encode("utf-8", "surrogatepass")


def bombs() -> st.SearchStrategy[bytes]:
    """Small bytes that claim to be large, or deep."""
    openers = (
        b"\x91",
        b"\x81\xa0",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdc\xff\xff",
    )
    claims = (b"\xc6\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc9\xff\xff\xff\xff\x01")
    return st.builds(
        lambda opener, depth, end: opener * depth + end,
        st.sampled_from([*openers, *claims, b"[", b'{"a":', b"9", b"\xc7\x00"]),
        st.sampled_from([1, 2, 100, 600, 1100, 5000, 200_000]),
        st.binary(max_size=20),
    )


def _changed(draw: st.DrawFn, value: Any) -> Any:
    """Walk to some place of the tree and change it."""
    if isinstance(value, dict) and value:
        return _changed_map(draw, value)
    if isinstance(value, list) and value:
        return _changed_list(draw, value)
    return draw(VALUES)


def _changed_list(draw: st.DrawFn, value: list[Any]) -> Any:
    place = draw(st.integers(0, len(value) - 1))
    match draw(st.sampled_from(["in", "in", "in", "drop", "repeat", "order", "all"])):
        case "in":
            return [*value[:place], _changed(draw, value[place]), *value[place + 1 :]]
        case "drop":
            return [*value[:place], *value[place + 1 :]]
        case "repeat":
            return [*value, value[place]]
        case "order":
            return draw(st.permutations(value))
        case _:
            return draw(VALUES)


def _changed_map(draw: st.DrawFn, value: dict[Any, Any]) -> Any:
    name = draw(st.sampled_from(sorted(value, key=str)))
    match draw(st.sampled_from(["in", "in", "in", "drop", "add", "order", "all"])):
        case "in":
            return {**value, name: _changed(draw, value[name])}
        case "drop":
            return {key: each for key, each in value.items() if key != name}
        case "add":
            return {**value, draw(st.text(max_size=8)): draw(VALUES)}
        case "order":
            return dict(draw(st.permutations(list(value.items()))))
        case _:
            return draw(VALUES)


def pack(draw: st.DrawFn, value: Any, *, is_loose: bool) -> bytes:
    """msgpack by hand, so that what a packer never writes can be written."""

    def longer(*formats: bytes) -> bytes:
        return draw(st.sampled_from(formats)) if is_loose else formats[0]

    match value:
        case bool() | None | float():
            return bytes(msgpack.packb(value))
        case int():
            fits = value in range(2**31) and is_loose
            return struct.pack(">cI", b"\xce", value) if fits else bytes(msgpack.packb(value))
        case str():
            text = value.encode("utf-8", "surrogatepass")
            return longer(
                msgpack.packb(value, unicode_errors="surrogatepass"), b"\xdb" + _long(text)
            )
        case bytes():
            return longer(msgpack.packb(value), b"\xc6" + _long(value), b"\xdb" + _long(value))
        case list():
            header = longer(msgpack.Packer().pack_array_header(len(value)), b"\xdd" + _count(value))
            return header + b"".join(pack(draw, each, is_loose=is_loose) for each in value)
        case dict():
            header = longer(msgpack.Packer().pack_map_header(len(value)), b"\xdf" + _count(value))
            return header + b"".join(
                pack(draw, each, is_loose=is_loose) for item in value.items() for each in item
            )
    raise AssertionError(type(value))


def _count(value: Any) -> bytes:
    return len(value).to_bytes(4, "big")


def _long(data: bytes) -> bytes:
    return _count(data) + data
