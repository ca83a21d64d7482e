"""A student: spend the budget on a few labels of public records, then answer for free.

The querier runs this. It has public records without labels and may ask the teachers about some.
`choose_records` picks those by diversity from the public pool alone, so that the choice tells
nothing about private data; `spread_labels` carries the answers along a graph of nearest
neighbours to the whole pool (Zhou et al. 2004), where right answers outvote the wrong ones that
noise left; any scikit-learn estimator then learns from the spread labels. All of it is
post-processing of what the teachers released: the student answers without limit at no further cost.

Any function from rows to answers will do for the teachers: labels with None for an abstention, or
the noisy counts themselves, which are released anyway and carry more than the label.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data

from dppp.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

Ask = Callable[[Integers], Sequence[object] | NDArray[Any]]
"""Asks the teachers about these rows of the pool: a label or None each, or a row of counts each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreading:
    """How answers travel: neighbours of a record, how far, and what is known of the classes.

    `class_shares` are the shares of the classes in the public pool, where they are public knowledge
    (digits are about equally frequent); class weights are then scaled until the spread labels keep
    to them. Without them a class with many asked records reaches too far.
    """

    neighbours: int = 10
    reach: float = 0.97
    steps: int = 100
    class_shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.neighbours < 1 or self.steps < 1 or not 0 < self.reach < 1:
            raise InputError(
                f"neighbours and steps must be 1 or more and reach between 0 and 1, got {self}"
            )
        shares = self.class_shares
        if shares is not None and (min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9):
            raise InputError(f"class_shares must be positive and add up to 1, got {shares}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadLabels:
    """A class number and a confidence between 0 and 1 for every record of the pool."""

    labels: Integers
    confidence: Floats


def choose_records(features: ArrayLike, count: int, *, seed: int | None = None) -> Integers:
    """Rows of the public pool to ask about: the record nearest to each k-means centre.

    Records in the middle of a cluster are typical, so teachers agree on them and noise matters
    less; there are as many clusters as labels, so no part of the pool is left out. Larger clusters
    come first, and a shorter budget may take a prefix.
    """
    rows = np.asarray(features, dtype=np.float64)
    if not 1 <= count <= len(rows):
        raise InputError(f"cannot choose {count} of {len(rows)} records; ask for fewer labels")
    means = KMeans(count, n_init=1, random_state=seed).fit(rows)
    sizes = np.bincount(means.labels_, minlength=count)
    distances = means.transform(rows)
    chosen: list[int] = []
    for cluster in np.argsort(-sizes, kind="stable"):
        order = np.argsort(distances[:, cluster], kind="stable")
        chosen.append(next(int(row) for row in order if row not in chosen))
    return np.array(chosen, dtype=np.int64)


def neighbour_graph(features: ArrayLike, neighbours: int) -> sparse.csr_array:
    """Symmetric weights between near records, normalised as D^(-1/2) W D^(-1/2)."""
    rows = np.asarray(features, dtype=np.float64)
    near = NearestNeighbors(n_neighbors=min(neighbours, len(rows) - 1)).fit(rows)
    distances, targets = near.kneighbors()
    # Each record measures with its own ruler: the distance of its farthest neighbour.
    scale = np.maximum(distances[:, -1], 1e-12)
    weights = np.exp(-(distances**2) / (scale[:, None] * scale[targets]))
    sources = np.repeat(np.arange(len(rows)), targets.shape[1])
    graph = sparse.csr_array(
        (weights.ravel(), (sources, targets.ravel())), shape=(len(rows), len(rows))
    )
    graph = (graph + graph.T).tocsr()
    root = sparse.diags_array(1 / np.sqrt(np.maximum(graph.sum(axis=1), 1e-12)))
    return sparse.csr_array(root @ graph @ root)


def influence(graph: sparse.csr_array, rows: Integers, spreading: Spreading) -> Floats:
    """How much of each asked row's answer arrives at each record; every answer has one to give.

    The fixed point of F = reach · S F + Y, by iteration. It does not depend on the answers.
    """
    start = np.zeros((graph.shape[0], len(rows)))
    start[rows, np.arange(len(rows))] = 1
    arrived = start
    for _ in range(spreading.steps):
        arrived = spreading.reach * (graph @ arrived) + start
    shares: Floats = arrived / arrived.sum(axis=0)
    return shares


def spread_labels(arrived: Floats, evidence: Floats, spreading: Spreading) -> SpreadLabels:
    """Carry the evidence (a row of class weights for each asked row) to every record."""
    scores = np.maximum(arrived @ evidence, 0)
    scores += 1e-12 * arrived.max() * np.abs(evidence).max()
    scores /= scores.sum(axis=1, keepdims=True)
    if spreading.class_shares is not None:
        scores = _balance(scores, np.array(spreading.class_shares))
    return SpreadLabels(labels=scores.argmax(axis=1), confidence=scores.max(axis=1))


def _balance(scores: Floats, shares: Floats, rounds: int = 20) -> Floats:
    """Scale the classes until the mean of the scores is about the known shares."""
    if len(shares) != scores.shape[1]:
        raise InputError(f"{len(shares)} class_shares for {scores.shape[1]} classes")
    weights = np.ones(len(shares))
    balanced = scores
    for _ in range(rounds):
        weights *= shares / np.maximum(balanced.mean(axis=0), shares / 100)
        balanced = scores * weights
        balanced = balanced / balanced.sum(axis=1, keepdims=True)
    return balanced


def evidence_from_answers(
    answers: Sequence[object] | NDArray[Any], classes: NDArray[Any], asked: int
) -> tuple[NDArray[np.bool_], Floats]:
    """Which rows were answered, and a row of class weights for each of those.

    Counts are centred, so that noise common to all classes does not travel; they stay linear, so
    that independent noise averages out on the way.
    """
    if len(answers) != asked:
        raise InputError(f"asked about {asked} records but got {len(answers)} answers")
    if isinstance(answers, np.ndarray) and answers.ndim == 2:
        if answers.shape[1] != len(classes):
            raise InputError(
                f"counts have {answers.shape[1]} columns for {len(classes)} classes; they must "
                "agree, in the order of `classes`"
            )
        counts = answers.astype(np.float64)
        counts -= counts.mean(axis=1, keepdims=True)
        return np.ones(asked, dtype=np.bool_), counts / max(np.abs(counts).max(), 1e-300)
    answered = np.array([answer is not None for answer in answers], dtype=np.bool_)
    labels = [answer for answer in answers if answer is not None]
    unknown = set(labels) - set(classes.tolist())
    if unknown:
        raise InputError(f"answers outside the classes: {sorted(map(repr, unknown))}")
    position = {label: number for number, label in enumerate(classes.tolist())}
    evidence = np.zeros((len(labels), len(classes)))
    evidence[np.arange(len(labels)), [position[label] for label in labels]] = 1
    return answered, evidence


class StudentClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Asks for `labels` private labels of public records, and learns from them and the rest.

    `ask` is the only way to the teachers and is called once. `graph_features`, if given to `fit`,
    are the features in which records are compared and chosen; the estimator learns from X.
    """

    def __init__(
        self,
        ask: Ask,
        *,
        classes: Sequence[object],
        labels: int = 100,
        estimator: Any = None,
        spreading: Spreading | None = None,
        random_state: int | None = None,
    ) -> None:
        self.ask = ask
        self.classes = classes
        self.labels = labels
        self.estimator = estimator
        self.spreading = spreading
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: None = None, *, graph_features: ArrayLike | None = None) -> Self:  # noqa: N803
        """Choose, ask, spread, learn. X is the public pool; labels are never taken from outside."""
        if y is not None:
            raise InputError("a student takes no labels from outside; leave y out")
        pool: NDArray[Any] = validate_data(self, X)
        features = pool if graph_features is None else np.asarray(graph_features, dtype=np.float64)
        if len(features) != len(pool):
            raise InputError(f"{len(features)} rows of graph_features for {len(pool)} records")
        spreading = self.spreading or Spreading()
        self.classes_ = np.asarray(self.classes)
        rows = choose_records(features, self.labels, seed=self.random_state)
        answered, evidence = evidence_from_answers(self.ask(rows), self.classes_, len(rows))
        if not answered.any():
            raise InputError("every answer was an abstention; ask for fewer labels or more budget")
        self.asked_ = rows
        self.answered_ = rows[answered]
        graph = neighbour_graph(features, spreading.neighbours)
        arrived = influence(graph, self.answered_, spreading)
        self.spread_ = spread_labels(arrived, evidence, spreading)
        self.estimator_ = self._taught(pool)
        return self

    def _taught(self, pool: NDArray[Any]) -> Any:
        estimator = KNeighborsClassifier(5) if self.estimator is None else clone(self.estimator)
        return estimator.fit(pool, self.classes_[self.spread_.labels])

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The student's own answers: no teacher is asked and nothing is spent."""
        check_is_fitted(self, "estimator_")
        predicted: NDArray[Any] = self.estimator_.predict(validate_data(self, X, reset=False))
        return predicted
