"""An ensemble on sixteen-pixel digits: learns, repeats itself, and is read back from its cache."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from tests.left_out import need_module

from dppp.errors import InputError
from dppp.experiments.datasets.mnist import Mnist

need_module("torch", extra="torch")

import torch

from dppp.experiments.teachers.mnist import TeacherRecipe, mnist_votes, train_and_vote

pytestmark = pytest.mark.torch
RECIPE = TeacherRecipe(teachers=4, epochs=6, channels=(4, 8), at_once=2, seed=5)


@pytest.fixture(scope="module")
def digits():
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    images = (images * 15).astype(np.uint8).reshape(-1, 8, 8)
    labels = labels.astype(np.uint8)
    return Mnist(
        train_images=images[:1400],
        train_labels=labels[:1400],
        test_images=images[1400:],
        test_labels=labels[1400:],
    )


def test_votes_are_stored_and_a_rerun_agrees(digits, tmp_path):
    votes = mnist_votes(lambda: digits, RECIPE, folder=tmp_path)
    assert votes.shape == (4, len(digits.test_labels))
    assert (votes == digits.test_labels).mean() > 0.7

    def absent():
        pytest.fail("the votes were stored, so the data is not needed")

    np.testing.assert_array_equal(mnist_votes(absent, RECIPE, folder=tmp_path), votes)
    again = train_and_vote(digits.train_images, digits.train_labels, digits.test_images, RECIPE)
    np.testing.assert_array_equal(again, votes)


def test_too_few_records_are_refused(digits):
    with pytest.raises(InputError, match="too few for 4 teachers"):
        train_and_vote(digits.train_images[:3], digits.train_labels[:3], digits.test_images, RECIPE)


def test_a_recipe_of_nothing_is_refused():
    with pytest.raises(InputError, match="1 or more"):
        TeacherRecipe(epochs=0)
