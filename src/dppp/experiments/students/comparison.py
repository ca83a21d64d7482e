"""What helps a student: five ensembles, two datasets, two budgets, one change at a time.

The number of labels is the rule's (label_rule.py), chosen before any labelled record is looked at.
Noise is the certified one of `calibrate("auto")`, drawn share by share by the real sampler;
cryptography is off and changes no count. `python -m dppp.experiments.students.comparison OUT`
writes students.csv and prints the table of docs/evidence.md; names of datasets after it choose.
"""

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from dppp.experiments.datasets.mnist_features import public_features
from dppp.experiments.students.ensembles import PublicData, mnist_data, nsl_kdd_data
from dppp.experiments.students.label_rule import labels_to_ask
from dppp.experiments.tables import write_table
from dppp.experiments.teachers.stored_votes import tally
from dppp.learning.label_spreading import (
    Spreading,
    choose_records,
    influence,
    neighbour_graph,
    spread_labels,
)
from dppp.learning.public_features import PublicFeatures
from dppp.learning.student import evidence_from_answers
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate
from dppp.privacy.sampling import sampling_table
from dppp.randomness import expand_key

DELTA = 1e-5
EPSILONS = (1.0, 8.0)
SEEDS = (1, 2, 3, 4, 5)
DATASETS: dict[str, Callable[[], PublicData]] = {
    "nsl-kdd-20": nsl_kdd_data,
    "raw": functools.partial(nsl_kdd_data, has_logarithms=False),
    "mnist": mnist_data,
}
Labels = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentRun:
    """One student of one ensemble."""

    dataset: str
    epsilon: float
    labels: int
    seed: int
    certified: bool
    label_accuracy: float
    features: str
    method: str
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """Features of all records, and the graph of the pool in them."""

    name: str
    rows: Floats
    graph: Any


def compare(
    data: PublicData,
    kinds: Sequence[Compared],
    *,
    epsilons: Sequence[float] = EPSILONS,
    seeds: Sequence[int] = SEEDS,
) -> Iterator[StudentRun]:
    """Every kind of features, each with every method, for every ensemble."""
    for epsilon in epsilons:
        labels = labels_to_ask(teachers=data.teachers, epsilon=epsilon, delta=DELTA, pool=data.pool)
        certificate = calibrate(
            "auto",
            epsilon=epsilon,
            delta=DELTA,
            teachers=data.teachers,
            queries=labels,
            classes=data.classes,
        )
        for seed in seeds:
            votes = data.votes(seed)
            for kind in kinds:
                yield from _students(data, kind, certificate, votes, seed)


def _students(
    data: PublicData,
    kind: Compared,
    certificate: Certificate,
    votes: NDArray[np.uint8],
    seed: int,
) -> Iterator[StudentRun]:
    labels, epsilon = certificate.promise.queries, certificate.promise.epsilon
    pool, others = kind.rows[: data.pool], kind.rows[data.pool :]
    asked = choose_records(pool, labels, seed=seed)
    counts = noisy_counts(tally(votes[:, asked], data.classes), certificate, len(votes), seed)
    arrived = influence(kind.graph, asked, Spreading())
    said = counts.argmax(axis=1)
    for method, model, spread in _methods(counts, said, arrived, data.classes):
        reached = spread.confidence > 0
        known = spread.labels[reached]
        if method == "counts, SVM on relabelled":
            known = relabelled(pool[reached], known, seed)
        if model is None:
            student = most_sure(pool, spread.labels, spread.confidence)
        else:
            student = fit(model, pool[reached], known)
        right = student.predict(others) == data.truth[data.pool :]
        yield StudentRun(
            dataset=data.dataset,
            epsilon=epsilon,
            labels=labels,
            seed=seed,
            certified=certificate.certified,
            label_accuracy=float((said == data.truth[asked]).mean()),
            features=kind.name,
            method=method,
            accuracy=float(right.mean()),
        )


def _methods(
    counts: NDArray[np.int64], said: Labels, arrived: Floats, classes: int
) -> Iterator[tuple[str, Any, Any]]:
    """Name, model (None for self-training) and what was spread; the third is the product's."""
    everything = np.arange(classes)
    _, votes = evidence_from_answers(said.tolist(), everything, len(said))
    _, weights = evidence_from_answers(counts, everything, len(said))
    by_label = spread_labels(arrived, votes, Spreading())
    by_count = spread_labels(arrived, weights, Spreading())
    yield "labels, 5 neighbours", KNeighborsClassifier(5), by_label
    yield "labels, SVM", SVC(), by_label
    yield "counts, SVM", SVC(), by_count
    yield "counts, SVM on relabelled", SVC(), by_count
    yield "counts, self-training", None, by_count


def relabelled(rows: Floats, labels: Labels, seed: int) -> Labels:
    """Each third labelled anew by an SVM that learned from the spread labels of the others."""
    sizes = np.bincount(labels)[np.unique(labels)]
    if len(sizes) < 2 or sizes.min() < 3:
        return labels
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    found: Labels = cross_val_predict(SVC(), rows, labels, cv=folds)
    return found


