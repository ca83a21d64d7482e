"""What `fit` of both estimators does: deal records to teachers, train their models, found them.

Plain functions of an estimator's parameters; what the two estimators do differently (what y is, and
what is asked) comes as `Asked`.
"""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from dppp.errors import RecordsError
from dppp.federation import Federation, create_federation, in_process
from dppp.learning.asked import Asked
from dppp.learning.choosing_votes import VotesChosen, choose_votes
from dppp.learning.default_model import default_model_for
from dppp.learning.judging import Training
from dppp.learning.shards import require_unfitted
from dppp.learning.simulated import SimulatedFederation
from dppp.learning.tables import Table
from dppp.learning.teachers_records import TeachersRecords
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate
from dppp.privacy.ledger.ledger import Ledger
from dppp.protocol.columns import Column
from dppp.protocol.units import UNITS
from dppp.protocol.votes import Predict
from dppp.randomness import RandomSource, expand_key, system_randomness


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trained:
    """Every teacher's models, and what the noise delivers for their votes."""

    training: Training
    certificate: Certificate
    votes: VotesChosen
    alone: tuple[Any, ...]
    shard_models: tuple[tuple[Any, ...], ...]

    @property
    def voters(self) -> list[list[Predict]]:
        """The models of every teacher, as they are asked."""
        return self.training.predicts(self.shard_models)


def require_unit(private: Any, persons: ArrayLike | None) -> None:
    """Refuse a promise for persons where nothing says whom the records are about."""
    if private.unit not in UNITS:
        raise RecordsError(
            f"unknown unit {private.unit!r}", hint=f"choose one of {', '.join(UNITS)}"
        )
    if private.unit == "person" and persons is None:
        raise RecordsError(
            "unit is 'person', and nothing says whom the records are about",
            hint="give fit persons=, a name for each record",
        )


def train_teachers(
    private: Any,
    table: Table,
    labels: NDArray[Any],
    asked: Asked,
    *,
    teachers: ArrayLike | None,
    persons: ArrayLike | None,
    random: Any,
) -> Trained:
    """Models of all shards, and one of all records of each teacher with several shards."""
    certificate = _calibrated(private, asked)
    people = None if persons is None else column_of("persons", persons, len(labels))
    records = TeachersRecords(
        estimator=model_of(private, asked.question.kind, table.rows),
        rows=table.rows,
        labels=labels,
        owners=_owners(private, len(labels), teachers, people, random),
        persons=people,
        seeds=tuple(random.randint(2**31 - 1, size=private.n_teachers).tolist()),
        n_jobs=private.n_jobs,
    )
    require_unfitted(records.estimator)
    votes = choose_votes(
        private.votes,
        unit=private.unit,
        noise=certificate.noise,
        records=records.sizes,
        classes=asked.counts,
        question=asked.question,
    )
    alone = records.train_alone()
    voting = records.train_votes(votes.per_teacher, alone)
    training = Training(
        table=table,
        records=records,
        places=voting.places,
        asked=asked,
        alone=alone,
        votes=votes.per_teacher,
        can_split=private.unit != "teacher",
        is_automatic=private.votes == "auto",
    )
    training.require_voters(voting.models)
    return Trained(
        training=replace(training, table=table.allowing_missing(alone, asked.predict_of)),
        certificate=replace(
            certificate,
            unit=private.unit,
            votes=votes.per_teacher,
            votes_reason=votes.reason,
        ),
        votes=votes,
        alone=alone,
        shard_models=voting.models,
    )


