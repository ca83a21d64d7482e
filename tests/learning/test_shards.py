"""One unit moves one vote: by construction, and seen by replacing each record and retraining."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from tests.learning.retraining import (
    KEY,
    RECORDS,
    VOTES,
    Rows,
    Train,
    changed_models,
    estimator,
    make_table,
    replace,
    train_by_shards,
)

from dppp.errors import InputError
from dppp.hashing import hash_parts
from dppp.learning.shards import Shard, make_shards, require_unfitted, shard_of, train_shard

STRANGE = ([40.0, -3.0, 7.0], "low")
"""A record unlike all others: whatever sees it is changed by it."""


def most_models_changed(train: Train) -> int:
    """The most models that replacing any one record changes."""
    rows, labels = make_table()
    before = train(rows, labels)
    return max(
        len(changed_models(before, train(*replace(rows, labels, place, STRANGE))))
        for place in range(0, RECORDS, 7)
    )


def test_replacing_any_record_changes_the_model_of_its_own_shard_and_no_other() -> None:
    rows, labels = make_table()
    before = train_by_shards(rows, labels)
    for place in range(RECORDS):
        after = train_by_shards(*replace(rows, labels, place, STRANGE))
        assert changed_models(before, after) == [shard_of(place, votes=VOTES, key=KEY)]


def test_training_twice_gives_the_same_models() -> None:
    assert changed_models(train_by_shards(*make_table()), train_by_shards(*make_table())) == []


def with_records_in_two_shards(rows: Rows, labels: NDArray[Any]) -> list[Any]:
    """Planted fault: every record is also in the next shard, for larger shards."""
    shards = make_shards(rows, labels, ids=None, votes=VOTES, key=KEY)
    both = [
        Shard(
            rows=np.concatenate([own.rows, following.rows]),
            labels=np.concatenate([own.labels, following.labels]),
            seed=own.seed,
        )
        for own, following in zip(shards, shards[1:] + shards[:1], strict=True)
    ]
    return [train_shard(estimator(), shard) for shard in both]


def with_one_scaler_for_all(rows: Rows, labels: NDArray[Any]) -> list[Any]:
    """Planted fault: the columns are scaled before the records are dealt."""
    return train_by_shards(StandardScaler().fit_transform(rows), labels)


def with_shards_by_content(rows: Rows, labels: NDArray[Any]) -> list[Any]:
    """Planted fault: what a record says decides where it goes."""
    ids = [hash_parts("content", (row.tobytes(),)).hex() for row in rows]
    shards = make_shards(rows, labels, ids=ids, votes=VOTES, key=KEY)
    return [train_shard(estimator(), shard) for shard in shards]


def with_even_shards(rows: Rows, labels: NDArray[Any]) -> list[Any]:
    """Planted fault: classes are spread evenly, so one label moves the places of others."""
    order = np.argsort(labels, kind="stable")
    places = np.empty(len(rows), dtype=np.int64)
    places[order] = np.arange(len(rows)) % VOTES
    shards = [
        Shard(rows=rows[places == place], labels=labels[places == place], seed=place)
        for place in range(VOTES)
    ]
    return [train_shard(estimator(), shard) for shard in shards]


@pytest.mark.parametrize(
    "faulty",
    [
        with_records_in_two_shards,
        with_one_scaler_for_all,
        with_shards_by_content,
        with_even_shards,
    ],
)
def test_a_planted_fault_moves_several_models_and_is_seen_by_retraining(faulty: Train) -> None:
    assert most_models_changed(faulty) > 1
    assert most_models_changed(train_by_shards) == 1


def test_a_scaler_that_saw_all_records_is_refused_by_name() -> None:
    model = estimator()
    model.steps[0][1].fit(make_table()[0])
    with pytest.raises(InputError, match=r"standardscaler \(StandardScaler\) was fitted before"):
        require_unfitted(model)
    require_unfitted(estimator())


def test_all_records_of_a_person_are_in_one_shard_and_every_record_is_in_exactly_one() -> None:
    rows, labels = make_table(records=300)
    rows[:, 2] = np.arange(300)
    persons = [place % 40 for place in range(300)]
    shards = make_shards(rows, labels, ids=persons, votes=7, key=KEY)
    seen = [int(row[2]) for shard in shards for row in shard.rows]
    assert sorted(seen) == list(range(300))
    for shard in shards:
        others = {
            persons[int(row[2])] for other in shards if other is not shard for row in other.rows
        }
        assert not others & {persons[int(row[2])] for row in shard.rows}


def test_replacing_all_records_of_a_person_changes_one_model() -> None:
    rows, labels = make_table()
    persons = [place % 12 for place in range(RECORDS)]

    def train(rows: Rows, labels: NDArray[Any]) -> list[Any]:
        shards = make_shards(rows, labels, ids=persons, votes=VOTES, key=KEY)
        return [train_shard(estimator(), shard) for shard in shards]

    before = train(rows, labels)
    changed, renamed = rows, labels
    for place in range(3, RECORDS, 12):
        changed, renamed = replace(changed, renamed, place, STRANGE)
    assert changed_models(before, train(changed, renamed)) == [shard_of(3, votes=VOTES, key=KEY)]
    by_record = train_by_shards(rows, labels)
    assert len(changed_models(by_record, train_by_shards(changed, renamed))) > 1


def test_removing_a_record_that_has_a_lasting_name_changes_one_model() -> None:
    rows, labels = make_table()
    names = [f"record {place}" for place in range(RECORDS)]

    def train(kept: list[int]) -> list[Any]:
        ids = [names[place] for place in kept]
        shards = make_shards(rows[kept], labels[kept], ids=ids, votes=VOTES, key=KEY)
        return [train_shard(estimator(), shard) for shard in shards]

    everything = list(range(RECORDS))
    before, after = train(everything), train([place for place in everything if place != 20])
    assert changed_models(before, after) == [shard_of("record 20", votes=VOTES, key=KEY)]


def test_a_person_is_the_same_however_the_column_was_read() -> None:
    names: list[object] = [7, 7.0, "7", " 7 ", np.int64(7), np.float64(7)]
    assert len({shard_of(name, votes=1_000, key=KEY) for name in names}) == 1


@pytest.mark.parametrize("missing", [None, "", float("nan"), " ", "nan"])
def test_a_record_without_a_name_is_refused(missing: object) -> None:
    with pytest.raises(InputError, match="has no identifier"):
        shard_of(missing, votes=3, key=KEY)
