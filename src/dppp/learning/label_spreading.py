"""Few answers to many records: choose what to ask, and carry the answers to the whole pool.

The querier runs this for its student (student.py). `choose_records` picks by diversity from the
public pool alone, so that the choice tells nothing about private data; `spread_labels` carries the
answers along a graph of nearest neighbours (Zhou et al. 2004), where right answers outvote the
wrong ones that noise left.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from dppp.errors import InputError
from dppp.whole_numbers import keep_whole

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreading:
    """How answers travel: neighbours of a record, how far, and what is known of the classes.

    `class_shares` are the shares of the classes in the public pool, where they are public knowledge
    (digits are about equally frequent); class weights are then scaled until the spread labels keep
    to them. Without them a class with many asked records reaches too far. The default `reach` was
    picked by accuracy on Breast Cancer (8 splits), not derived.
    """

    neighbours: int = 10
    reach: float = 0.9
    steps: int = 100
    class_shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        keep_whole(self, "neighbours", "steps")
        if not 0 < self.reach < 1:
            raise InputError(
                f"reach must be between 0 and 1, both excluded, got {self.reach!r}",
                hint="for example 0.9",
            )
        shares = self.class_shares
        if shares is not None and (min(shares, default=0) <= 0 or abs(sum(shares) - 1) > 1e-9):
            raise InputError(
                f"class_shares must be positive and add up to 1, got {shares}",
                hint="give the share of each class, or leave it out",
            )

    def require_classes(self, count: int) -> None:
        """Refuse shares of other classes; a student asks this before it spends anything."""
        shares = self.class_shares
        if shares is not None and len(shares) != count:
            raise InputError(
                f"{len(shares)} class_shares for {count} classes", hint="give one for each"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadLabels:
    """A class number and a confidence for every record of the pool; 0 where no answer arrived."""

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
        raise InputError(
            f"cannot choose {count} of {len(rows)} records", hint="ask for fewer labels"
        )
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
    spreading.require_classes(evidence.shape[1])
    reached = arrived.any(axis=1)
    scores = np.maximum(arrived[reached] @ evidence, 0)
    # Where nothing speaks for any class, all classes are alike; elsewhere this is too little.
    scores += max(1e-12 * arrived.max() * np.abs(evidence).max(), np.finfo(np.float64).tiny)
    scores /= scores.sum(axis=1, keepdims=True)
    if spreading.class_shares is not None:
        scores = _balance(scores, np.array(spreading.class_shares))
    labels, confidence = np.zeros(len(arrived), dtype=np.int64), np.zeros(len(arrived))
    labels[reached], confidence[reached] = scores.argmax(axis=1), scores.max(axis=1)
    return SpreadLabels(labels=labels, confidence=confidence)


def _balance(scores: Floats, shares: Floats, rounds: int = 20) -> Floats:
    """Scale the classes until the mean of the scores is about the known shares."""
    weights = np.ones(len(shares))
    balanced = scores
    for _ in range(rounds):
        weights *= shares / np.maximum(balanced.mean(axis=0), shares / 100)
        balanced = scores * weights
        balanced = balanced / balanced.sum(axis=1, keepdims=True)
    return balanced
