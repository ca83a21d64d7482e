"""The ensembles of Section VII: 250 CNNs on MNIST, 100 SVMs on NSL-KDD-20, 20 on Breast Cancer.

Each is trained once and its votes are cached; what the figures need is read back in a blink.
Used by `dppp reproduce`.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dppp.errors import InputError, MissingExtraError
from dppp.experiments.datasets.files import Arrays, cached_arrays, recipe_path
from dppp.experiments.teachers.stored_votes import StoredVotes, cached_votes

OFFICIAL = "nsl-kdd-20-official-test"
"""The same 100 teachers on the official test file, a shifted distribution with new attacks."""
DATASETS = ("mnist", "nsl-kdd-20", OFFICIAL, "breast-cancer")


def load_ensemble(dataset: str, *, folder: Path | None = None) -> StoredVotes:
    """The votes on a dataset, from the cache or trained now (seconds; MNIST: minutes)."""
    match dataset:
        case "mnist":
            return _mnist(folder)
        case "nsl-kdd-20":
            return _nsl_kdd(dataset, "split", folder)
        case "nsl-kdd-20-official-test":
            return _nsl_kdd(dataset, "official", folder)
        case "breast-cancer":
            return _breast_cancer(folder)
    raise InputError(f"unknown dataset {dataset!r}", hint=f"choose one of {', '.join(DATASETS)}")


def _mnist(folder: Path | None) -> StoredVotes:
    try:
        from dppp.experiments.teachers.mnist import (  # noqa: PLC0415  (needs torch)
            CLASSES,
            TeacherRecipe,
            mnist_votes,
        )
    except ImportError as error:
        raise MissingExtraError("the MNIST teachers need torch", extra="torch") from error
    from dppp.experiments.datasets.mnist import load_mnist  # noqa: PLC0415

    recipe = TeacherRecipe(epochs=8)
    centralised = replace(recipe, teachers=1, at_once=1, batch=64, epochs=6)

    def make() -> Arrays:
        data = load_mnist()
        return {
            "votes": mnist_votes(lambda: data, recipe, folder=folder),
            "centralised": mnist_votes(lambda: data, centralised, folder=folder)[0],
            "truth": data.test_labels,
        }

    return cached_votes("mnist", CLASSES, (recipe, centralised), make, folder)


def _nsl_kdd(dataset: str, test: str, folder: Path | None) -> StoredVotes:
    from dppp.experiments.datasets.nsl_kdd import load_nsl_kdd  # noqa: PLC0415
    from dppp.experiments.teachers.svm import SvmRecipe, vote_on_nsl_kdd  # noqa: PLC0415

    recipe = SvmRecipe(teachers=100, penalty=10)
    found = cached_arrays(
        recipe_path("nsl-kdd-20", recipe, folder), lambda: vote_on_nsl_kdd(load_nsl_kdd(), recipe)
    )
    names = ("votes", "truth", "centralised")
    votes, truth, centralised = (np.asarray(found[f"{name}_{test}"], np.uint8) for name in names)
    return StoredVotes(
        dataset=dataset, classes=2, votes=votes, truth=truth, centralised=centralised
    )


def _breast_cancer(folder: Path | None) -> StoredVotes:
    from dppp.experiments.datasets.breast_cancer import load_cancer  # noqa: PLC0415
    from dppp.experiments.teachers.svm import SvmRecipe, vote_on_cancer  # noqa: PLC0415

    recipe = SvmRecipe(teachers=20, penalty=1)
    return cached_votes(
        "breast-cancer", 2, recipe, lambda: vote_on_cancer(load_cancer(), recipe), folder
    )
