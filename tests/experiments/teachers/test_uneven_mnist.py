"""Skewed CNNs on sixteen-pixel digits: they learn what they have, and a rerun agrees."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from tests.left_out import need_module

from dppp.experiments.datasets.mnist import Mnist
from dppp.experiments.teachers.uneven_split import SkewRecipe

need_module("torch", extra="torch")

import torch

from dppp.experiments.teachers.mnist import vote_on_skewed_digits

pytestmark = pytest.mark.torch


def test_teachers_of_unlike_sizes_train_at_once_and_vote_again_the_same():
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    images = (images * 15).astype(np.uint8).reshape(-1, 8, 8)
    labels = labels.astype(np.uint8)
    data = Mnist(
        train_images=images[:1400],
        train_labels=labels[:1400],
        test_images=images[1400:],
        test_labels=labels[1400:],
    )
    recipe = SkewRecipe(
        dataset="mnist",
        alpha=10.0,
        sizes="power-law",
        teachers=4,
        records=200,
        steps=120,
        learning_rate=5e-3,
        channels=(4, 8),
        at_once=3,
    )
    found = vote_on_skewed_digits(data, recipe)
    assert found["votes"].shape == found["confidence"].shape == (4, 200)
    assert (found["votes"][0] == found["truth"]).mean() > 0.6
    assert found["confidence"].min() >= 0.1
    assert found["confidence"].max() <= 1
    again = vote_on_skewed_digits(data, recipe)
    np.testing.assert_array_equal(found["votes"], again["votes"])
