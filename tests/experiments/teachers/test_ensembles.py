"""The ensembles of the paper: as many teachers as it has, trained once for both test sets."""

import numpy as np
import pytest
from tests.experiments.teachers.test_svm import connections
from tests.left_out import need_module

from dppp.experiments.datasets import mnist, nsl_kdd
from dppp.experiments.datasets.mnist import Mnist
from dppp.experiments.datasets.nsl_kdd import NslKdd
from dppp.experiments.teachers.ensembles import DATASETS, OFFICIAL, load_ensemble


def test_a_hundred_teachers_vote_on_both_tests_of_nsl_kdd_and_are_trained_once(
    tmp_path, monkeypatch
):
    loads = []

    def small():
        loads.append(1)
        return NslKdd(
            train=connections(900, 3), test=connections(40, 4), official_test=connections(30, 5)
        )

    monkeypatch.setattr(nsl_kdd, "load_nsl_kdd", small)
    split = load_ensemble("nsl-kdd-20", folder=tmp_path)
    official = load_ensemble(OFFICIAL, folder=tmp_path)
    assert split.votes.shape == (100, 40)
    assert official.votes.shape == (100, 30)
    assert (split.dataset, official.dataset) == ("nsl-kdd-20", OFFICIAL)
    assert len(loads) == 1
    assert OFFICIAL in DATASETS


@pytest.mark.torch
def test_mnist_has_250_teachers_and_one_model_of_everything(tmp_path, monkeypatch):
    need_module("torch", extra="torch")
    from dppp.experiments.teachers import mnist as mnist_teachers

    recipes = []

    def votes_of(mnist, recipe, *, folder):
        recipes.append(recipe)
        return np.tile(mnist().test_labels, (recipe.teachers, 1))

    image, label = np.zeros((3, 8, 8), np.uint8), np.array([1, 2, 3], np.uint8)
    data = Mnist(train_images=image, train_labels=label, test_images=image, test_labels=label)
    monkeypatch.setattr(mnist_teachers, "mnist_votes", votes_of)
    monkeypatch.setattr(mnist, "load_mnist", lambda: data)
    found = load_ensemble("mnist", folder=tmp_path)
    assert found.votes.shape == (250, 3)
    assert [recipe.teachers for recipe in recipes] == [250, 1]
    np.testing.assert_array_equal(load_ensemble("mnist", folder=tmp_path).truth, label)
    assert len(recipes) == 2
