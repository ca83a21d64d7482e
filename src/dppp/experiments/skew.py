"""Accuracy against label skew, with and without silence where a model is not sure.

The remedy: a teacher whose model is less sure than a fixed, public threshold casts an all-zero
vote. Its ballot and its noise are there all the same, so nothing shows but in the noisy counts, and
the promise is the same: a vote that appears or vanishes moves one count, not two. Used by
`dppp reproduce skew`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError, MissingExtraError
from dppp.experiments.accuracy.curves import DELTA, SEED, OnProgress, Row, measure
from dppp.experiments.accuracy.frameworks import Framework, best_certificate, non_private, trust_of
from dppp.experiments.accuracy.mechanisms import noisy_plurality
from dppp.experiments.datasets.files import Arrays, cached_arrays, recipe_path
from dppp.experiments.figures import BLUE, VERMILION, name_axes, new_figure, save
from dppp.experiments.teachers.stored_votes import NO_VOTE, StoredVotes
from dppp.experiments.teachers.svm import vote_on_skewed_connections
from dppp.experiments.teachers.uneven_split import SIZES, SkewRecipe
from dppp.privacy.certificate import Promise

ALPHAS = (0.1, 0.3, 1.0, 10.0)
EPSILON = 0.2
HONEST_FRACTION = Fraction(2, 3)
THRESHOLDS = {"mnist": 0.7, "nsl-kdd-20": 0.5}
"""Public and fixed: softmax output, distance from undecided in margins (docs/reproduction.md)."""
RECIPES = {"mnist": (250, 1000), "nsl-kdd-20": (100, 5039)}
"""Teachers, and test records to vote on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewRow:
    """One dealing of the records, with or without the remedy."""

    dataset: str
    alpha: float
    sizes: str
    remedy: bool
    threshold: float | None
    silent: float
    """The part of the votes that are all zeros."""
    framework: str
    noise: str
    epsilon: float | None
    delta: float | None
    certified: bool
    accuracy_mean: float
    accuracy_std: float
    repetitions: int
    alone_mean: float
    """Of each teacher's own model, which always votes."""
    alone_worst: float


def measure_skew(
    dataset: str,
    *,
    alphas: Sequence[float] = ALPHAS,
    repetitions: int = 20,
    seed: int = SEED,
    folder: Path | None = None,
    report: OnProgress = lambda *_: None,
) -> list[SkewRow]:
    """Both sizes at every α, with and without the remedy, non-private and certified."""
    if dataset not in RECIPES:
        raise InputError(f"skew is measured on {' or '.join(RECIPES)}, not on {dataset!r}")
    teachers, records = RECIPES[dataset]
    points = [(sizes, alpha) for sizes in SIZES for alpha in alphas]
    rows: list[SkewRow] = []
    for done, (sizes, alpha) in enumerate(points):
        report(done, len(points))
        recipe = SkewRecipe(
            dataset=dataset, alpha=alpha, sizes=sizes, teachers=teachers, records=records
        )
        path = recipe_path(f"{dataset}-skew", recipe, folder)
        found = cached_arrays(path, lambda recipe=recipe: train(recipe))  # type: ignore[misc]
        rows += rows_of(found, recipe, repetitions, seed)
    report(len(points), len(points))
    return rows


def train(recipe: SkewRecipe) -> Arrays:
    """Votes, confidence and truth of a recipe; a minute or two for MNIST."""
    if recipe.dataset == "nsl-kdd-20":
        from dppp.experiments.datasets.nsl_kdd import load_nsl_kdd  # noqa: PLC0415

        return vote_on_skewed_connections(load_nsl_kdd(), recipe)
    try:
        from dppp.experiments.teachers.mnist import vote_on_skewed_digits  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("the MNIST teachers need torch", extra="torch") from error
    from dppp.experiments.datasets.mnist import load_mnist  # noqa: PLC0415

    return vote_on_skewed_digits(load_mnist(), recipe)


def rows_of(found: Arrays, recipe: SkewRecipe, repetitions: int, seed: int) -> list[SkewRow]:
    """Four rows: with and without the remedy, each without noise and certified."""
    threshold = THRESHOLDS[recipe.dataset]
    everybody = silenced(found, recipe.dataset, None)
    alone = (everybody.votes == everybody.truth).mean(axis=1)
    rows = []
    for limit in (None, threshold):
        votes = silenced(found, recipe.dataset, limit)
        for framework in _frameworks(votes):
            row = measure(votes, framework, repetitions, seed)
            rows.append(_skew_row(row, recipe, limit, silent=votes.silent, alone=alone))
    return rows


