"""Shards: a teacher's records dealt to its votes, and a model trained from each shard alone.

Used by the estimator and by `dppp train`, so that there is one way to make shards. The promise
(docs/privacy.md, section 1) is that one unit moves one vote. It rests on three rules, and this file
is where they are kept:

1. A record's shard is drawn from its identifier and a key of the teacher, and from nothing else:
   not from what the record says, and not from other records. Replacing what a record says touches
   the shard in which it stays, and with lasting identifiers so does adding or removing a record.
2. The identifier is the person where persons are given, so that all records of a person are in one
   shard.
3. A model sees the records of its shard and a seed, and nothing else. Whatever is fitted (a scaler,
   a vocabulary, a choice of parameters) is inside the estimator, and the estimator comes unfitted.

Where there is no identifier, a record's position stands for it. That is enough for replacing a
record. Removing one in the middle would move all that follow: give identifiers that last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted

from dppp.errors import InputError, RecordsError, message_of
from dppp.hashing import hash_parts
from dppp.learning.seeds import seed_every_part
from dppp.learning.several_labels import train_on_labels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shard:
    """The records behind one vote."""

    rows: Any
    labels: NDArray[Any]
    seed: int

    def __len__(self) -> int:
        return len(self.labels)


class NoVote:
    """The model of a shard without records: it never has an answer."""

    def predict(self, rows: Any) -> list[None]:
        """None for each row."""
        return [None] * len(rows)


def make_shards(
    rows: Any, labels: NDArray[Any], *, ids: Sequence[object] | None, votes: int, key: bytes
) -> tuple[Shard, ...]:
    """Every record in exactly one of `votes` shards; `ids` are positions where there are none."""
    names = range(len(labels)) if ids is None else ids
    if len(names) != len(labels):
        raise InputError(
            f"{len(names)} identifiers do not go with {len(labels)} records",
            hint="give one for each record",
        )
    places = np.array([shard_of(each, votes=votes, key=key) for each in names], dtype=np.int64)
    shards = []
    for place in range(votes):
        members = np.flatnonzero(places == place)
        shards.append(
            Shard(
                rows=_safe_indexing(rows, members),
                labels=labels[members],
                seed=_seed(key, place),
            )
        )
    return tuple(shards)


def shard_of(identifier: object, *, votes: int, key: bytes) -> int:
    """The shard of whatever has this identifier: a keyed hash of it, whatever else there is."""
    name = _canonical(identifier).encode()
    return int.from_bytes(hash_parts("dppp shard 1", (key, name)), "big") % votes


def _canonical(identifier: object) -> str:
    """One text for one identifier, also where a whole column is of another type: 7, 7.0, "7"."""
    value = identifier.item() if isinstance(identifier, np.generic) else identifier
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    if value is None or text in ("", "nan", "NaT", "<NA>", "None"):
        raise InputError(
            "a record has no identifier, so nothing says which shard it belongs to",
            hint="give every record its person or id",
        )
    return text


def _seed(key: bytes, place: int) -> int:
    """A model's own seed, the same whatever the records are."""
    digest = hash_parts("dppp shard seed 1", (key, place.to_bytes(8, "big")))
    return int.from_bytes(digest[:4], "big") % (2**31 - 1)


def train_shard(estimator: Any, shard: Shard) -> Any:
    """A shard's model: an unfitted copy of the estimator, trained on this shard alone."""
    return train_model(clone(estimator), shard.rows, shard.labels, shard.seed)


def train_model(model: Any, rows: Any, labels: NDArray[Any], seed: int) -> Any:
    """A model for these records: one class is always that class, and no records are no vote.

    `labels` are classes, numbers, or an indicator matrix of several labels.
    """
    if not len(labels):
        return NoVote()
    if len(np.unique(labels, axis=0)) < 2:
        lone = (
            DummyRegressor() if is_regressor(model) else DummyClassifier(strategy="most_frequent")
        )
        return lone.fit(rows, labels)
    try:
        seeded = seed_every_part(model, seed)
        return (
            seeded.fit(rows, labels) if labels.ndim == 1 else train_on_labels(seeded, rows, labels)
        )
    except Exception as error:
        said = message_of(error).partition("\n")[0]
        raise RecordsError(
            f"{type(model).__name__} cannot be trained on {len(labels)} records of a shard: {said}",
            hint="mend the records, give another estimator, or fewer teachers or votes",
        ) from error


def require_unfitted(estimator: Any) -> None:
    """Refuse an estimator that has learned something already, or holds one that has.

    A step that was fitted on all records would move every vote when one record changes.
    """
    parts = {"": estimator, **estimator.get_params(deep=True)}
    for name, part in parts.items():
        if hasattr(part, "fit") and not isinstance(part, type) and _is_fitted(part):
            where = f"its part {name}" if name else "it"
            raise InputError(
                f"the estimator {type(estimator).__name__} is not new: {where} "
                f"({type(part).__name__}) was fitted before, on records of several shards or more",
                hint="give an estimator that nobody fitted; every shard fits its own copy",
            )


def _is_fitted(part: Any) -> bool:
    if isinstance(part, Pipeline | FeatureUnion):  # says what its parts say, and they are asked
        return False
    try:
        if not get_tags(part).requires_fit:
            return False
        check_is_fitted(part)
    except (NotFittedError, TypeError, AttributeError):
        return False
    return True
