"""What a language model said: the name of exactly one class, or no vote.

The server is the teacher's own, but what it says depends on rows and records that others wrote. So
nothing is guessed: spaces around the name and its case do not matter, and every other word does.
"""

import json
from collections.abc import Sequence
from typing import Any

from dppp.errors import InputError
from dppp.protocol.columns import compose
from dppp.service.teacher.models.posting import BadAnswer


def choices_by_name(class_names: Sequence[str]) -> dict[str, int]:
    """The place of each class under the name that an answer is compared with."""
    places: dict[str, int] = {}
    for place, name in enumerate(class_names):
        folded = _folded(name)
        if folded in places:
            raise InputError(
                f"the classes {class_names[places[folded]]!r} and {name!r} differ in case only, "
                "and answers of a language model are compared without it",
                hint="have the task made with other names, or take another kind of model",
            )
        places[folded] = place
    return places


def content_of(body: bytes) -> str:
    """The text of the first choice in a chat completion that is finished."""
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadAnswer("not JSON") from error
    choices = said.get("choices") if isinstance(said, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(first, dict) or not isinstance(content, str):
        raise BadAnswer("not a chat completion with a text")
    if first.get("finish_reason") == "length":
        raise BadAnswer("an answer that was cut off")
    return content


def place_of(content: str, places: dict[str, int]) -> int:
    """The class that this answer names."""
    place = places.get(_folded(content))
    if place is None:
        raise BadAnswer("not the name of a class")
    return place


def _folded(text: str) -> str:
    return compose(compose(text).strip().casefold())
