"""Votes in the clear, for verdicts: every model is asked in this process and nothing is hidden.

For simulations. A deployment has no place where this could run. Models are asked through joblib:
one after the other here, or wherever `joblib.parallel_config` says (docs/usage.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from dppp.learning.asked import Asked
from dppp.learning.frames import take
from dppp.learning.one_thread import one_thread
from dppp.learning.verdict import Seen
from dppp.protocol.votes import Predict


def count_by_teacher(
    teachers: Sequence[Sequence[Predict]], rows: Any, asked: Asked
) -> NDArray[np.int64]:
    """Counts by teacher, record and class; each teacher has one model or several."""
    return np.stack(list(each_teachers_votes(teachers, rows, asked)))


def each_teachers_votes(
    teachers: Sequence[Sequence[Predict]], rows: Any, asked: Asked
) -> Iterator[NDArray[np.int64]]:
    """Of one teacher after the other; where joblib is told so, asked on other machines."""
    work = (delayed(sum_of_votes)(models, rows, asked) for models in teachers)
    yield from Parallel(return_as="generator")(work)


def sum_of_votes(models: Sequence[Predict], rows: Any, asked: Asked) -> NDArray[np.int64]:
    """What one teacher's models say together, by record and class."""
    counts = np.zeros((len(rows), asked.counts), dtype=np.int64)
    for model in models:
        counts += asked.cast(model, rows)
    return counts


@one_thread
def look(
    teachers: Sequence[Sequence[Predict]],
    own: Sequence[Predict],
    rows: Any,
    truth: NDArray[Any],
    *,
    asked: Asked,
    usual: Any,
) -> Seen:
    """What models say of records that none of them was trained on.

    `own` are the models that teachers would use without the federation, each trained on all the
    records of its teacher. `usual` is what the training labels alone make somebody say.
    """
    return asked.see(
        votes=count_by_teacher(teachers, rows, asked),
        cast=_cast(teachers, len(rows)),
        alone=_alone(own, rows, asked),
        truth=truth,
        usual=usual,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Origin:
    """Where each training record went: its teacher, and which of that teacher's models saw it."""

    teachers: NDArray[np.int64]
    models: NDArray[np.int64]


@one_thread
def look_back(
    teachers: Sequence[Sequence[Predict]],
    own: Sequence[Predict],
    rows: Any,
    truth: NDArray[Any],
    *,
    origin: Origin,
    asked: Asked,
    usual: Any,
) -> Seen:
    """The same of training records: the one model that saw a record says nothing about it.

    So one vote is missing in every tally, and the teacher of a record does not count among those
    alone. With `own` empty nobody's own model is looked at: alone is 0 everywhere.
    """
    votes, cast = count_by_teacher(teachers, rows, asked), _cast(teachers, len(rows))
    pairs = list(zip(origin.teachers.tolist(), origin.models.tolist(), strict=True))
    for teacher, model in dict.fromkeys(pairs):
        places = np.flatnonzero([pair == (teacher, model) for pair in pairs])
        votes[teacher, places] -= asked.cast(teachers[teacher][model], take(rows, places))
        cast[teacher, places] -= 1
    return asked.see(
        votes=votes,
        cast=cast,
        alone=_alone(own, rows, asked) if own else None,
        truth=truth,
        usual=usual,
        known=(origin.teachers, np.arange(len(rows))),
    )


def _cast(teachers: Sequence[Sequence[Predict]], rows: int) -> NDArray[np.int64]:
    """How many votes each teacher casts on each record, those that failed included."""
    return np.tile([[len(models)] for models in teachers], (1, rows)).astype(np.int64)


def _alone(own: Sequence[Predict], rows: Any, asked: Asked) -> NDArray[np.int64]:
    return np.stack([asked.cast_alone(model, rows) for model in own])
