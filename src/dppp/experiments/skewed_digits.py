"""CNNs on MNIST dealt unevenly: their votes, and how sure each is (the largest softmax output).

Every teacher takes the same number of steps on batches drawn from its own records, so that many
train at once however many records each has. Needs torch.
"""

from collections.abc import Sequence

import numpy as np
import torch

from dppp.experiments.datasets import Mnist
from dppp.experiments.mnist_teachers import (
    Weights,
    as_pixels,
    initial_weights,
    predict_scores,
    teacher_loss,
)
from dppp.experiments.skew_split import Rows
from dppp.experiments.skewed_teachers import SkewRecipe
from dppp.experiments.stored_votes import Arrays


def vote_on_skewed_digits(data: Mnist, recipe: SkewRecipe) -> Arrays:
    """Votes, largest softmax outputs and truth on the first test images."""
    pixels, public = as_pixels(data.train_images), as_pixels(data.test_images[: recipe.records])
    targets = torch.from_numpy(data.train_labels.astype(np.int64))
    slices = recipe.split(data.train_labels)
    votes, confidence = [], []
    for start in range(0, len(slices), recipe.at_once):
        group = slices[start : start + recipe.at_once]
        weights = _train_group(pixels, targets, group, recipe, start)
        for teacher in range(len(group)):
            own = {name: weight[teacher] for name, weight in weights.items()}
            with torch.no_grad():
                sure, vote = predict_scores(own, public).softmax(-1).max(-1)
            votes.append(vote.numpy().astype(np.uint8))
            confidence.append(sure.numpy().astype(np.float16))
    return {
        "votes": np.stack(votes),
        "confidence": np.stack(confidence),
        "truth": data.test_labels[: recipe.records],
    }


def _train_group(
    pixels: torch.Tensor,
    targets: torch.Tensor,
    group: Sequence[Rows],
    recipe: SkewRecipe,
    start: int,
) -> Weights:
    random = np.random.default_rng([recipe.seed, start])
    generator = torch.Generator().manual_seed(1_000_003 * recipe.seed + start)
    weights = initial_weights(len(group), recipe.channels, pixels.shape[-1], generator)
    optimizer = torch.optim.Adam(weights.values(), lr=recipe.learning_rate)
    losses = torch.func.vmap(teacher_loss)
    for _ in range(recipe.steps):
        rows = torch.from_numpy(np.stack([random.choice(own, recipe.batch) for own in group]))
        optimizer.zero_grad(set_to_none=True)
        losses(weights, pixels[rows], targets[rows]).sum().backward()
        optimizer.step()
    return weights
