"""The one check of whole numbers, for every layer.

Users hand in what numpy gave them, so whatever is a whole number to Python (`operator.index`) is
taken, and an `int` comes back: hashes, ledgers and messages know no other kind. True and False are
not numbers here.
"""

import operator
from typing import Any

from dppp.errors import InputError


def require_whole(name: str, value: Any, *, least: int = 1) -> int:
    """The value as an `int`; refuses what is not a whole number of `least` or more."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise InputError(
            f"{name} must be a whole number, {least} or more, got {value!r}",
            hint=f"for example {max(1, least)}",
        )
    return number


def keep_whole(record: object, *names: str, least: int = 1) -> None:
    """The same for fields of a frozen data class, called when it is made: they become `int`."""
    for name in names:
        object.__setattr__(record, name, require_whole(name, getattr(record, name), least=least))
