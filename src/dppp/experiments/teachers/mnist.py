"""The MNIST ensemble: N small CNNs, each trained on its own slice, and their votes on the test set.

Two convolutional layers and one fully connected (Section VII of the paper, with fewer channels).
Teachers share nothing but the recipe, so `torch.func.vmap` trains many at once. Votes are cached as
plain arrays; figures redraw from them in seconds, and the seed makes a rerun agree. Needs torch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from dppp.errors import InputError
from dppp.experiments.datasets.files import Arrays, cache_folder, cached_arrays
from dppp.experiments.datasets.mnist import Bytes, Mnist
from dppp.experiments.teachers.uneven_split import Rows, SkewRecipe

VoteMatrix = NDArray[np.uint8]
Weights = dict[str, torch.Tensor]
CLASSES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherRecipe:
    """How the teachers are trained; everything that the votes depend on besides the data."""

    teachers: int = 250
    epochs: int = 8
    batch: int = 12
    learning_rate: float = 2e-3
    channels: tuple[int, int] = (8, 16)
    at_once: int = 25
    seed: int = 1

    def __post_init__(self) -> None:
        if min(self.teachers, self.epochs, self.batch, self.at_once, *self.channels) < 1:
            raise InputError(f"every number of a recipe must be 1 or more, got {self}")

    @property
    def name(self) -> str:
        """A file name for what this recipe gives."""
        first, second = self.channels
        return (
            f"mnist-votes-{self.teachers}t-{self.epochs}e-{self.batch}b-{self.learning_rate:g}l-"
            f"{first}x{second}c-{self.at_once}a-{self.seed}s.npz"
        )


def mnist_votes(
    mnist: Callable[[], Mnist], recipe: TeacherRecipe, *, folder: Path | None = None
) -> VoteMatrix:
    """Votes of shape (teachers, test records), from the cache where they were computed before."""

    def make() -> Arrays:
        data = mnist()
        votes = train_and_vote(data.train_images, data.train_labels, data.test_images, recipe)
        return {"votes": votes}

    found = cached_arrays((folder or cache_folder()) / recipe.name, make)
    return np.asarray(found["votes"], np.uint8)


def train_and_vote(
    images: Bytes, labels: Bytes, public_images: Bytes, recipe: TeacherRecipe
) -> VoteMatrix:
    """Split the records at random and equally among teachers, train each, and let it vote."""
    slices = split_records(len(images), recipe)
    pixels, targets = as_pixels(images), torch.from_numpy(labels.astype(np.int64))
    public = as_pixels(public_images)
    groups = enumerate(slices.split(recipe.at_once))
    return np.concatenate(
        [
            _vote(train_group(pixels[group], targets[group], recipe, number), public)
            for number, group in groups
        ]
    )


def split_records(count: int, recipe: TeacherRecipe) -> torch.Tensor:
    """The rows of each teacher, of shape (teachers, records)."""
    records = count // recipe.teachers
    if records < 1:
        raise InputError(f"{count} records are too few for {recipe.teachers} teachers")
    generator = torch.Generator().manual_seed(recipe.seed)
    order = torch.randperm(count, generator=generator)[: records * recipe.teachers]
    return order.reshape(recipe.teachers, records)


def train_group(
    pixels: torch.Tensor, targets: torch.Tensor, recipe: TeacherRecipe, number: int
) -> Weights:
    """Train the teachers of one group at once; groups have seeds of their own."""
    generator = torch.Generator().manual_seed(1_000_003 * recipe.seed + number)
    weights = initial_weights(len(pixels), recipe.channels, pixels.shape[-1], generator)
    _train(weights, pixels, targets, recipe, generator)
    return weights


def as_pixels(images: Bytes) -> torch.Tensor:
    """Bytes to floats of shape (records, 1, height, width), about centred."""
    return torch.from_numpy(images.astype(np.float32) / 255 - 0.13).unsqueeze(1)


def predict_scores(weights: Weights, pixels: torch.Tensor) -> torch.Tensor:
    """The CNN of one teacher."""
    hidden = functional.conv2d(pixels, weights["first"], weights["first_bias"], padding=2)
    hidden = functional.max_pool2d(functional.relu(hidden), 2)
    hidden = functional.conv2d(hidden, weights["second"], weights["second_bias"], padding=2)
    hidden = functional.max_pool2d(functional.relu(hidden), 2)
    return functional.linear(hidden.flatten(1), weights["last"], weights["last_bias"])


def initial_weights(
    teachers: int, channels: tuple[int, int], side: int, generator: torch.Generator
) -> Weights:
    """Random weights of several teachers, the first index the teacher's."""
    first, second = channels

    def random(*shape: int) -> torch.Tensor:
        fan_in = int(np.prod(shape[1:]))
        return torch.randn(teachers, *shape, generator=generator) * (2 / fan_in) ** 0.5

    weights = {
        "first": random(first, 1, 5, 5),
        "first_bias": torch.zeros(teachers, first),
        "second": random(second, first, 5, 5),
        "second_bias": torch.zeros(teachers, second),
        "last": random(CLASSES, second * (side // 4) ** 2),
        "last_bias": torch.zeros(teachers, CLASSES),
    }
    return {name: weight.requires_grad_() for name, weight in weights.items()}


def _train(
    weights: Weights,
    pixels: torch.Tensor,
    targets: torch.Tensor,
    recipe: TeacherRecipe,
    generator: torch.Generator,
) -> None:
    optimizer = torch.optim.Adam(weights.values(), lr=recipe.learning_rate)
    losses = torch.func.vmap(teacher_loss)
    for rows in _batches(targets.shape[1], recipe, generator):
        optimizer.zero_grad(set_to_none=True)
        # Each teacher's loss depends on its own weights only, so their sum trains them all.
        losses(weights, pixels[:, rows], targets[:, rows]).sum().backward()
        optimizer.step()


def teacher_loss(weights: Weights, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of one teacher; `vmap` makes it one of many."""
    return functional.cross_entropy(predict_scores(weights, pixels), targets)


def _batches(
    records: int, recipe: TeacherRecipe, generator: torch.Generator
) -> Iterator[torch.Tensor]:
    for _ in range(recipe.epochs):
        yield from torch.randperm(records, generator=generator).split(recipe.batch)


def _vote(weights: Weights, public: torch.Tensor) -> VoteMatrix:
    """One teacher after the other: convolutions of one set of weights are several times faster."""
    votes = []
    with torch.no_grad():
        for teacher in range(len(weights["last"])):
            own = {name: weight[teacher] for name, weight in weights.items()}
            votes.append(
                torch.cat([predict_scores(own, chunk).argmax(-1) for chunk in public.split(1000)])
            )
    found: VoteMatrix = torch.stack(votes).numpy().astype(np.uint8)
    return found


def vote_on_skewed_digits(data: Mnist, recipe: SkewRecipe) -> Arrays:
    """Votes, largest softmax outputs and truth on the first test images; records are uneven.

    Every teacher takes the same number of steps on batches drawn from its own records, so that many
    train at once however many records each has.
    """
    pixels, public = as_pixels(data.train_images), as_pixels(data.test_images[: recipe.records])
    targets = torch.from_numpy(data.train_labels.astype(np.int64))
    slices = recipe.split(data.train_labels)
    votes, confidence = [], []
    for start in range(0, len(slices), recipe.at_once):
        group = slices[start : start + recipe.at_once]
        weights = _train_uneven_group(pixels, targets, group, recipe, start)
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


def _train_uneven_group(
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
