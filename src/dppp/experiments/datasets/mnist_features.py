"""Features of digits that need no labels: deskewed images, histograms of gradients, PCA.

Neighbours in these are far more often of one class than neighbours by pixels (98 % against 91 % of
the ten nearest among 9,000), which is what spreading labels lives on. Only public images go in.
Used by the student's curve.
"""

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.decomposition import PCA

from dppp.experiments.datasets.files import Arrays, cache_folder, cached_arrays
from dppp.experiments.datasets.mnist import Bytes

Floats = NDArray[np.float64]

_DIRECTIONS = 8
_COMPONENTS = 80


def public_features(images: Bytes, pool: int, *, folder: Path | None = None) -> Floats:
    """Features of all images, with PCA fitted on the first `pool` of them; cached."""
    digest = hashlib.sha256(images.tobytes()).hexdigest()[:16]
    path = (folder or cache_folder()) / f"image-features-{digest}-{pool}-1.npz"

    def make() -> Arrays:
        histograms = gradient_histograms(deskew(images))
        components = min(_COMPONENTS, pool, histograms.shape[1])
        projection = PCA(components, svd_solver="randomized", random_state=0).fit(histograms[:pool])
        return {"features": projection.transform(histograms)}

    return np.asarray(cached_arrays(path, make)["features"], np.float64)


def deskew(images: Bytes) -> Floats:
    """Centre every image by its mass and shear it until rows and columns are uncorrelated."""
    return np.stack([_deskew_one(image / 255) for image in images])


def _deskew_one(image: Floats) -> Floats:
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
    mass = image.sum()
    if mass == 0:
        return image
    row, column = (rows * image).sum() / mass, (columns * image).sum() / mass
    spread = ((rows - row) ** 2 * image).sum()
    skew = ((rows - row) * (columns - column) * image).sum() / max(spread, 1e-12)
    shear = np.array([[1, 0], [skew, 1]])
    middle = (np.array(image.shape) - 1) / 2
    offset = np.array([row, column]) - shear @ middle
    sheared: Floats = ndimage.affine_transform(image, shear, offset, order=1)
    return sheared


def gradient_histograms(images: Floats) -> Floats:
    """How much edge of each direction there is around each point of a coarse grid.

    Each image's histogram adds up to 1 and is rooted, so that distances are Hellinger's.
    """
    smooth = ndimage.gaussian_filter(images, (0, 0.7, 0.7))
    down, right = np.gradient(smooth, axis=(1, 2))
    strength = np.hypot(down, right)
    angle = (np.arctan2(down, right) % (2 * np.pi)) / (2 * np.pi) * _DIRECTIONS
    lower = np.floor(angle)
    upper_part = angle - lower
    cells = []
    for direction in range(_DIRECTIONS):
        share = (lower % _DIRECTIONS == direction) * (1 - upper_part)
        share = share + ((lower + 1) % _DIRECTIONS == direction) * upper_part
        cells.append(ndimage.gaussian_filter(strength * share, (0, 1.5, 1.5))[:, 2::3, 2::3])
    histograms = np.stack(cells, axis=1).reshape(len(images), -1)
    total = np.maximum(histograms.sum(axis=1, keepdims=True), 1e-12)
    rooted: Floats = np.sqrt(histograms / total)
    return rooted
