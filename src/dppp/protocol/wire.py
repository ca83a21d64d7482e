"""Messages as bytes: canonical msgpack with a schema, and nothing else gets in.

A message is a frozen data class; its fields and their types are the schema. On the wire it is a map
from "kind" and the field names, in order, to values. Decoding is strict: the size is checked before
anything is parsed, then types, names and ranges, and last that encoding the result again gives the
same bytes, so that one message has one encoding and a hash of bytes is a hash of meaning.

There is no pickle, no extension type and no default: an unknown or missing field is refused.
"""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

import msgpack

from dppp.errors import WireError

VERSION = 2
MOST_ELEMENTS = 2**18
"""In one list: more than any message needs. An element of two bytes takes sixty in memory."""
_MOST_INTEGER = 2**63 - 1
_NOTHING = b"\xc0"
"""None, in msgpack."""
_LONG_BYTES = 2**16
"""From this length on the header of bytes is always the same mark and a length of four bytes."""
_LONG_BYTES_MARK = b"\xc6"
_SCALARS = frozenset({int, float, bytes, str, bool})
_ANY_VALUE = frozenset({bytes, str, bool})
"""Every value of these types is taken, where the type is right."""


class Message(Protocol):
    """What every message class has beside its fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    KIND: ClassVar[str]
    SIZE_LIMIT: ClassVar[int]


AnyMessage = TypeVar("AnyMessage", bound=Message)


def encode(message: Message) -> bytes:
    """The one encoding of a message."""
    pieces = _encode_in_pieces(message)
    size = sum(map(len, pieces))
    if size > message.SIZE_LIMIT:
        raise WireError(
            f"a {message.KIND} of {size:,} bytes is over its limit of {message.SIZE_LIMIT:,}",
            hint="send fewer queries in a batch",
        )
    return b"".join(pieces)


def decode(data: bytes, expected: type[AnyMessage]) -> AnyMessage:
    """The message of this kind in these bytes; anything else is refused with a reason."""
    if len(data) > expected.SIZE_LIMIT:
        raise WireError(
            f"{len(data):,} bytes are over the limit of {expected.SIZE_LIMIT:,} for a "
            f"{expected.KIND}; nothing was parsed"
        )
    try:
        message = _Reader(data).message(expected)
    except WireError:
        raise
    except (TypeError, ValueError, OverflowError, msgpack.exceptions.UnpackException) as error:
        raise WireError(
            f"these bytes are not a {expected.KIND}: {type(error).__name__} {error}",
            hint="get them again",
        ) from error
    if not _is_encoding(data, message):
        raise WireError(f"a {expected.KIND} is not in its canonical form; refuse it")
    return typing.cast(AnyMessage, message)


def kind_of(data: bytes) -> str:
    """The kind that these bytes say they are, for choosing how to decode them."""
    try:
        unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1), raw=False)
        unpacker.feed(data[:64])
        if unpacker.read_map_header() >= 2:
            names = [unpacker.unpack() for _ in range(4)]
            if names[0] == "version" and names[2] == "kind" and isinstance(names[3], str):
                _require_version(names[1], names[3])
                return names[3]
    except (ValueError, msgpack.exceptions.UnpackException):
        pass
    raise WireError("these bytes are not a message")


def _require_version(found: object, kind: str) -> None:
    """Another version of dppp is named, with what to do; it is no attack and no damage."""
    if found == 1:
        raise WireError(
            f"this {kind} was made before 0.2.0, whose keys are unsafe",
            hint=(
                "make a new federation with new keys, keep the ledgers, read CHANGELOG.md, Security"
            ),
        )
    if type(found) is int and found != VERSION:
        raise WireError(
            f"this {kind} is of wire format {found}, and this dppp speaks {VERSION}",
            hint="all parties run the same version: compare `dppp --version`, and upgrade",
        )


def _is_encoding(data: bytes, message: Message) -> bool:
    """Whether these bytes are the encoding of a message, without making all of it once more."""
    end = 0
    for piece in _encode_in_pieces(message):
        if not data.startswith(piece, end):
            return False
        end += len(piece)
    return end == len(data)


def _encode_in_pieces(message: Message) -> list[bytes]:
    """The encoding, cut around long bytes: those are as they were given, and not copied."""
    plain = {"version": VERSION, "kind": message.KIND, **_to_plain(message)}
    pieces: list[bytes] = []
    _write(plain, msgpack.Packer(use_bin_type=True), pieces)
    return pieces


def _write(value: Any, packer: msgpack.Packer, pieces: list[bytes]) -> None:
    if not _has_long_bytes(value):
        pieces.append(packer.pack(value))
    elif isinstance(value, bytes):
        pieces += (_LONG_BYTES_MARK + len(value).to_bytes(4, "big"), value)
    elif isinstance(value, dict):
        pieces.append(packer.pack_map_header(len(value)))
        for name, each in value.items():
            pieces.append(packer.pack(name))
            _write(each, packer, pieces)
    else:
        pieces.append(packer.pack_array_header(len(value)))
        for each in value:
            _write(each, packer, pieces)


def _has_long_bytes(value: Any) -> bool:
    """Whether there are long bytes in a value; the elements of a list are all of one type."""
    if isinstance(value, bytes):
        return len(value) >= _LONG_BYTES
    if isinstance(value, dict):
        return any(map(_has_long_bytes, value.values()))
    if isinstance(value, list | tuple) and value and not isinstance(value[0], int | float | str):
        return any(map(_has_long_bytes, value))
    return False


def _to_plain(message: Any) -> dict[str, Any]:
    kind: type = type(message)
    return {name: to_plain(getattr(message, name)) for name, to_plain in _writers(kind)}


def _value_to_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return _to_plain(value)
    if isinstance(value, tuple):
        return [_value_to_plain(each) for each in value]
    return value


def _unchanged(value: Any) -> Any:
    return value


@functools.cache
def _writers(kind: type) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """How each field of a data class becomes what msgpack knows: numbers and bytes as they are."""
    return tuple(
        (name, _unchanged if _is_plain(hint) else _value_to_plain)
        for name, hint in _schema(kind).items()
    )


def _is_plain(hint: Any) -> bool:
    """Whether msgpack writes such values as they are, tuples of them too."""
    if typing.get_origin(hint) is tuple:
        hint = typing.get_args(hint)[0]
    return _scalar_type(_without_none(hint)) in _SCALARS


@functools.cache
def _schema(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _scalar_type(hint: Any) -> Any:
    """What a NewType is made of."""
    return getattr(hint, "__supertype__", hint)


class _Reader:
    """Reads what the schema expects and builds nothing else.

    Maps and lists are entered one by one, and only where the schema has them: a byte on the wire
    can become an object of a hundred, and a megabyte of nested lists must not become a gigabyte.
    How many elements a list may have is checked before any of them is read.
    """

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._size = len(data)
        self._unpacker = msgpack.Unpacker(
            max_buffer_size=max(len(data), 1), max_array_len=0, max_map_len=0, max_ext_len=0
        )
        self._unpacker.feed(data)

    def message(self, expected: type[Message]) -> Any:
        """The whole of the bytes as one message."""
        fields = self._open(
            self._unpacker.read_map_header, f"these bytes are not a {expected.KIND}: no map"
        )
        for name, value in (("version", VERSION), ("kind", expected.KIND)):
            is_named = self._unpacker.unpack() == name
            found = self._unpacker.unpack() if is_named else None
            if name == "version":
                _require_version(found, expected.KIND)
            if found != value:
                raise WireError(
                    f"these bytes are not a {expected.KIND} of version {VERSION} in canonical form"
                )
        message = self._fields(expected, fields - 2, expected.KIND)
        if self._unpacker.tell() != self._size:
            raise WireError(f"these bytes are not a {expected.KIND}: there are more after its end")
        return message

    def _open(self, read_header: Callable[[], int], otherwise: str) -> int:
        """The length of the map or list that starts here."""
        try:
            return read_header()
        except (ValueError, msgpack.exceptions.UnpackException) as error:
            raise WireError(otherwise) from error

    def _fields(self, expected: type, count: int, where: str) -> Any:
        readers = _readers(expected)
        if count != len(readers):
            raise WireError(f"{where} has {count} fields, expected {list(_schema(expected))}")
        values = {}
        for name, read in readers:
            found = self._unpacker.unpack()
            if found != name:
                raise WireError(f"{where} has a field {str(found)[:40]!r}, expected {name!r}")
            values[name] = read(self, f"{where}.{name}")
        return expected(**values)

    def _read_count(self, where: str) -> int:
        """The length of a list; checked before anything of it is read."""
        count = self._open(self._unpacker.read_array_header, f"{where}: expected a list")
        if count > MOST_ELEMENTS:
            raise WireError(f"{where} has {count:,} elements, {MOST_ELEMENTS:,} at most")
        return count

    def read_list(self, read: "_Read", where: str) -> tuple[Any, ...]:
        """A list of anything else."""
        return tuple([read(self, where) for _ in range(self._read_count(where))])

    def read_scalars(self, expected: type, where: str) -> tuple[Any, ...]:
        """A list of numbers, texts or bytes: read first and then checked all at once."""
        unpack = self._unpacker.unpack
        values = [unpack() for _ in range(self._read_count(where))]
        is_uniform = set(map(type, values)) <= {expected}
        if expected is int and is_uniform and values:
            values_to_check = [min(values), max(values)]
        else:
            values_to_check = [] if is_uniform and expected in _ANY_VALUE else values
        for each in values_to_check:
            _scalar(each, expected, where)
        return tuple(values)

    def read_optional(self, read: "_Read", where: str) -> Any:
        """A value or None."""
        return self._unpacker.unpack() if self._is_nothing() else read(self, where)

    def read_fields(self, kind: type, where: str) -> Any:
        """A data class."""
        otherwise = f"{where}: expected the fields {list(_schema(kind))}"
        return self._fields(kind, self._open(self._unpacker.read_map_header, otherwise), where)

    def read_scalar(self, expected: type, where: str) -> Any:
        """A number, a text or bytes."""
        return _scalar(self._unpacker.unpack(), expected, where)

    def _is_nothing(self) -> bool:
        """Whether the next value is None."""
        return self._data[self._unpacker.tell() :][:1] == _NOTHING


_Read = Callable[[_Reader, str], Any]
"""Reads one value at the reader's place; the text says where that is."""


