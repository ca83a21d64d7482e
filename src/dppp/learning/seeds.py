"""One seed for a model and everything inside it, so that a fit can be repeated.

Used wherever a model is trained here. scikit-learn's parameters name estimators inside estimators;
what they do not name is a splitter of records (`cv`), and estimators among the values of a
parameter: the choices of a grid search, for example.
"""

from collections.abc import Iterator, Mapping
from typing import Any


def seed_every_part(model: Any, seed: int) -> Any:
    """The model, every part of it that draws at random given this seed."""
    for part in _parts(model, set()):
        if hasattr(part, "get_params"):
            names = [name for name in part.get_params(deep=False) if name == "random_state"]
            part.set_params(**dict.fromkeys(names, seed))
        elif _is_shuffling_splitter(part):
            part.random_state = seed
    return model


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """An estimator or splitter and all others that its parameters hold, each once."""
    if isinstance(value, type) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        inside = list(value.values())
    elif isinstance(value, list | tuple):
        inside = list(value)
    elif hasattr(value, "get_params"):
        yield value
        inside = list(value.get_params(deep=False).values())
    else:
        inside = []
        if _is_shuffling_splitter(value):
            yield value
    for each in inside:
        yield from _parts(each, seen)


def _is_shuffling_splitter(value: Any) -> bool:
    """A splitter that shuffles; one that does not takes no seed."""
    draws = hasattr(value, "split") and hasattr(value, "random_state")
    return draws and getattr(value, "shuffle", True) is True
