"""Accuracy of the MNIST student against the total ε, measured as PATE measures it.

250 teachers; the first 9,000 test images are the public pool, the last 1,000 measure the student.
The noise is the certified one (exact calibration, best family, default colluders and dropouts) and
is drawn by the real sampler, one share for each teacher, over stored votes. Cryptography is off:
it would change no count. The number of labels is chosen by cross-fitting (`curve`).
`python -m dppp.experiments.student_curve OUT` writes student.csv and student.png.
"""

import functools
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.svm import SVC

from dppp.errors import InputError
from dppp.experiments.figures import new_figure
from dppp.experiments.tables import write_table
from dppp.experiments.teachers.stored_votes import tally
from dppp.learning.label_spreading import (
    Spreading,
    choose_records,
    influence,
    neighbour_graph,
    spread_labels,
)
from dppp.learning.student import evidence_from_answers
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate
from dppp.privacy.noise import Noise
from dppp.privacy.sampling import sampling_table
from dppp.randomness import expand_key

POOL = 9_000
DELTA = 1e-5
EPSILONS = (0.5, 1.0, 1.3, 2.0, 4.0, 8.0)
LABELS = (30, 60, 120, 240)
REPETITIONS = 4
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
        return tally(self.votes[:, rows], self.classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One student: a choice of records and a draw of noise, at one ε with one number of labels."""

    epsilon: float
    delta: float
    labels: int
    seed: int
    noise: str
    variance: float
    certified: bool
    cryptography: bool
    label_accuracy: float
    spread_accuracy: float
    first_half_accuracy: float
    second_half_accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What is claimed of one ε: no half of the images chose the number of labels it measures."""

    epsilon: float
    labels: tuple[int, int]
    """Chosen by the first half and measured on the second, and the other way round."""
    accuracy_mean: float
    accuracy_std: float
    repetitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Records that one run of k-means picked, and how their answers arrive at the pool."""

    seed: int
    rows: NDArray[np.int64]
    arrived: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How a student learns; all of it public."""

    spreading: Spreading
    estimator: Any


def mnist_method() -> Method:
    """That digits are about equally frequent is public knowledge."""
    return Method(spreading=Spreading(reach=0.97, class_shares=(1 / 10,) * 10), estimator=SVC(C=5))


def measure(
    ensemble: Ensemble,
    method: Method,
    *,
    epsilons: Sequence[float] = EPSILONS,
    labels: Sequence[int] = LABELS,
    repetitions: int = REPETITIONS,
) -> Iterator[Run]:
    """Every number of labels, with several choices of records, at every ε, as they are ready."""
    features = ensemble.features[: ensemble.pool]
    graph = neighbour_graph(features, method.spreading.neighbours)
    for count in labels:
        certificates = [_certify(ensemble, epsilon, count) for epsilon in epsilons]
        for seed in range(repetitions):
            rows = choose_records(features, count, seed=seed)
            arrived = influence(graph, rows, method.spreading)
            choice = Choice(seed=seed, rows=rows, arrived=arrived)
            for certificate in certificates:
                yield run_student(ensemble, method, choice, certificate)


def _certify(ensemble: Ensemble, epsilon: float, labels: int) -> Certificate:
    return calibrate(
        "auto",
        epsilon=epsilon,
        delta=DELTA,
        teachers=len(ensemble.votes),
        queries=labels,
        classes=ensemble.classes,
    )


def run_student(
    ensemble: Ensemble, method: Method, choice: Choice, certificate: Certificate
) -> Run:
    """Ask about the chosen records, spread, teach, and measure on images it never saw."""
    epsilon, count = certificate.promise.epsilon, len(choice.rows)
    key = hashlib.sha256(f"student {epsilon} {count} {choice.seed}".encode()).digest()
    counts = ensemble.counts(choice.rows)
    given = noisy_labels(counts, certificate.noise, teachers=len(ensemble.votes), key=key)
    _, evidence = evidence_from_answers(given.tolist(), np.arange(ensemble.classes), count)
    spread = spread_labels(choice.arrived, evidence, method.spreading)
    reached = np.flatnonzero(spread.confidence > 0)
    student = clone(method.estimator).fit(ensemble.features[reached], spread.labels[reached])
    pool_truth, truth = np.split(ensemble.truth, [ensemble.pool])
    is_right = student.predict(ensemble.features[ensemble.pool :]) == truth
    return Run(
        epsilon=epsilon,
        delta=certificate.promise.delta,
        labels=count,
        seed=choice.seed,
        noise=certificate.noise.name,
        variance=certificate.noise.variance,
        certified=certificate.certified,
        cryptography=False,
        label_accuracy=float((given == pool_truth[choice.rows]).mean()),
        spread_accuracy=float((spread.labels == pool_truth).mean()),
        first_half_accuracy=float(is_right[: len(truth) // 2].mean()),
        second_half_accuracy=float(is_right[len(truth) // 2 :].mean()),
    )


def noisy_labels(
    counts: NDArray[np.int64], noise: Noise, *, teachers: int, key: bytes
) -> NDArray[np.int64]:
    """The class of the largest count after every teacher added its share of the noise.

    Of equal counts the first class wins; the protocol draws lots by hash.
    """
    shares = sampling_table(noise).draw(teachers * counts.size, functools.partial(expand_key, key))
    noisy = counts + shares.reshape(teachers, *counts.shape).sum(axis=0)
    labels: NDArray[np.int64] = noisy.argmax(axis=1).astype(np.int64)
    return labels


def curve(runs: Sequence[Run]) -> list[CurvePoint]:
    """For each ε the accuracy with the best number of labels, by cross-fitting.

    Each half of the measuring images chooses the number of labels with which the other half
    measures, so what is reported was not picked by the images that report it.
    """
    return [
        _point(epsilon, [run for run in runs if run.epsilon == epsilon])
        for epsilon in sorted({run.epsilon for run in runs})
    ]


def _point(epsilon: float, runs: Sequence[Run]) -> CurvePoint:
    halves = {
        count: np.array(
            [
                (run.first_half_accuracy, run.second_half_accuracy)
                for run in runs
                if run.labels == count
            ]
        )
        for count in sorted({run.labels for run in runs})
    }
    by_first, by_second = (
        max(halves, key=lambda count: halves[count][:, half].mean()) for half in (0, 1)
    )
    accuracies = (halves[by_first][:, 1] + halves[by_second][:, 0]) / 2
    return CurvePoint(
        epsilon=epsilon,
        labels=(by_first, by_second),
        accuracy_mean=float(accuracies.mean()),
        accuracy_std=float(accuracies.std(ddof=1)) if len(accuracies) > 1 else 0.0,
        repetitions=len(accuracies),
    )


def draw(points: Sequence[CurvePoint], path: Path) -> None:
    """Accuracy against ε with its spread, beside PATE."""
    figure, axes = new_figure(6.5, 4)
    ticks = [point.epsilon for point in points]
    axes.errorbar(
        ticks,
        [100 * point.accuracy_mean for point in points],
        yerr=[100 * point.accuracy_std for point in points],
        marker="o",
        capsize=3,
        label=f"dppp student, untrusted aggregator, δ = {DELTA:g} (certified), ± s.d. of runs",
    )
    for point in points:
        text = " or ".join(str(count) for count in sorted(set(point.labels)))
        place = (point.epsilon, 100 * (point.accuracy_mean + point.accuracy_std))
        axes.annotate(text, place, (0, 4), textcoords="offset points", ha="center", fontsize=8)
    axes.plot(PATE[0], 100 * PATE[1], "s", label="PATE (2018) as published, trusted aggregator")
    axes.set(
        xscale="log",
        xlabel="total ε (above each point: number of private labels)",
        ylabel="student accuracy on MNIST, %",
        ylim=(min([97.0, *(100 * point.accuracy_mean - 1 for point in points)]), 100),
    )
    axes.grid(alpha=0.3)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=130)


def mnist_ensemble() -> Ensemble:
    """The 250 MNIST teachers' votes and the public features, cached or computed now."""
    from dppp.experiments.datasets.mnist import load_mnist  # noqa: PLC0415
    from dppp.experiments.datasets.mnist_features import public_features  # noqa: PLC0415
    from dppp.experiments.teachers.mnist import (  # noqa: PLC0415  (needs torch)
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
    _say("votes of 250 teachers: from the cache, or trained now, which takes many minutes")
    runs: list[Run] = []
    for run in measure(mnist_ensemble(), mnist_method()):
        runs.append(run)
        write_table(runs, folder / "student.csv")
        accuracy = (run.first_half_accuracy + run.second_half_accuracy) / 2
        _say(
            f"{run.labels} labels, choice {run.seed}, ε {run.epsilon:g}: {run.label_accuracy:.1%} "
            f"of the labels right, student {accuracy:.2%}"
        )
    points = curve(runs)
    draw(points, folder / "student.png")
    for point in points:
        counts = " or ".join(str(count) for count in sorted(set(point.labels)))
        _say(
            f"ε {point.epsilon:g}: {point.accuracy_mean:.2%} ± {point.accuracy_std:.2%} "
            f"with {counts} labels"
        )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
