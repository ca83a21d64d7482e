"""What a teacher says with its sign of life: which messages it is receiving, or has to work on.

So nobody sends it again what is on its way. It is not signed: whoever carries messages could keep
reminders from being sent by it, and could as well keep the messages.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from dppp.service.broker.frames import ID_BYTES

_MOST = 64


class Holding(StrEnum):
    """What a teacher has of a message."""

    SOME = "s"
    ALL = "a"


_HELLO = b"h" + bytes(ID_BYTES)


def write_presence(held: Iterable[tuple[bytes, Holding]], *, is_new: bool) -> bytes:
    """A sign of life. New: the teacher has just started, or found the broker again."""
    entries = [holding.encode() + identifier for identifier, holding in held][:_MOST]
    return b"".join([_HELLO] * is_new + entries)


def read_presence(data: bytes) -> tuple[bool, Mapping[bytes, Holding]]:
    """Whether the teacher is new, and what it has; anything unknown is left out."""
    size = 1 + ID_BYTES
    entries = [data[at : at + size] for at in range(0, min(len(data), size * (_MOST + 1)), size)]
    kinds = {each.value.encode(): each for each in Holding}
    held = {each[1:]: kinds[each[:1]] for each in entries if each[:1] in kinds}
    return _HELLO in entries, held
