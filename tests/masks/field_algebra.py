"""What a set of rows tells, by linear algebra over the field of 65521 elements.

A dealt row is a linear function of the secret and of the rows that the dealer drew. The matrices
here are read off `Sharing.deal_from` itself, one unit vector at a time, and not written down again.
"""

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import MaskParametersError
from dppp.masks.parameters import FIELD, Parameters, choose_parameters
from dppp.masks.sharing import Sharing

Matrix = NDArray[np.int64]


@functools.cache
def every_trust(most: int) -> tuple[Parameters, ...]:
    """The parameters of every trust with up to this many teachers that masks allow."""
    found = []
    for teachers, colluders, dropouts in itertools.product(
        range(2, most + 1), range(most), range(most)
    ):
        try:
            found.append(parameters_for(teachers, colluders, dropouts))
        except MaskParametersError:
            continue
    return tuple(found)


def parameters_for(teachers: int, colluders: int, dropouts: int, **more: int) -> Parameters:
    named = {"largest_sum": 2000, "counts": 30, **more}
    return choose_parameters(teachers=teachers, colluders=colluders, dropouts=dropouts, **named)


def trust_of(parameters: Parameters) -> str:
    return f"{parameters.teachers}-{parameters.colluders}-{parameters.dropouts}"


@functools.cache
def dealing_matrices(sharing: Sharing) -> tuple[Matrix, Matrix]:
    """All rows from the packed values, and from the drawn rows: one line for each teacher."""
    no_secret = np.zeros(sharing.packed, dtype=np.int64)
    nothing_drawn = np.zeros((sharing.drawn_rows, 1), dtype=np.uint16)
    from_secret = [
        sharing.deal_from(unit, nothing_drawn)[:, 0]
        for unit in np.eye(sharing.packed, dtype=np.int64)
    ]
    from_drawn = [
        sharing.deal_from(no_secret, unit[:, None])[:, 0]
        for unit in np.eye(sharing.drawn_rows, dtype=np.uint16)
    ]
    return _columns(from_secret, sharing.teachers), _columns(from_drawn, sharing.teachers)


def _columns(columns: Sequence[NDArray[np.uint16]], height: int) -> Matrix:
    if not columns:
        return np.zeros((height, 0), dtype=np.int64)
    return np.stack(columns, axis=1).astype(np.int64)


def ranks(matrices: Matrix) -> NDArray[np.int64]:
    """The rank of each of many matrices of one shape, by elimination of all at once."""
    work = matrices % FIELD
    count, height, width = work.shape
    everyone = np.arange(count)
    found = np.zeros(count, dtype=np.int64)
    for column in range(width):
        free = np.arange(height) >= found[:, None]
        candidates = (work[:, :, column] != 0) & free
        has_pivot = candidates.any(axis=1)
        source = np.where(has_pivot, candidates.argmax(axis=1), 0)
        target = np.where(has_pivot, found, source)
        pivots = work[everyone, source].copy()
        work[everyone, source] = work[everyone, target]
        pivots = pivots * _inverse(pivots[:, column])[:, None] % FIELD
        work[everyone, target] = np.where(has_pivot[:, None], pivots, work[everyone, target])
        factors: Any = np.where(free & has_pivot[:, None], work[:, :, column], 0)
        factors[everyone, target] = 0
        work = (work - factors[:, :, None] * pivots[:, None, :]) % FIELD
        found += has_pivot
    return found


def rank(matrix: Matrix) -> int:
    return int(ranks(matrix[None])[0])


def tells(secret_part: Matrix, drawn_part: Matrix) -> int:
    """In how many independent ways observations depend on secrets and on nothing that was drawn."""
    return rank(np.concatenate([secret_part, drawn_part], axis=1)) - rank(drawn_part)


def kernel(matrix: Matrix) -> Matrix:
    """A basis, in columns, of the vectors that the matrix makes zero."""
    height, width = matrix.shape
    work = np.concatenate([matrix.T % FIELD, np.eye(width, dtype=np.int64)], axis=1)
    at = 0
    for column in range(height):
        places = at + np.flatnonzero(work[at:, column])
        if not len(places):
            continue
        work[[at, places[0]]] = work[[places[0], at]]
        work[at] = work[at] * pow(int(work[at, column]), -1, FIELD) % FIELD
        work[at + 1 :] -= work[at + 1 :, column : column + 1] * work[at]
        work %= FIELD
        at += 1
    return work[at:, height:].T


def subsets(members: Iterable[int], size: int) -> Matrix:
    return np.array(list(itertools.combinations(members, size)), dtype=np.int64)


def _inverse(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """values^(FIELD - 2)."""
    result = np.ones_like(values)
    for bit in bin(FIELD - 2)[2:]:
        result = result * result % FIELD
        if bit == "1":
            result = result * values % FIELD
    return result
