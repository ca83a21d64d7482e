"""How records come to organisations, and an organisation's records to its shards.

Every record is in exactly one shard, and a shard is a random part of one organisation's records.
Used by both experiments of this folder. A seeded numpy generator deals here, so that a rerun
agrees.
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from dppp.errors import InputError
from dppp.experiments.teachers.uneven_split import Rows, teacher_sizes

LEAST_RECORDS = 20
"""A dealing by clusters that leaves an organisation fewer is drawn again."""
_DRAWS = 1000


def deal_alike(count: int, teachers: int, sizes: str, random: Generator) -> list[Rows]:
    """At random: everybody sees the same world, more or less of it."""
    ends = np.cumsum(teacher_sizes(count, teachers, sizes))
    return np.split(random.permutation(count)[: ends[-1]], ends[:-1])


def deal_by_clusters(
    clusters: NDArray[np.int64], teachers: int, alpha: float, random: Generator
) -> list[Rows]:
    """Each cluster goes to the organisations in shares drawn from Dirichlet(α, …, α).

    The smaller α, the fewer organisations see a cluster at all; sizes are as they fall.
    """
    if not alpha > 0:
        raise InputError(f"alpha must be above 0, got {alpha}")
    for _ in range(_DRAWS):
        dealt = _deal_clusters(clusters, teachers, alpha, random)
        if min(len(own) for own in dealt) >= LEAST_RECORDS:
            return dealt
    raise InputError(
        f"{len(clusters)} records are too few for {teachers} teachers with at least "
        f"{LEAST_RECORDS} each",
        hint="use fewer teachers or a larger alpha",
    )


def _deal_clusters(
    clusters: NDArray[np.int64], teachers: int, alpha: float, random: Generator
) -> list[Rows]:
    parts: list[list[Rows]] = [[] for _ in range(teachers)]
    for cluster in np.unique(clusters):
        rows = random.permutation(np.flatnonzero(clusters == cluster))
        numbers = random.multinomial(len(rows), random.dirichlet(np.full(teachers, alpha)))
        for part, own in zip(parts, np.split(rows, np.cumsum(numbers)[:-1]), strict=True):
            part.append(own)
    return [np.concatenate(part) for part in parts]


def find_clusters(rows: NDArray[np.float64], clusters: int, seed: int) -> NDArray[np.int64]:
    """Parts of the world, by k-means on scaled numbers. Only the dealing knows them."""
    means = KMeans(clusters, n_init=1, random_state=seed)
    found: NDArray[np.int64] = means.fit_predict(StandardScaler().fit_transform(rows))
    return found


def votes_by_size(sizes: Sequence[int], votes: int) -> list[int]:
    """Votes in proportion to records, `votes` per organisation on average, and at least one."""
    total = votes * len(sizes)
    return [max(1, round(total * size / sum(sizes))) for size in sizes]


def split_into_shards(rows: Rows, votes: int, random: Generator) -> list[Rows]:
    """A random part of the records for each vote, and never a shard without any record."""
    return np.array_split(random.permutation(rows), min(votes, len(rows)))