def found_federation(
    private: Any, trained: Trained, *, random: Any, abstain_below: int | None = None
) -> tuple[Federation | SimulatedFederation, Ledger]:
    """The teachers as a federation in this process, and the ledger of one of them."""
    training, asked = trained.training, trained.training.asked
    columns = training.table.columns
    if not private.cryptography:
        simulated = SimulatedFederation(
            certificate=trained.certificate,
            models=trained.voters,
            columns=columns,
            randomness=_simulated_randomness(private, random),
            abstain_below=abstain_below,
            question=asked.question,
        )
        return simulated, simulated.ledger
    what = {"choice": "class", "labels": "label", "number": "number"}[asked.question.kind]
    features: Sequence[str | Column]
    features = columns if not isinstance(columns, int) else _names(columns)
    parties = create_federation(
        name="estimator",
        class_names=[f"{what} {place}" for place in range(asked.counts)],
        features=features,
        certificate=trained.certificate,
        models=trained.voters,
        cryptosystem=private.cryptosystem,
        abstain_below=abstain_below,
        unit=private.unit,
        question=asked.question,
    )
    federation = Federation(aggregator=parties.aggregator, deliver=in_process(parties.teachers))
    return federation, parties.ledgers[1]


def model_of(private: Any, kind: str, rows: Any = None) -> Any:
    """A fresh model, for rows like these if nobody gave one."""
    if private.estimator is not None:
        return clone(private.estimator)
    return default_model_for(kind, rows)


def takes_sparse(private: Any) -> bool:
    """Whether the models do."""
    return private.estimator is None or bool(get_tags(private.estimator).input_tags.sparse)


def column_of(what: str, values: ArrayLike, count: int) -> NDArray[Any]:
    """One value for each record."""
    column = np.asarray(values)
    if column.shape != (count,):
        raise RecordsError(
            f"{what} must be one for each of {count} records; got the shape {column.shape}",
            hint="give a list as long as X",
        )
    return column


def _names(columns: int) -> list[str]:
    return [f"feature {place}" for place in range(columns)]


def _calibrated(private: Any, asked: Asked) -> Certificate:
    question = asked.question
    certificate = calibrate(
        private.noise,
        epsilon=private.epsilon,
        delta=private.delta,
        teachers=private.n_teachers,
        colluders=private.colluders,
        dropouts=private.dropouts,
        queries=private.queries,
        classes=asked.counts,
        max_labels=question.most_labels or None,
        levels=question.levels or None,
    )
    return replace(certificate, is_simulated=not private.cryptography)


def _owners(
    private: Any,
    count: int,
    teachers: ArrayLike | None,
    persons: NDArray[Any] | None,
    random: Any,
) -> NDArray[np.int64]:
    """The teacher of each record, as a number from 0."""
    wanted = private.n_teachers
    if teachers is None and persons is not None:
        people, of_record = np.unique(persons, return_inverse=True)
        return _owners(private, len(people), None, None, random)[of_record]
    if teachers is None:
        if count < wanted:
            raise RecordsError(
                f"{count} records (n_samples = {count}) are fewer than {wanted} teachers",
                hint="every teacher needs a record: lower n_teachers, or give more records",
            )
        return np.asarray(random.permutation(np.arange(count) % wanted))
    names, owners = np.unique(np.asarray(teachers), return_inverse=True)
    if len(owners) != count or len(names) != wanted:
        raise RecordsError(
            f"teachers must name the owner of each of {count} records, {wanted} different ones; "
            f"got {len(owners)} names, {len(names)} different",
            hint="set n_teachers to the number of owners",
        )
    if private.unit == "person" and persons is not None:
        _require_one_teacher(persons, owners)
    return np.asarray(owners)


def _require_one_teacher(persons: NDArray[Any], owners: NDArray[np.int64]) -> None:
    """A person at two teachers is behind two votes, and the promise is for one."""
    pairs = {(str(person), int(owner)) for person, owner in zip(persons, owners, strict=True)}
    people = {person for person, _ in pairs}
    if len(pairs) > len(people):
        raise RecordsError(
            f"{len(pairs) - len(people)} times a person has records at another teacher as well, "
            "and would move a vote of each",
            hint="unit 'person' needs every person at one teacher",
        )


def _simulated_randomness(private: Any, random: Any) -> RandomSource:
    """Noise that a seed repeats: only where nobody is protected anyway."""
    if private.random_state is None:
        return system_randomness
    key = hashlib.sha256(random.bytes(32)).digest()
    calls = itertools.count()

    def draw(count: int) -> bytes:
        place = next(calls).to_bytes(8, "big")
        return expand_key(hashlib.sha256(key + place).digest(), count)

    return draw
