import numpy as np
import pytest
from sklearn.datasets import make_classification

from dppp.errors import InputError
from dppp.learning.csv_records import Records
from dppp.learning.examples.local_models import table_model
from dppp.learning.votes_planning.plan import plan_votes
from dppp.learning.votes_planning.public_table import (
    PublicTable,
    correlation_of,
    held_out_of,
    open_table,
)
from dppp.learning.win_probability import ObservedVotes


def table(records: int) -> Records:
    rows, labels = make_classification(
        records, 6, n_informative=5, n_redundant=0, random_state=1, weights=[0.7]
    )
    names = tuple(f"f{place}" for place in range(6))
    return Records(features=names, rows=rows, labels=np.array(["no", "yes"])[labels])


def test_votes_are_those_of_models_on_disjoint_shards_of_what_was_not_held_out() -> None:
    records = table(250)
    source = open_table(records, teachers=5, seed=3)
    order = np.random.default_rng(3).permutation(250)
    asked, dealt = order[:50], order[50:]
    assert (source.records, source.held_out, source.classes) == (40, 50, 2)
    counts = np.zeros((50, 2), dtype=np.int64)
    for place in range(10):
        own = dealt[20 * place : 20 * place + 20]
        said = table_model().fit(records.rows[own], records.labels[own])
        counts[np.arange(50), (said.predict(records.rows[asked]) == "yes").astype(int)] += 1
    found = source.forecast(2, 5)
    assert found is not None
    assert isinstance(found.votes, ObservedVotes)
    np.testing.assert_array_equal(found.votes.counts, counts)
    truth = (records.labels[asked] == "yes").astype(int)
    right = counts[np.arange(50), truth]
    assert found.accuracy_single == pytest.approx(right.mean() / 10)
    majority = np.mean(records.labels[asked] == "no")
    assert source.accuracy_majority == pytest.approx(majority)


def test_the_correlation_is_that_of_all_pairs_of_models() -> None:
    random = np.random.default_rng(5)
    said = random.random((40, 6)) < random.random((40, 1))
    accuracy = said.mean()
    pairs = [
        np.mean((said[:, one] - accuracy) * (said[:, other] - accuracy))
        for one in range(6)
        for other in range(6)
        if one != other
    ]
    wanted = np.mean(pairs) / (accuracy * (1 - accuracy))
    assert correlation_of(said.sum(axis=1), 6) == pytest.approx(wanted)
    assert correlation_of(np.full(9, 6), 6) is None
    assert correlation_of(np.array([1, 0]), 1) is None


def test_a_small_table_measures_what_it_can_and_says_what_it_cannot() -> None:
    source = PublicTable(table=table(250), records=100)
    assert source.forecast(2, 5) is None
    plan = plan_votes(source, teachers=20, epsilon=8)
    assert 1 in plan.unmeasured
    assert plan.to_json()["votes_unmeasured"] == list(plan.unmeasured)
    measured = {each.votes: each.shards_measured for each in plan.by_votes}
    assert measured == {3: 6}
    assert plan.held_out == 50
    with pytest.raises(InputError, match="too small"):
        plan_votes(PublicTable(table=table(60), records=40), teachers=20)


def test_progress_is_told_and_the_same_seed_gives_the_same_votes() -> None:
    told: list[tuple[int, int]] = []
    first = open_table(
        table(250), teachers=5, seed=1, on_model=lambda done, of: told.append((done, of))
    ).forecast(1, 5)
    again = open_table(table(250), teachers=5, seed=1).forecast(1, 5)
    assert told == [(place + 1, 5) for place in range(5)]
    assert first is not None
    assert again is not None
    assert first.accuracy_single == again.accuracy_single


def test_fewer_records_than_teachers_are_refused() -> None:
    with pytest.raises(InputError, match="too few for 90 teachers"):
        open_table(table(100), teachers=90)
    assert [held_out_of(count) for count in (1, 100, 10**6)] == [1, 20, 1_000]