def silenced(found: Arrays, dataset: str, threshold: float | None) -> StoredVotes:
    """The votes as they are, or all zeros where the model is less sure than the threshold."""
    votes = np.asarray(found["votes"], np.uint8)
    if threshold is not None:
        confidence: NDArray[np.float64] = np.asarray(found["confidence"], np.float64)
        votes = np.where(confidence < threshold, np.uint8(NO_VOTE), votes)
    truth = np.asarray(found["truth"], np.uint8)
    classes = 10 if dataset == "mnist" else 2
    return StoredVotes(dataset=dataset, classes=classes, votes=votes, truth=truth)


def _frameworks(votes: StoredVotes) -> list[Framework]:
    promise = Promise(epsilon=EPSILON, delta=DELTA, queries=1, classes=votes.classes)
    certificate = best_certificate(promise, trust_of(votes.teachers, HONEST_FRACTION))
    return [
        *non_private(votes),
        Framework(
            framework="dppp-best",
            noise=certificate.noise.name,
            calibration="exact",
            honest_fraction=float(HONEST_FRACTION),
            epsilon=EPSILON,
            delta=DELTA,
            certified=certificate.certified,
            release=noisy_plurality(votes, certificate.noise),
        ),
    ]


def _skew_row(
    row: Row,
    recipe: SkewRecipe,
    threshold: float | None,
    *,
    silent: float,
    alone: NDArray[np.float64],
) -> SkewRow:
    return SkewRow(
        dataset=recipe.dataset,
        alpha=recipe.alpha,
        sizes=recipe.sizes,
        remedy=threshold is not None,
        threshold=threshold,
        silent=silent,
        framework=row.framework,
        noise=row.noise,
        epsilon=row.epsilon,
        delta=row.delta,
        certified=row.certified,
        accuracy_mean=row.accuracy_mean,
        accuracy_std=row.accuracy_std,
        repetitions=row.repetitions,
        alone_mean=float(alone.mean()),
        alone_worst=float(alone.min()),
    )


def summarise_skew(rows: Sequence[SkewRow]) -> str:
    """One sentence: the most skewed dealing, with and without the remedy."""
    hardest = min(row.alpha for row in rows)
    chosen = {
        (row.dataset, row.sizes, row.remedy): row.accuracy_mean
        for row in rows
        if row.framework == "dppp-best" and row.alpha == hardest
    }
    alone = {
        (row.dataset, row.sizes): (row.alone_mean, row.alone_worst)
        for row in rows
        if row.alpha == hardest
    }
    parts = [
        f"{dataset}, {sizes} sizes: {accuracy:.1%} when all vote, "
        f"{chosen[dataset, sizes, True]:.1%} when the unsure are silent, "
        f"{alone[dataset, sizes][0]:.1%} alone on average, {alone[dataset, sizes][1]:.1%} the worst"
        for (dataset, sizes, remedy), accuracy in chosen.items()
        if not remedy
    ]
    return f"Certified at ε = {EPSILON:g}, α = {hardest:g}. " + "; ".join(parts) + "."


def draw_skew(rows: Sequence[SkewRow], path: Path) -> Path:
    """One panel per dataset: accuracy against α, solid with the remedy, dotted without."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    figure, panels = new_figure(4.4 * len(datasets), 4.8, 1, len(datasets))
    for dataset, axes in zip(datasets, np.atleast_1d(panels), strict=True):
        own = [row for row in rows if row.dataset == dataset]
        for colour, sizes in zip((BLUE, VERMILION), SIZES, strict=True):
            for remedy in (True, False):
                chosen = [row for row in own if (row.sizes, row.remedy) == (sizes, remedy)]
                _draw_dealing(axes, chosen, colour)
        axes.set_xscale("log")
        title = f"{dataset}: certified, ε = {EPSILON:g}, δ = {DELTA:g}, γ = 2/3;\nfaint: no noise"
        name_axes(axes, title, {row.alpha for row in own})
        axes.set_xlabel("α of the Dirichlet label skew (small: skewed)")
        axes.set_ylabel("right labels, %")
    handles, labels = np.atleast_1d(panels)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
    return save(figure, path)


def _draw_dealing(axes: Any, rows: Sequence[SkewRow], colour: str) -> None:
    for framework, strength in (("dppp-best", 1.0), ("distributed", 0.3)):
        points = [row for row in rows if row.framework == framework]
        if not points:
            continue
        remedy = points[0].remedy
        axes.errorbar(
            [row.alpha for row in points],
            [100 * row.accuracy_mean for row in points],
            yerr=[100 * row.accuracy_std for row in points],
            color=colour,
            alpha=strength,
            linestyle="-" if remedy else ":",
            marker="o" if remedy else "x",
            markersize=5,
            label=f"{points[0].sizes} sizes, {'silent if unsure' if remedy else 'all vote'}"
            if framework == "dppp-best"
            else None,
        )
