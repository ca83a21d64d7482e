"""Linear algebra over GF(65521): what rows of a dealt secret tell."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dppp.masks.parameters import FIELD
from dppp.masks.sharing import Sharing

Matrix = NDArray[np.int64]


def rank(matrix: Matrix) -> int:
    """By elimination."""
    rows, found = matrix % FIELD, 0
    for column in range(rows.shape[1]):
        usable = found + np.flatnonzero(rows[found:, column])
        if not len(usable):
            continue
        rows[[found, usable[0]]] = rows[[usable[0], found]]
        rows[found] = rows[found] * pow(int(rows[found, column]), -1, FIELD) % FIELD
        below = rows[found + 1 :]
        below[:] = (below - below[:, column : column + 1] * rows[found]) % FIELD
        found += 1
    return found


def rows_as_linear_maps(sharing: Sharing) -> tuple[Matrix, Matrix]:
    """Each teacher's row as a map of the secret values, and as one of what the dealer draws.

    Read off the real `deal_from`, by dealing unit vectors.
    """
    secret_columns = [
        sharing.deal_from(unit, np.zeros((sharing.drawn_rows, 1), dtype=np.uint16))[:, 0]
        for unit in np.eye(sharing.packed, dtype=np.int64)
    ]
    nothing = np.zeros(sharing.packed, dtype=np.int64)
    drawn_columns = [
        sharing.deal_from(nothing, unit[:, None])[:, 0]
        for unit in np.eye(sharing.drawn_rows, dtype=np.uint16)
    ]
    drawn = np.array(drawn_columns, dtype=np.int64).reshape(sharing.drawn_rows, sharing.teachers)
    return np.array(secret_columns, dtype=np.int64).T, drawn.T


def told(secret_map: Matrix, drawn_map: Matrix) -> int:
    """How many linear combinations of the secret values these observations give away."""
    return rank(np.concatenate([secret_map, drawn_map], axis=1)) - rank(drawn_map)


def told_by(sharing: Sharing, indices: Sequence[int]) -> int:
    """The same for the rows of these teachers."""
    secret_map, drawn_map = rows_as_linear_maps(sharing)
    chosen = np.array(indices, dtype=np.int64) - 1
    return told(secret_map[chosen], drawn_map[chosen])


def trusts(largest: int) -> Iterator[tuple[int, int, int]]:
    """Every N, C, D that masks allow, up to this N."""
    for teachers in range(2, largest + 1):
        for colluders, dropouts in itertools.product(range(teachers), repeat=2):
            threshold = (teachers + colluders) // 2 + 1
            if teachers - colluders - dropouts >= 2 and threshold <= teachers - dropouts:
                yield teachers, colluders, dropouts
