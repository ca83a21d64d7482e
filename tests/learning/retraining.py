"""Models before and after one record is replaced: what of them changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dppp.learning.shards import make_shards, train_shard

KEY = b"a teacher's own shard key, 32 by"
VOTES, RECORDS = 5, 60
Rows = NDArray[np.float64]
Train = Callable[[Rows, NDArray[Any]], list[Any]]
"""From all records of a teacher to its models, one for each vote."""


def make_table(seed: int = 0, records: int = RECORDS) -> tuple[Rows, NDArray[Any]]:
    rows = np.random.default_rng(seed).normal(size=(records, 3))
    return rows, np.where(rows[:, 0] + rows[:, 1] > 0, "high", "low")


def estimator() -> Any:
    return make_pipeline(StandardScaler(), SVC())


def train_by_shards(rows: Rows, labels: NDArray[Any]) -> list[Any]:
    """As the estimator and `dppp train` do it."""
    shards = make_shards(rows, labels, ids=None, votes=VOTES, key=KEY)
    return [train_shard(estimator(), shard) for shard in shards]


def replace(
    rows: Rows, labels: NDArray[Any], place: int, by: tuple[list[float], str]
) -> tuple[Rows, NDArray[Any]]:
    changed, renamed = rows.copy(), labels.copy()
    changed[place], renamed[place] = by
    return changed, renamed


def changed_models(before: list[Any], after: list[Any]) -> list[int]:
    """The places of the models that are not the same number for number."""
    assert len(before) == len(after)
    pairs = zip(before, after, strict=True)
    return [place for place, (one, two) in enumerate(pairs) if content(one) != content(two)]


def content(thing: Any) -> Any:
    """Everything that a fitted model holds, in a form that can be compared."""
    if isinstance(thing, np.ndarray):
        return thing.dtype.str, thing.shape, thing.tobytes()
    if isinstance(thing, dict):
        return {str(name): content(each) for name, each in thing.items()}
    if isinstance(thing, list | tuple):
        return [content(each) for each in thing]
    if hasattr(thing, "__dict__"):
        return type(thing).__name__, content(vars(thing))
    return repr(thing)
