"""Models for `dppp doctor`: one that votes, and two that cannot."""

from typing import Any


def first_class(rows: Any) -> list[str]:
    from tests.protocol.small import CLASS_NAMES

    return [CLASS_NAMES[0]] * len(rows)


def unheard_of(rows: Any) -> list[str]:
    return ["maligne"] * len(rows)


def broken(rows: Any) -> list[str]:
    raise ValueError("there is no column 7")