@functools.cache
def _readers(kind: type) -> tuple[tuple[str, _Read], ...]:
    """How each field of a data class is read: worked out once for each class."""
    return tuple((name, _reader_of(hint)) for name, hint in _schema(kind).items())


def _reader_of(hint: Any) -> _Read:
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        if _scalar_type(inner) in _SCALARS:
            kind = _scalar_type(inner)
            return lambda reader, where: reader.read_scalars(kind, where)
        read_inner = _reader_of(inner)
        return lambda reader, where: reader.read_list(read_inner, where)
    if typing.get_origin(hint) is types.UnionType:
        read_some = _reader_of(_without_none(hint))
        return lambda reader, where: reader.read_optional(read_some, where)
    if dataclasses.is_dataclass(hint):
        fields_of = typing.cast(type, hint)
        return lambda reader, where: reader.read_fields(fields_of, where)
    scalar = _scalar_type(hint)
    return lambda reader, where: reader.read_scalar(scalar, where)


def _without_none(hint: Any) -> Any:
    """What an optional value is when it is there; the schema knows no other unions."""
    if typing.get_origin(hint) is not types.UnionType:
        return hint
    kind, nothing = typing.get_args(hint)
    assert nothing is type(None), "the schema knows optional values, no other unions"
    return kind


def _scalar(value: Any, expected: Any, where: str) -> Any:
    if type(value) is not expected:
        raise WireError(f"{where} is {type(value).__name__}, expected {expected.__name__}")
    if expected is int and not -_MOST_INTEGER <= value <= _MOST_INTEGER:
        raise WireError(f"{where} is out of range")
    if expected is float and not math.isfinite(value):
        raise WireError(f"{where} is not a finite number")
    return value
