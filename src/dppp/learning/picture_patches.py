"""Features of square grey pictures: a dictionary of patches, learned without labels.

Patches are contrast-normalised and whitened, k-means finds typical ones, and each patch of a
picture counts for the words that it is nearer to than to the average word; counts are added up in a
grid of parts and compressed by principal components (Coates, Lee and Ng 2011). Used by
public_features.py.
"""

import itertools
import math
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_AT_ONCE = 250
"""Pictures that are worked on together; bounds memory."""

_MOST_PER_PICTURE = 100
"""Patches that are looked at for the dictionary; more of one picture would be the same ones."""


class PicturePatches:
    """Fitted on the pictures of the public pool, one per row, row by row of pixels."""

    def __init__(
        self,
        *,
        side: int = 6,
        words: int = 160,
        parts: int = 3,
        samples: int = 40_000,
        components: int = 80,
        random_state: int | None = None,
    ) -> None:
        self.side = side
        self.words = words
        self.parts = parts
        self.samples = samples
        self.components = components
        self.random_state = random_state

    def fit(self, pictures: Floats) -> Self:
        """Learn the words, and the components of their counts."""
        random = check_random_state(self.random_state)
        self.spread_ = max(float(np.std(pictures)), 1e-12)
        patches = self._normalise(self._sample(self._grids(pictures), random))
        self.mean_ = patches.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(patches.T))
        self.whitening_ = (vectors / np.sqrt(np.maximum(values, 0) + 0.1)) @ vectors.T
        white = (patches - self.mean_) @ self.whitening_
        seed = int(random.randint(2**31 - 1))
        means = MiniBatchKMeans(
            min(self.words, len(white)),
            n_init=1,
            max_iter=20,
            batch_size=4096,
            random_state=seed,
        )
        self.dictionary_ = means.fit(white).cluster_centers_.astype(np.float32)
        counts = self._count(pictures)
        components = min(self.components, *counts.shape)
        self.components_ = PCA(components, svd_solver="randomized", random_state=seed).fit(counts)
        self.scale_ = np.maximum(self.components_.explained_variance_, 1e-12) ** 0.25
        return self

    def transform(self, pictures: Floats) -> Floats:
        """Principal components of the counts, half whitened, of any pictures."""
        features: Floats = self.components_.transform(self._count(pictures)) / self.scale_
        return features.astype(np.float64)

    def _grids(self, pictures: Floats) -> Singles:
        side = math.isqrt(pictures.shape[1])
        return (pictures.reshape(-1, side, side) / self.spread_).astype(np.float32)

    def _sample(self, grids: Singles, random: np.random.RandomState) -> Singles:
        places = grids.shape[1] - self.side + 1
        samples = min(self.samples, _MOST_PER_PICTURE * len(grids))
        which = random.randint(len(grids), size=samples)
        top, left = random.randint(places, size=(2, samples))
        windows = np.lib.stride_tricks.sliding_window_view(
            grids, (self.side, self.side), axis=(1, 2)
        )
        found: Singles = windows[which, top, left].reshape(samples, -1)
        return found

    def _normalise(self, patches: Singles) -> Singles:
        """Brightness taken out; contrast too, unless there is next to none."""
        centred = patches - patches.mean(axis=1, keepdims=True)
        contrast = np.sqrt(centred.var(axis=1, keepdims=True) + np.float32(0.1))
        normalised: Singles = centred / contrast
        return normalised

    def _count(self, pictures: Floats) -> Singles:
        grids = self._grids(pictures)
        starts = range(0, len(grids), _AT_ONCE)
        return np.concatenate([self._count_some(grids[at : at + _AT_ONCE]) for at in starts])

    def _count_some(self, grids: Singles) -> Singles:
        windows = np.lib.stride_tricks.sliding_window_view(
            grids, (self.side, self.side), axis=(1, 2)
        )
        shape = windows.shape[:3]
        patches = self._normalise(windows.reshape(-1, self.side**2))
        white = ((patches - self.mean_) @ self.whitening_).astype(np.float32)
        squares = (white**2).sum(axis=1, keepdims=True) + (self.dictionary_**2).sum(axis=1)
        distances = np.sqrt(np.maximum(squares - 2 * white @ self.dictionary_.T, 0))
        near = np.maximum(distances.mean(axis=1, keepdims=True) - distances, 0)
        near = near.reshape(*shape, -1)
        edges = np.linspace(0, shape[1], self.parts + 1).astype(int)
        steps = list(itertools.pairwise(edges))
        parts = [
            near[:, top:bottom, left:right].mean(axis=(1, 2))
            for top, bottom in steps
            for left, right in steps
        ]
        counts: Singles = np.sqrt(np.concatenate(parts, axis=1))
        return counts
