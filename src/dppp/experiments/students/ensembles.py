"""The ensembles whose votes teach the students: MNIST and NSL-KDD-20, one for each seed.

The MNIST teachers here are kernel machines: ridge regression to the ten digits with a Gaussian
kernel on pixels, each on its own 240 images. Five ensembles of 250 take a minute of processor time,
where five of the CNNs of `teachers/mnist.py` take most of an hour. Votes are for the public pool
alone, and are cached.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.experiments.datasets.files import Arrays, cached_arrays, recipe_path
from dppp.experiments.datasets.mnist import load_mnist
from dppp.experiments.datasets.nsl_kdd import load_nsl_kdd
from dppp.experiments.teachers.svm import (
    ConnectionReader,
    SvmRecipe,
    cast_on_connections,
    split_equally,
)

Floats = NDArray[np.float64]
POOL = 4_000
_MNIST_FIRST = 5_000
"""The second half of the test images, by other writers; these teachers find it easier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRecipe:
    """How MNIST teachers are trained; kernel and penalty by four teachers' accuracy on test images.

    Teachers only are concerned: of what the students learn, nothing was chosen so.
    """

    teachers: int = 250
    records: int = 240
    gamma: float = 0.02
    penalty: float = 0.01
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicData:
    """Records of which the first `pool` are public and the others measure."""

    dataset: str
    classes: int
    teachers: int
    rows: Floats
    truth: NDArray[np.int64]
    pool: int
    votes: Callable[[int], NDArray[np.uint8]]
    """Of the ensemble with this seed, on the pool: (teachers, pool)."""


def mnist_data() -> PublicData:
    """4,000 images in the pool and 1,000 to measure: the second half of the test file."""
    images = load_mnist()
    public = _pixels(images.test_images[_MNIST_FIRST:])

    def votes(seed: int) -> NDArray[np.uint8]:
        recipe = KernelRecipe(seed=seed)

        def make() -> Arrays:
            private, labels = _pixels(images.train_images), images.train_labels
            return {"votes": kernel_votes(private, labels, public[:POOL], recipe)}

        found = cached_arrays(recipe_path("mnist-kernel", (recipe, POOL)), make)
        return np.asarray(found["votes"], np.uint8)

    return PublicData(
        dataset="mnist",
        classes=10,
        teachers=KernelRecipe().teachers,
        rows=public.astype(np.float64),
        truth=images.test_labels[_MNIST_FIRST:].astype(np.int64),
        pool=POOL,
        votes=votes,
    )


def nsl_kdd_data(*, has_logarithms: bool = True) -> PublicData:
    """4,000 connections of the split's test part in the pool, and the rest to measure.

    The querier reads words one-hot, those of its own pool. It takes the logarithm of 1 plus each
    number, as teachers do, or leaves the numbers as they come in the file.
    """
    data = load_nsl_kdd()
    public = data.test.rows(np.arange(POOL))

    def votes(seed: int) -> NDArray[np.uint8]:
        recipe = SvmRecipe(teachers=100, penalty=10, seed=seed)

        def make() -> Arrays:
            slices = split_equally(len(data.train.labels), recipe)
            cast = [
                cast_on_connections(data.train.rows(own), (public,), recipe.penalty)
                for own in slices
            ]
            return {"votes": np.stack([each[0][0] for each in cast])}

        found = cached_arrays(recipe_path("nsl-kdd-pool", (recipe, POOL)), make)
        return np.asarray(found["votes"], np.uint8)

    rows = ConnectionReader.of(public).read(data.test)
    if not has_logarithms:
        numbers = data.test.numbers
        rows = np.hstack([rows[:, : -numbers.shape[1]], numbers])
    return PublicData(
        dataset="nsl-kdd-20" if has_logarithms else "nsl-kdd-20, raw numbers",
        classes=2,
        teachers=100,
        rows=rows,
        truth=data.test.labels.astype(np.int64),
        pool=POOL,
        votes=votes,
    )


def kernel_votes(
    private: NDArray[np.float32],
    labels: NDArray[np.uint8],
    public: NDArray[np.float32],
    recipe: KernelRecipe,
) -> NDArray[np.uint8]:
    """Deal the private records, train each teacher on its own, and let it vote."""
    order = np.random.default_rng(recipe.seed).permutation(len(private))
    votes = []
    for start in range(0, recipe.teachers * recipe.records, recipe.records):
        own = order[start : start + recipe.records]
        targets = (labels[own][:, None] == np.arange(10)).astype(np.float32) - np.float32(0.1)
        kernel = _kernel(private[own], private[own], recipe.gamma)
        kernel[np.diag_indices_from(kernel)] += np.float32(recipe.penalty)
        weights = np.linalg.solve(kernel, targets)
        scores = _kernel(public, private[own], recipe.gamma) @ weights
        votes.append(scores.argmax(axis=1).astype(np.uint8))
    return np.stack(votes)


def _kernel(
    left: NDArray[np.float32], right: NDArray[np.float32], gamma: float
) -> NDArray[np.float32]:
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)
    distances = np.maximum(squares - 2 * left @ right.T, 0)
    kernel: NDArray[np.float32] = np.exp(np.float32(-gamma) * distances)
    return kernel


def _pixels(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return (images.reshape(len(images), -1) / 255).astype(np.float32)
