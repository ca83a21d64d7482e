"""Votes measured on a public table: dealt to disjoint shards, a model each, asked about the rest.

Used to plan votes before anybody shows private records. Nothing is assumed about errors: the models
are trained, and what they say of records that none of them saw is counted. The table should look
like the organisations' records; if it does not, neither does the forecast.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.learning.csv_records import Records
from dppp.learning.examples.local_models import table_model
from dppp.learning.frames import take
from dppp.learning.shards import train_model
from dppp.learning.votes_planning.forecast import Forecast
from dppp.learning.win_probability import ObservedVotes
from dppp.whole_numbers import keep_whole

LEAST_SHARDS = 5
"""Fewer models say too little about how many of many agree."""

_MOST_HELD_OUT = 1_000
_HELD_OUT = 0.2

OnModel = Callable[[int, int], object]
"""Told how many models of how many are trained, at each size of shard."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicTable:
    """Some records held out, the others in the order in which they are dealt."""

    table: Records
    records: int
    seed: int = 0
    on_model: OnModel | None = None
    _held_out: NDArray[np.int64] = field(init=False)
    _dealt: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        keep_whole(self, "records")
        keep_whole(self, "seed", least=0)
        order = np.random.default_rng(self.seed).permutation(len(self.table.rows))
        count = held_out_of(len(order))
        object.__setattr__(self, "_held_out", order[:count])
        object.__setattr__(self, "_dealt", order[count:])

    @property
    def classes(self) -> int:
        """Classes in the table."""
        return len(self._names)

    @property
    def held_out(self) -> int:
        """Records that no model learns from."""
        return len(self._held_out)

    @property
    def accuracy_majority(self) -> float:
        """Of always saying the class that most of the other records have."""
        names, counts = np.unique(self.table.labels[self._dealt], return_counts=True)
        truth = self.table.labels[self._held_out]
        return float(np.mean(truth == names[counts.argmax()]))

    @property
    def _names(self) -> NDArray[np.str_]:
        return np.unique(self.table.labels)

    def forecast(self, votes: int, teachers: int) -> Forecast | None:
        """As many shards as the teachers would have, or as the table has records for."""
        shard = max(1, self.records // votes)
        shards = min(votes * teachers, len(self._dealt) // shard)
        if shards < LEAST_SHARDS:
            return None
        counts = self._count_votes(shard, shards)
        labels = np.searchsorted(self._names, self.table.labels[self._held_out])
        right = counts[np.arange(len(labels)), labels]
        return Forecast(
            votes=ObservedVotes(counts=counts, labels=labels),
            accuracy_single=float(right.mean() / shards),
            correlation=correlation_of(right, shards),
            shards_measured=shards,
        )

    def _count_votes(self, shard: int, shards: int) -> NDArray[np.int64]:
        """A row per record held out, a column per class."""
        rows, labels = self.table.rows, self.table.labels
        asked = take(rows, self._held_out)
        counts = np.zeros((len(asked), self.classes), dtype=np.int64)
        for place in range(shards):
            own = self._dealt[place * shard : (place + 1) * shard]
            model = train_model(table_model(rows), take(rows, own), labels[own], self.seed)
            said = np.searchsorted(self._names, model.predict(asked))
            counts[np.arange(len(asked)), said] += 1
            if self.on_model is not None:
                self.on_model(place + 1, shards)
        return counts


def open_table(
    table: Records,
    *,
    teachers: int,
    records: int | None = None,
    seed: int = 0,
    on_model: OnModel | None = None,
) -> PublicTable:
    """The table as a source: each teacher has `records`, by default its part of the table."""
    dealt = len(table.rows) - held_out_of(len(table.rows))
    if records is None and dealt < teachers:
        raise InputError(
            f"{len(table.rows)} records are too few for {teachers} teachers",
            hint="take a larger table, or have fewer teachers",
        )
    if records is None:
        records = dealt // teachers
    return PublicTable(table=table, records=records, seed=seed, on_model=on_model)


def held_out_of(records: int) -> int:
    """How many records of a table are asked about."""
    return min(_MOST_HELD_OUT, max(1, round(_HELD_OUT * records)))


def correlation_of(right: NDArray[np.int64], models: int) -> float | None:
    """Of the errors of two of these models: from how many were right on each record."""
    accuracy = float(right.mean() / models)
    if not 0 < accuracy < 1 or models < 2:
        return None
    both = float(np.mean(right * (right - 1)) / (models * (models - 1)))
    return (both - accuracy**2) / (accuracy * (1 - accuracy))
