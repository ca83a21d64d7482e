"""Features of public records that need neither labels nor knowledge of what the columns are.

A student compares records by them (student.py). What they are is decided by the public pool alone:

- columns that look like a square picture, each like its neighbours: patches (picture_patches.py);
- columns of one unit, such as pixels or centimetres: as they are;
- any others: the rank of each value among the pool's, since a column in bytes next to one in years
  would drown it.
"""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import QuantileTransformer
from sklearn.utils.validation import check_is_fitted, validate_data

from dppp.learning.picture_patches import PicturePatches

Floats = NDArray[np.float64]

_MOST_UNLIKE = 30.0
"""Columns have one unit if nine tenths of their ranges lie within this factor."""

_LEAST_SIDE = 16
"""Smaller pictures have few patches, and pixels compare them well enough."""

_LEAST_CORRELATION = 0.4
"""Of a pixel with the one beside it, on average, and of a pixel with the one below it."""


class PublicFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from the public pool how to compare records; labels have no part in it.

    `kind_` says what was decided: "picture", "one unit" or "ranks".

    >>> import numpy as np
    >>> from dppp.learning.public_features import PublicFeatures
    >>> table = np.random.default_rng(0).random((50, 3)) * [1, 1000, 1]
    >>> PublicFeatures().fit(table).kind_
    'ranks'
    """

    def __init__(self, *, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: None = None) -> Self:  # noqa: N803, ARG002
        """Decide what the columns are, and learn what that needs."""
        pool: Floats = validate_data(self, X, dtype=np.float64)
        varied = np.ptp(pool, axis=0) > 0
        self.used_ = varied if varied.any() else np.ones(pool.shape[1], dtype=np.bool_)
        self.kind_ = _kind_of(pool, varied)
        self.learned_: Any = None
        if self.kind_ == "picture":
            self.learned_ = PicturePatches(random_state=self.random_state).fit(pool)
        elif self.kind_ == "ranks":
            quantiles = QuantileTransformer(n_quantiles=min(len(pool), 500), random_state=0)
            self.learned_ = quantiles.fit(pool[:, self.used_])
        return self

    def transform(self, X: ArrayLike) -> Floats:  # noqa: N803
        """The features of any records with the pool's columns."""
        check_is_fitted(self, "kind_")
        records: Floats = validate_data(self, X, reset=False, dtype=np.float64)
        if self.learned_ is None:
            return records
        columns = records if self.kind_ == "picture" else records[:, self.used_]
        features: Floats = self.learned_.transform(columns)
        return features


def _kind_of(pool: Floats, varied: NDArray[np.bool_]) -> str:
    if _looks_like_a_picture(pool, varied):
        return "picture"
    ranges = np.ptp(pool[:, varied], axis=0)
    if len(ranges) == 0:
        return "one unit"
    low = np.quantile(ranges, 0.05, method="lower")
    high = np.quantile(ranges, 0.95, method="higher")
    return "one unit" if high <= _MOST_UNLIKE * low else "ranks"


def _looks_like_a_picture(pool: Floats, varied: NDArray[np.bool_]) -> bool:
    """A square number of columns, each like the one beside it and the one a row below."""
    side = math.isqrt(pool.shape[1])
    if side * side != pool.shape[1] or side < _LEAST_SIDE or len(pool) < side:
        return False
    scaled = pool - pool.mean(axis=0)
    scaled /= np.where(varied, np.maximum(pool.std(axis=0), 1e-300), 1.0)
    grid, known = scaled.reshape(-1, side, side), varied.reshape(side, side)
    beside = (grid[:, :, 1:] * grid[:, :, :-1]).mean(axis=0)[known[:, 1:] & known[:, :-1]]
    below = (grid[:, 1:] * grid[:, :-1]).mean(axis=0)[known[1:] & known[:-1]]
    if len(beside) == 0 or len(below) == 0:
        return False
    return bool(min(beside.mean(), below.mean()) > _LEAST_CORRELATION)
