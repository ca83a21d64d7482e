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
from typing import Any, ClassVar, Protocol, TypeVar

import msgpack

from dppp.errors import WireError

VERSION = 1
_MOST_INTEGER = 2**63 - 1


class Message(Protocol):
    """What every message class has beside its fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    KIND: ClassVar[str]
    SIZE_LIMIT: ClassVar[int]


AnyMessage = TypeVar("AnyMessage", bound=Message)


def encode(message: Message) -> bytes:
    """The one encoding of a message."""
    plain = {"version": VERSION, "kind": message.KIND, **_to_plain(message)}
    data: bytes = msgpack.packb(plain, use_bin_type=True)
    if len(data) > message.SIZE_LIMIT:
        raise WireError(
            f"a {message.KIND} of {len(data):,} bytes is over its limit of "
            f"{message.SIZE_LIMIT:,}; send fewer queries in a batch"
        )
    return data


def decode(data: bytes, expected: type[AnyMessage]) -> AnyMessage:
    """The message of this kind in these bytes; anything else is refused with a reason."""
    plain = _parse(data, expected)
    for name, value in (("version", VERSION), ("kind", expected.KIND)):
        if plain.pop(name, None) != value:
            raise WireError(f"these bytes are not a {expected.KIND} of version {VERSION}")
    try:
        message = _from_plain(plain, expected, expected.KIND)
    except WireError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise WireError(f"a {expected.KIND} has a value that cannot be: {error}") from error
    if encode(message) != data:
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
                return names[3]
    except (ValueError, msgpack.exceptions.UnpackException):
        pass
    raise WireError("these bytes are not a message")


def _parse(data: bytes, expected: type[Message]) -> dict[str, Any]:
    if len(data) > expected.SIZE_LIMIT:
        raise WireError(
            f"{len(data):,} bytes are over the limit of {expected.SIZE_LIMIT:,} for a "
            f"{expected.KIND}; nothing was parsed"
        )
    try:
        plain = msgpack.unpackb(data, raw=False, strict_map_key=True, use_list=True)
    except (ValueError, RecursionError, msgpack.exceptions.UnpackException) as error:
        raise WireError(
            f"these bytes are not a {expected.KIND}: {type(error).__name__}; get them again"
        ) from error
    if not isinstance(plain, dict):
        raise WireError(f"these bytes are not a {expected.KIND}: no map")
    return plain


def _to_plain(message: Any) -> dict[str, Any]:
    return {
        field.name: _value_to_plain(getattr(message, field.name))
        for field in dataclasses.fields(message)
        if field.init
    }


def _value_to_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return _to_plain(value)
    if isinstance(value, tuple):
        return [_value_to_plain(each) for each in value]
    return value


@functools.cache
def _schema(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _from_plain(plain: Any, expected: type, where: str) -> Any:
    schema = _schema(expected)
    if not isinstance(plain, dict) or set(plain) != set(schema):
        named = sorted(map(str, plain)) if isinstance(plain, dict) else type(plain).__name__
        raise WireError(f"{where} has the fields {named}, expected {sorted(schema)}")
    values = {
        name: _value_from_plain(plain[name], hint, f"{where}.{name}")
        for name, hint in schema.items()
    }
    return expected(**values)


def _value_from_plain(value: Any, hint: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin is types.UnionType:
        inner, nothing = typing.get_args(hint)
        assert nothing is type(None), "the schema knows optional values, no other unions"
        return None if value is None else _value_from_plain(value, inner, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise WireError(f"{where} is {type(value).__name__}, expected a list")
        inner = typing.get_args(hint)[0]
        return tuple(_value_from_plain(each, inner, where) for each in value)
    if dataclasses.is_dataclass(hint):
        return _from_plain(value, typing.cast(type, hint), where)
    return _scalar(value, getattr(hint, "__supertype__", hint), where)


def _scalar(value: Any, expected: Any, where: str) -> Any:
    if type(value) is not expected:
        raise WireError(f"{where} is {type(value).__name__}, expected {expected.__name__}")
    if expected is int and not -_MOST_INTEGER <= value <= _MOST_INTEGER:
        raise WireError(f"{where} is out of range")
    if expected is float and not math.isfinite(value):
        raise WireError(f"{where} is not a finite number")
    return value
