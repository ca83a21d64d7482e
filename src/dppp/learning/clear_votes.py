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

from dppp.learning.frames import take
from dppp.learning.one_thread import one_thread
from dppp.learning.verdict import HeldOut
from dppp.privacy.pmf import Floats
from dppp.protocol.votes import Predict, cast_votes


def count_by_teacher(
    teachers: Sequence[Sequence[Predict]], rows: Any, classes: int
) -> NDArray[np.int64]:
    """Counts by teacher, record and class; each teacher has one model or several."""
    return np.stack(list(each_teachers_votes(teachers, rows, classes)))


def each_teachers_votes(
    teachers: Sequence[Sequence[Predict]], rows: Any, classes: int
) -> Iterator[NDArray[np.int64]]:
    """Of one teacher after the other; where joblib is told so, asked on other machines."""
    work = (delayed(sum_of_votes)(models, rows, classes) for models in teachers)
    yield from Parallel(return_as="generator")(work)


def sum_of_votes(models: Sequence[Predict], rows: Any, classes: int) -> NDArray[np.int64]:
    """What one teacher's models say together, by record and class."""
    counts = np.zeros((len(rows), classes), dtype=np.int64)
    for model in models:
        counts += cast_votes(model, rows, classes)
    return counts


@one_thread
def look(
    teachers: Sequence[Sequence[Predict]],
    own: Sequence[Predict],
    rows: Any,
    labels: NDArray[np.int64],
    *,
    majority: int,
    classes: int,
) -> HeldOut:
    """What models say of records that none of them was trained on.

    `own` are the models that teachers would use without the federation, each trained on all the
    records of its teacher.
    """
    return HeldOut(
        votes=count_by_teacher(teachers, rows, classes),
        labels=labels,
        majority=majority,
        alone=_right_alone(own, rows, labels, classes),
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
    labels: NDArray[np.int64],
    *,
    origin: Origin,
    majority: int,
    classes: int,
) -> HeldOut:
    """The same of training records: the one model that saw a record says nothing about it.

    So one vote is missing in every tally, and the teacher of a record does not count among those
    alone. With `own` empty nobody's own model is looked at: alone is 0 everywhere.
    """
    votes = count_by_teacher(teachers, rows, classes)
    pairs = list(zip(origin.teachers.tolist(), origin.models.tolist(), strict=True))
    for teacher, model in dict.fromkeys(pairs):
        places = np.flatnonzero([pair == (teacher, model) for pair in pairs])
        asked = take(rows, places)
        votes[teacher, places] -= cast_votes(teachers[teacher][model], asked, classes)
    alone = np.zeros((len(teachers), len(rows)))
    if own:
        alone = _right_alone(own, rows, labels, classes)
        alone[origin.teachers, np.arange(len(rows))] = np.nan
    return HeldOut(votes=votes, labels=labels, majority=majority, alone=alone)


def _right_alone(
    own: Sequence[Predict], rows: Any, labels: NDArray[np.int64], classes: int
) -> Floats:
    places = np.arange(len(rows))
    right = [cast_votes(model, rows, classes)[places, labels] for model in own]
    return np.stack(right).astype(np.float64)
