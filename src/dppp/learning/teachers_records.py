"""Records that belong to teachers, and the training of their models: used by the estimator.

The same records can be dealt to any number of shards: for the votes that are cast, and for advice
on how many votes would be better (advice.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from dppp.hashing import hash_parts
from dppp.learning.one_thread import one_thread
from dppp.learning.shards import make_shards, shard_of, train_model, train_shard


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Voting:
    """The models that vote, by teacher, and which of its teacher's models saw each record."""

    models: tuple[tuple[Any, ...], ...]
    places: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TeachersRecords:
    """Who holds which record, and what a model is trained with."""

    estimator: Any
    """Unfitted; every model is a copy of it."""
    rows: Any
    labels: NDArray[Any]
    owners: NDArray[np.int64]
    """The teacher of each record, from 0."""
    persons: NDArray[Any] | None
    seeds: tuple[int, ...]
    """One for each teacher."""
    n_jobs: int | None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Records of each teacher."""
        return tuple(np.bincount(self.owners, minlength=len(self.seeds)).tolist())

    @one_thread
    def train_alone(self) -> tuple[Any, ...]:
        """A model of all records of each teacher: what it has without the others."""
        return tuple(
            Parallel(n_jobs=self.n_jobs)(
                delayed(train_model)(
                    clone(self.estimator),
                    _safe_indexing(self.rows, own),
                    self.labels[own],
                    self.seeds[place],
                )
                for place, own in enumerate(self._owned())
            )
        )

    @one_thread
    def train_votes(self, votes: Sequence[int], alone: Sequence[Any]) -> Voting:
        """A model for each vote; one vote is that of the model of all records."""
        places = np.zeros_like(self.owners)
        jobs = []
        for teacher, own in enumerate(self._owned()):
            if votes[teacher] == 1:
                continue
            key = hash_parts("dppp estimator's shards 1", (self.seeds[teacher].to_bytes(4, "big"),))
            # A position in the whole table lasts as long as the table: records are replaced in it.
            ids = own.tolist() if self.persons is None else self.persons[own].tolist()
            places[own] = [shard_of(each, votes=votes[teacher], key=key) for each in ids]
            shards = make_shards(
                _safe_indexing(self.rows, own),
                self.labels[own],
                ids=ids,
                votes=votes[teacher],
                key=key,
            )
            jobs += [delayed(train_shard)(self.estimator, shard) for shard in shards]
        trained = iter(Parallel(n_jobs=self.n_jobs)(jobs))
        models = tuple(
            (alone[teacher],) if count == 1 else tuple(next(trained) for _ in range(count))
            for teacher, count in enumerate(votes)
        )
        return Voting(models=models, places=places)

    def _owned(self) -> list[NDArray[np.int64]]:
        return [np.flatnonzero(self.owners == place) for place in range(len(self.seeds))]
