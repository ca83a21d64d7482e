"""A teacher's models from its records, one for each vote; run by `dppp train` at the teacher.

The shards are those of shards.py and nothing is fitted outside them. What all shards share is the
unfitted estimator, the names of the columns, and a key that the teacher keeps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from dppp.errors import InputError
from dppp.learning.choosing_votes import RECORDS_PER_CLASS
from dppp.learning.csv_records import Records
from dppp.learning.one_thread import one_thread
from dppp.learning.shards import Shard, make_shards, require_unfitted, train_shard

Report = Callable[[int, int], object]
"""Told how many models are trained, of how many."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedModels:
    """One model for each vote, with the number of records that each learned from."""

    models: tuple[Any, ...]
    sizes: tuple[int, ...]
    unit: str
    classes: tuple[str, ...]
    """What the models know: classes, labels, or the name of the number."""
    columns: tuple[str, ...]
    question: str = "choice"

    @property
    def is_thin(self) -> bool:
        """Whether shards have fewer records than a number of votes chosen here would leave."""
        return sum(self.sizes) < len(self.sizes) * RECORDS_PER_CLASS * len(self.classes)


@one_thread
def train_models(
    records: Records,
    estimator: Any,
    *,
    votes: int,
    unit: str,
    key: bytes,
    question: str = "choice",
    jobs: int | None = None,
    report: Report = lambda *_: None,
) -> TrainedModels:
    """Deal the records to `votes` shards and train an unfitted copy of the estimator on each.

    `question` is the kind: what the labels of the records are.

    Records go by person where the table says whom they are about, else by their identifiers where
    it has some, else by their places in it.
    """
    require_unfitted(estimator)
    shards = deal_records(records, votes=votes, unit=unit, key=key)
    work = (delayed(train_shard)(estimator, shard) for shard in shards)
    is_choice = question == "choice"
    known = {str(label) for label in records.labels} if is_choice else ()
    models = []
    report(0, votes)
    for model in Parallel(n_jobs=jobs, return_as="generator")(work):
        models.append(model)
        report(len(models), votes)
    return TrainedModels(
        models=tuple(models),
        sizes=tuple(len(shard) for shard in shards),
        unit=unit,
        classes=tuple(sorted(known)) if is_choice else records.label_names,
        columns=records.features,
        question=question,
    )


def deal_records(records: Records, *, votes: int, unit: str, key: bytes) -> tuple[Shard, ...]:
    """The shards of a table: by person where it says whom records are about, else by their ids."""
    _require_enough(records, votes=votes, unit=unit)
    ids = records.ids if records.persons is None else records.persons
    return make_shards(
        records.rows,
        records.labels,
        ids=None if ids is None else ids.tolist(),
        votes=votes,
        key=key,
    )


def take_columns(records: Records, columns: Sequence[str]) -> Records:
    """The same records with these columns only, in this order: the task's."""
    missing = [name for name in columns if name not in records.features]
    if missing:
        raise InputError(
            f"the records have no column {missing[0]!r}, which the task asks about",
            hint=f"name the columns as the task does: {_shortened(columns)}",
        )
    places = [records.features.index(name) for name in columns]
    rows = _safe_indexing(records.rows, places, axis=1)
    return replace(records, features=tuple(columns), rows=rows)


def require_classes(records: Records, class_names: Sequence[str]) -> None:
    """Refuse labels that are not classes of the task."""
    strange = sorted({str(label) for label in records.labels} - set(class_names))
    if strange:
        raise InputError(
            f"the label {strange[0]!r} is not a class of the task",
            hint=f"name the classes as the task does: {_shortened(class_names)}",
        )


def _require_enough(records: Records, *, votes: int, unit: str) -> None:
    if unit == "person" and records.persons is None and votes > 1:
        raise InputError(
            "the unit is person, and nothing says whom the records are about",
            hint="name the column: --person, or person under [model]",
        )
    if unit == "teacher" and votes > 1:
        raise InputError(
            f"with the unit teacher there is one vote, not {votes}: the noise hides one",
            hint="take the unit record or person, or one vote",
        )
    whole = records.labels if records.persons is None else set(records.persons.tolist())
    if len(whole) < votes:
        what = "records" if records.persons is None else "persons"
        raise InputError(
            f"{len(whole)} {what} are too few for {votes} votes: each vote needs some of its own",
            hint=f"take fewer votes; with {RECORDS_PER_CLASS} records per class in a shard a model "
            "has something to learn from",
        )


def _shortened(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")
