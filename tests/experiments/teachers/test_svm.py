"""SVM teachers: Breast Cancer for real, connections on made-up ones."""

import numpy as np
import pytest

from dppp.errors import InputError
from dppp.experiments.datasets.breast_cancer import load_cancer
from dppp.experiments.datasets.nsl_kdd import Connections, NslKdd
from dppp.experiments.teachers.ensembles import load_ensemble
from dppp.experiments.teachers.stored_votes import StoredVotes
from dppp.experiments.teachers.svm import (
    ConnectionReader,
    SvmRecipe,
    split_equally,
    train_svm,
    vote_on_nsl_kdd,
)


def connections(count, seed):
    """Attacks come over one service and move more bytes, over several orders of magnitude."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count).astype(np.uint8)
    words = np.full((count, 3), "tcp", dtype="<U8")
    words[:, 1] = np.where(random.random(count) < 0.1 + 0.6 * labels, "ftp", "http")
    numbers = np.exp(random.normal(3 + 3 * labels, 2, (38, count)).T)
    return Connections(words=words, numbers=numbers, labels=labels)


def test_every_record_belongs_to_one_teacher_and_sizes_differ_by_one():
    slices = split_equally(103, SvmRecipe(teachers=10, penalty=1))
    assert sorted(np.concatenate(slices).tolist()) == list(range(103))
    assert {len(rows) for rows in slices} == {10, 11}
    with pytest.raises(InputError, match="too few for 10 teachers"):
        split_equally(9, SvmRecipe(teachers=10, penalty=1))


def test_a_teacher_reads_words_by_those_it_has_met_alone():
    own, other = connections(5, 1), connections(5, 2)
    own.words[:] = "tcp"
    reader = ConnectionReader.of(own)
    assert reader.read(own).shape == (5, 3 + 38)
    met = reader.read(other)[:, 1]
    assert met.tolist() == [0.0] * 5, "a service it never met is all zeros"


def test_a_teacher_of_one_class_votes_for_it_and_is_never_sure():
    teacher = train_svm(np.zeros((4, 2)), np.ones(4, dtype=np.uint8), 1.0)
    votes, margins = teacher.cast(np.zeros((3, 2)))
    assert votes.tolist() == [1, 1, 1]
    assert margins.tolist() == [0, 0, 0]


def test_a_vote_is_the_side_of_the_margin_that_the_model_predicts():
    data = load_cancer()
    teacher = train_svm(data.train_rows, data.train_labels, 1.0)
    votes, margins = teacher.cast(data.test_rows)
    np.testing.assert_array_equal(votes, teacher.model.predict(data.test_rows))
    assert (margins >= 0).all()


def test_scaling_by_anyone_else_would_change_the_vote_table():
    """A scaler of all records would leak; so a teacher's model depends on its own alone."""
    data = load_cancer()
    own = train_svm(data.train_rows[:20], data.train_labels[:20], 1.0)
    scaler = own.model[0]
    np.testing.assert_allclose(scaler.mean_, data.train_rows[:20].mean(axis=0))


def test_the_ensemble_on_connections_votes_on_both_tests():
    data = NslKdd(
        train=connections(600, 3), test=connections(200, 4), official_test=connections(50, 5)
    )
    found = vote_on_nsl_kdd(data, SvmRecipe(teachers=6, penalty=10))
    assert found["votes_split"].shape == (6, 200)
    assert found["votes_official"].shape == (6, 50)
    assert (found["centralised_split"] == found["truth_split"]).mean() > 0.8


def test_breast_cancer_is_trained_once_and_read_back(tmp_path):
    first = load_ensemble("breast-cancer", folder=tmp_path)
    assert first.votes.shape == (20, 190)
    # Known before: teachers about 87 %, plurality 93 %, centralised 97 %.
    assert 0.82 < first.teacher_accuracy < 0.93
    stored = list(tmp_path.iterdir())
    again = load_ensemble("breast-cancer", folder=tmp_path)
    np.testing.assert_array_equal(first.votes, again.votes)
    assert list(tmp_path.iterdir()) == stored


def test_an_unknown_dataset_is_refused():
    with pytest.raises(InputError, match="unknown dataset 'iris'"):
        load_ensemble("iris")


def test_parts_that_do_not_belong_together_are_refused():
    three, two = np.zeros(3, np.uint8), np.zeros(2, np.uint8)
    with pytest.raises(InputError, match="do not belong together"):
        StoredVotes(
            dataset="x", classes=2, votes=np.zeros((4, 3), np.uint8), truth=three, centralised=two
        )
