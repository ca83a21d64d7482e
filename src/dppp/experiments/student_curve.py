"""Accuracy of the MNIST student against the total ε, measured as PATE measures it.

250 teachers; the first 9,000 test images are the public pool, the last 1,000 measure the student.
The noise is the certified one (exact calibration, best family, default colluders and dropouts) and
is drawn by the real sampler, one share for each teacher, over stored votes. Cryptography is off:
it would change no count. `python -m dppp.experiments.student_curve OUT` writes CSV and PNG.
"""

import csv
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.svm import SVC

from dppp.errors import InputError
from dppp.learning.spreading import (
    Spreading,
    choose_records,
    influence,
    neighbour_graph,
    spread_labels,
)
from dppp.learning.student import evidence_from_answers
from dppp.privacy.calibration import calibrate
from dppp.privacy.noise import Noise
from dppp.privacy.sampling import expand_key, sampling_table

POOL = 9_000
DELTA = 1e-5
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
LABELS = (30, 60, 120)
PATE = (1.97, 0.985)
"""Papernot et al. 2018, Table 1: MNIST at δ = 1e-5, with a trusted aggregator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """What the curve is made from: votes (teachers, records), and features and truth of records."""

    votes: NDArray[np.uint8]
    features: NDArray[np.float64]
    truth: NDArray[np.uint8]
    pool: int = POOL
    classes: int = 10

    def __post_init__(self) -> None:
        records = len(self.truth)
        if self.votes.shape[1:] != (records,) or len(self.features) != records:
            raise InputError(
                f"votes of shape {self.votes.shape}, {len(self.features)} rows of features and "
                f"{records} labels do not belong together"
            )
        if not 0 < self.pool < records:
            raise InputError(f"the pool must leave records to measure by, got {self.pool}")

    def counts(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The noiseless tally of these records."""
        votes = self.votes[:, rows]
        return np.stack([(votes == label).sum(axis=0) for label in range(self.classes)], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One number of labels at one ε, over several draws of the noise."""

    epsilon: float
    delta: float
    labels: int
    noise: str
    variance: float
    certified: bool
    cryptography: bool
    label_accuracy_mean: float
    spread_accuracy_mean: float
    accuracy_mean: float
    accuracy_std: float
    repetitions: int


def measure(
    ensemble: Ensemble,
    *,
    epsilons: Sequence[float] = EPSILONS,
    labels: Sequence[int] = LABELS,
    repetitions: int = 4,
    choice_seed: int = 0,
    estimator: Any = None,
    spreading: Spreading | None = None,
    log: Callable[[str], object] = str,
) -> Iterator[CurvePoint]:
    """Every ε with every number of labels, as they are ready."""
    spreading = spreading or Spreading(class_shares=(1 / ensemble.classes,) * ensemble.classes)
    estimator = SVC(C=5) if estimator is None else estimator
    features = ensemble.features[: ensemble.pool]
    graph = neighbour_graph(features, spreading.neighbours)

    @functools.cache
    def chosen(count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        rows = choose_records(features, count, seed=choice_seed)
        return rows, influence(graph, rows, spreading)

    for epsilon in epsilons:
        for count in labels:
            certificate = calibrate(
                "auto",
                epsilon=epsilon,
                delta=DELTA,
                teachers=len(ensemble.votes),
                queries=count,
                classes=ensemble.classes,
            )
            rows, arrived = chosen(count)
            runs = []
            for seed in range(repetitions):
                key = hashlib.sha256(f"student {epsilon} {count} {seed}".encode()).digest()
                given = noisy_labels(ensemble.counts(rows), certificate.noise, ensemble, key)
                _, evidence = evidence_from_answers(
                    given.tolist(), np.arange(ensemble.classes), count
                )
                spread = spread_labels(arrived, evidence, spreading).labels
                student = clone(estimator).fit(features, spread)
                runs.append(_accuracies(ensemble, rows, given, spread, student))
            label_accuracy, spread_accuracy, accuracy = np.array(runs).T
            point = CurvePoint(
                epsilon=epsilon,
                delta=DELTA,
                labels=count,
                noise=certificate.noise.name,
                variance=certificate.noise.variance,
                certified=certificate.certified,
                cryptography=False,
                label_accuracy_mean=float(label_accuracy.mean()),
                spread_accuracy_mean=float(spread_accuracy.mean()),
                accuracy_mean=float(accuracy.mean()),
                accuracy_std=float(accuracy.std(ddof=1)) if repetitions > 1 else 0.0,
                repetitions=repetitions,
            )
            log(
                f"ε {epsilon:g}, {count} labels ({point.label_accuracy_mean:.1%} right): student "
                f"{point.accuracy_mean:.2%} ± {point.accuracy_std:.2%}"
            )
            yield point


def noisy_labels(
    counts: NDArray[np.int64], noise: Noise, ensemble: Ensemble, key: bytes
) -> NDArray[np.int64]:
    """The class of the largest count after every teacher added its share of the noise."""
    shares = sampling_table(noise).draw(
        len(ensemble.votes) * counts.size, functools.partial(expand_key, key)
    )
    noisy = counts + shares.reshape(len(ensemble.votes), *counts.shape).sum(axis=0)
    labels: NDArray[np.int64] = noisy.argmax(axis=1).astype(np.int64)
    return labels


def _accuracies(
    ensemble: Ensemble,
    rows: NDArray[np.int64],
    given: NDArray[np.int64],
    spread: NDArray[np.int64],
    student: Any,
) -> tuple[float, float, float]:
    """Of the private labels, of the spread ones, and of the student on records it never saw."""
    truth = ensemble.truth
    predicted = student.predict(ensemble.features[ensemble.pool :])
    return (
        float((given == truth[rows]).mean()),
        float((spread == truth[: ensemble.pool]).mean()),
        float((predicted == truth[ensemble.pool :]).mean()),
    )


def best_points(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    """For each ε the number of labels with the highest mean."""
    best: dict[float, CurvePoint] = {}
    for point in points:
        known = best.get(point.epsilon)
        if known is None or point.accuracy_mean > known.accuracy_mean:
            best[point.epsilon] = point
    return [best[epsilon] for epsilon in sorted(best)]


def write_csv(points: Sequence[CurvePoint], path: Path) -> None:
    """One line a point."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(CurvePoint)])
        writer.writeheader()
        writer.writerows(asdict(point) for point in points)


def draw(points: Sequence[CurvePoint], path: Path) -> None:
    """The best point of each ε with its spread, beside PATE."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    best = best_points(points)
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.errorbar(
        [point.epsilon for point in best],
        [point.accuracy_mean for point in best],
        yerr=[point.accuracy_std for point in best],
        marker="o",
        capsize=3,
        label=f"dppp student, untrusted aggregator, δ = {DELTA:g} (certified)",
    )
    for point in best:
        place = (point.epsilon, point.accuracy_mean)
        axes.annotate(f"{point.labels}", place, (4, -12), textcoords="offset points")
    axes.plot(*PATE, "s", label="PATE (2018), trusted aggregator")
    axes.set(xscale="log", xlabel="total ε (numbers: private labels)", ylabel="student accuracy")
    ticks = [point.epsilon for point in best]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=150)


def mnist_ensemble() -> Ensemble:
    """The 250 MNIST teachers' votes and the public features, cached or computed now."""
    from dppp.experiments.datasets import load_mnist  # noqa: PLC0415
    from dppp.experiments.mnist_features import public_features  # noqa: PLC0415
    from dppp.experiments.mnist_teachers import (  # noqa: PLC0415  (needs torch)
        TeacherRecipe,
        mnist_votes,
    )

    mnist = load_mnist()
    return Ensemble(
        votes=mnist_votes(lambda: mnist, TeacherRecipe()),
        features=public_features(mnist.test_images, POOL),
        truth=mnist.test_labels,
    )


def main(arguments: Sequence[str]) -> None:
    """Write student.csv and student.png to the folder, as far as they are measured."""
    if len(arguments) != 1:
        raise SystemExit("usage: python -m dppp.experiments.student_curve OUT")
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    points: list[CurvePoint] = []

    def log(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    for point in measure(mnist_ensemble(), epsilons=(1.3, *EPSILONS), log=log):
        points.append(point)
        write_csv(points, folder / "student.csv")
    draw(points, folder / "student.png")


if __name__ == "__main__":
    main(sys.argv[1:])
