"""More votes under the same noise: rows, sentence, figure, on made-up connections."""

import pytest
from tests.experiments.several_votes.made_up import made_up_connections

from dppp.errors import InputError
from dppp.experiments.several_votes.against_votes import (
    FEDERATIONS,
    Federation,
    measure_votes,
    rows_of,
    summarise_votes,
)
from dppp.experiments.several_votes.figures import draw_votes
from dppp.experiments.several_votes.learners import connections_learner
from dppp.experiments.tables import write_table


@pytest.fixture(scope="module")
def rows():
    learners = [connections_learner(made_up_connections(seed=seed)) for seed in (3, 13)]
    federations = (
        Federation(teachers=10, votes=(1, 10), epsilons=(1.0, 8.0)),
        Federation(teachers=100, votes=(1,), epsilons=(1.0, 8.0)),
    )
    return rows_of(learners, federations, seed=1)


def find(rows, teachers, votes, epsilon):
    return next(
        row for row in rows if (row.teachers, row.votes, row.epsilon) == (teachers, votes, epsilon)
    )


def test_every_federation_votes_and_epsilon_has_a_certified_row(rows):
    assert [(row.teachers, row.votes, row.epsilon) for row in rows] == [
        (10, 1, 1.0), (10, 10, 1.0), (10, 1, 8.0), (10, 10, 8.0), (100, 1, 1.0), (100, 1, 8.0),
    ]  # fmt: skip
    assert all(row.certified and row.splits == 2 and row.queries == 100 for row in rows)
    assert [row.records_per_shard for row in rows[:2]] == [200, 20]


def test_ten_votes_outgrow_the_noise_that_one_vote_drowns_in(rows):
    one, ten = find(rows, 10, 1, 1.0), find(rows, 10, 10, 1.0)
    assert one.noise_deviation == ten.noise_deviation
    assert ten.accuracy_mean > one.accuracy_mean + 0.1
    assert one.accuracy_single == ten.accuracy_single > ten.accuracy_majority


def test_the_same_seed_gives_the_same_rows(rows):
    learners = [connections_learner(made_up_connections(seed=seed)) for seed in (3, 13)]
    again = rows_of(
        learners, (Federation(teachers=10, votes=(1, 10), epsilons=(1.0, 8.0)),), seed=1
    )
    assert again == rows[:4]


def test_votes_make_a_sentence_a_table_and_a_figure(rows, tmp_path):
    sentence = summarise_votes(rows)
    assert "10 organisations, ε = 1: " in sentence
    assert "100 organisations, ε = 1: " in sentence
    assert len(write_table(rows, tmp_path / "votes.csv").read_text().splitlines()) == 7
    assert draw_votes(rows, tmp_path / "votes.png").stat().st_size > 5_000


def test_mnist_compares_ten_votes_of_25_with_one_of_250():
    federations = {each.teachers: each for each in FEDERATIONS["mnist"]}
    assert 10 in federations[25].votes
    assert federations[250].votes == (1,)
    assert federations[25].epsilons == federations[250].epsilons


def test_a_dataset_without_federations_is_refused():
    with pytest.raises(InputError, match="votes are measured on nsl-kdd-20 or mnist"):
        measure_votes("breast-cancer")