def most_sure(rows: Floats, labels: Labels, confidence: Floats) -> Any:
    """Self-training: learn from the surest 70 % of each class, label all, learn from the rest.

    The second time from the 85 % with the largest margin between the first two classes.
    """
    sure = np.zeros(len(labels), dtype=np.bool_)
    for label in np.unique(labels):
        own = np.flatnonzero((labels == label) & (confidence > 0))
        sure[own[np.argsort(-confidence[own], kind="stable")[: max(1, int(0.7 * len(own)))]]] = True
    first = fit(SVC(), rows[sure], labels[sure])
    if len(first.classes_) < 2:
        return first
    scores = first.decision_function(rows)
    ordered = np.sort(scores, axis=1) if scores.ndim == 2 else None
    margin = np.abs(scores) if ordered is None else ordered[:, -1] - ordered[:, -2]
    again = margin > np.quantile(margin, 0.15)
    own_labels = first.predict(rows)
    return fit(SVC(), rows[again], own_labels[again])


def fit(model: Any, rows: Floats, labels: Labels) -> Any:
    """As in the product: told of one class only, a student always says that class."""
    if len(np.unique(labels)) < 2:
        model = DummyClassifier(strategy="most_frequent")
    return model.fit(rows, labels)


def noisy_counts(
    counts: NDArray[np.int64], certificate: Certificate, teachers: int, seed: int
) -> NDArray[np.int64]:
    """Every teacher's share of the noise, by the real sampler from a fixed key."""
    promise = certificate.promise
    name = f"students {promise.epsilon} {promise.queries} {promise.classes} {seed}"
    key = hashlib.sha256(name.encode()).digest()
    table = sampling_table(certificate.noise)
    shares = table.draw(teachers * counts.size, functools.partial(expand_key, key))
    noisy: NDArray[np.int64] = counts + shares.reshape(teachers, *counts.shape).sum(axis=0)
    return noisy


def features_of(data: PublicData, rows: Floats, name: str) -> Compared:
    """These features, and the graph in which answers spread."""
    return Compared(
        name=name, rows=rows, graph=neighbour_graph(rows[: data.pool], Spreading().neighbours)
    )


def kinds_for(data: PublicData) -> list[Compared]:
    """As given, learned as in the product; for MNIST also contrastive ones and those for digits."""
    learned = PublicFeatures(random_state=0).fit(data.rows[: data.pool])
    found = [features_of(data, data.rows, "given")]
    if learned.kind_ != "one unit":  # which leaves them as they are
        found.append(features_of(data, learned.transform(data.rows), f"learned: {learned.kind_}"))
    if data.dataset == "mnist":
        from dppp.experiments.students.contrastive import (  # noqa: PLC0415  (needs torch)
            contrastive_features,
        )

        images = np.round(data.rows * 255).astype(np.uint8).reshape(-1, 28, 28)
        found.append(features_of(data, contrastive_features(data.rows, data.pool), "contrastive"))
        found.append(features_of(data, public_features(images, data.pool), "made for digits"))
    return found


def teachers_on_pool(data: PublicData) -> tuple[float, float]:
    """How often single teachers, and the plurality of all, are right; mean over the ensembles."""
    truth = data.truth[: data.pool]
    votes = [data.votes(seed) for seed in SEEDS]
    alone = [float((each == truth).mean()) for each in votes]
    together = [float((tally(each, data.classes).argmax(axis=1) == truth).mean()) for each in votes]
    return float(np.mean(alone)), float(np.mean(together))


def table_of(runs: Sequence[StudentRun]) -> list[str]:
    """Markdown: a line for each dataset, features and method; mean ± s.d. over ensembles."""
    budgets = sorted({run.epsilon for run in runs})
    lines = ["| dataset | features | method | " + " | ".join(f"ε = {e:g}" for e in budgets) + " |"]
    lines.append("|---|---|---|" + "---|" * len(budgets))
    keys = list(dict.fromkeys((run.dataset, run.features, run.method) for run in runs))
    for key in keys:
        cells = []
        for epsilon in budgets:
            some = [
                100 * run.accuracy
                for run in runs
                if (run.dataset, run.features, run.method) == key and run.epsilon == epsilon
            ]
            cells.append(f"{np.mean(some):.1f} ± {np.std(some, ddof=1):.1f}")
        lines.append(f"| {' | '.join(key)} | {' | '.join(cells)} |")
    return lines


def main(arguments: Sequence[str]) -> None:
    """Write students.csv as far as it is measured, and print the table at the end."""
    chosen = arguments[1:] or list(DATASETS)
    if not arguments or not set(chosen) <= set(DATASETS):
        raise SystemExit(f"usage: … OUT [{'] ['.join(DATASETS)}]")
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    runs: list[StudentRun] = []
    for name in chosen:
        data = DATASETS[name]()
        alone, together = teachers_on_pool(data)
        sys.stdout.write(
            f"{name}: a teacher {alone:.1%}, the plurality {together:.1%} of the pool\n"
        )
        for run in compare(data, kinds_for(data)):
            runs.append(run)
            write_table(runs, folder / "students.csv")
    settings = sorted({(run.dataset, run.epsilon, run.labels) for run in runs})
    for dataset, epsilon, labels in settings:
        some = [
            run.label_accuracy for run in runs if (run.dataset, run.epsilon) == (dataset, epsilon)
        ]
        sys.stdout.write(
            f"{dataset}, ε = {epsilon:g}: {labels} labels, {np.mean(some):.1%} right\n"
        )
    sys.stdout.write("\n".join(table_of(runs)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
