"""Votes of shards as counts: silence, races, and models that see their own shard alone."""

import numpy as np
import pytest
from tests.experiments.several_votes.made_up import made_up_connections

from dppp.experiments.several_votes.learners import Learner, connections_learner, digits_learner
from dppp.experiments.several_votes.tallies import certify, count_votes, races_of
from dppp.experiments.teachers.stored_votes import NO_VOTE
from dppp.learning.win_probability import accuracy_without_noise

TRUTH = np.array([0, 1, 1], np.uint8)


def fixed_learner():
    """Shard k votes for class k mod 2, less sure of the last record."""
    return Learner(
        dataset="made up",
        classes=2,
        labels=np.zeros(6, np.uint8),
        truth=TRUTH,
        cast=lambda rows: (np.full(3, rows[0] % 2, np.uint8), np.array([0.9, 0.9, 0.5])),
    )


def test_the_unsure_cast_no_vote_and_the_others_do():
    shards = [np.array([number]) for number in range(3)]
    votes, counts = count_votes(fixed_learner(), shards, 0.6)
    assert (votes[:, 2] == NO_VOTE).all()
    assert counts.tolist() == [[2, 1], [2, 1], [0, 0]]
    _, without = count_votes(fixed_learner(), shards)
    assert without.tolist() == [[2, 1]] * 3


def test_races_count_leads_of_the_right_class():
    races = races_of(np.array([[2, 1], [2, 1], [0, 0]]), TRUTH)
    assert {race.leads: race.weight for race in races} == pytest.approx(
        {(1,): 1 / 3, (-1,): 1 / 3, (0,): 1 / 3}
    )
    assert accuracy_without_noise(races) == pytest.approx(0.5)


def test_a_record_of_another_shard_changes_nothing_in_a_model():
    data = made_up_connections()
    shard, elsewhere = np.arange(100), 150
    before = connections_learner(data).cast(shard)
    data.train.numbers[elsewhere] *= 1e6
    data.train.words[elsewhere] = "odd"
    after = connections_learner(data).cast(shard)
    np.testing.assert_array_equal(before[1], after[1])
    data.train.numbers[shard[0]] *= 1e6
    assert (connections_learner(data).cast(shard)[1] != before[1]).any()


def test_a_shard_of_one_class_votes_for_it_and_is_never_sure():
    data = made_up_connections()
    only = np.flatnonzero(data.train.labels == 1)[:20]
    votes, confidence = connections_learner(data).cast(only)
    assert set(votes.tolist()) == {1}
    assert set(confidence.tolist()) == {0.0}


def test_digits_are_learned_from_their_features():
    random = np.random.default_rng(1)
    labels = random.integers(0, 10, 300).astype(np.uint8)
    rows = np.eye(10, dtype=np.float32)[labels] + random.normal(0, 0.1, (300, 10)).astype("f4")
    learner = digits_learner(rows, labels, rows[:50], labels[:50])
    votes, _ = learner.cast(np.arange(50, 300))
    assert (votes == learner.truth).mean() > 0.95


def test_the_noise_is_certified_and_does_not_know_votes():
    certificate = certify(20, 1.0, 2)
    assert certificate.certified
    assert certificate.promise.queries == 100
    assert (
        certificate.noise.of_teachers(20).variance
        > certify(20, 8.0, 2).noise.of_teachers(20).variance
    )
