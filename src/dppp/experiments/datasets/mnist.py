"""MNIST: 70,000 images of digits, in the four files that everybody has.

Used by the MNIST teachers and by the student that is measured on it.
"""

import gzip
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.experiments.datasets.files import DataFile, find_file

Bytes = NDArray[np.uint8]

MNIST_HOMES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_IDX_OF_BYTES = 0x08


@dataclass(frozen=True, slots=True, kw_only=True)
class Mnist:
    """Images as bytes of shape (records, 28, 28) and labels 0 … 9."""

    train_images: Bytes
    train_labels: Bytes
    test_images: Bytes
    test_labels: Bytes


MNIST_FILES = tuple(
    DataFile(folder="mnist", name=name, sha256=sha256, homes=MNIST_HOMES)
    for name, sha256 in (
        (
            "train-images-idx3-ubyte.gz",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        (
            "train-labels-idx1-ubyte.gz",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        (
            "t10k-images-idx3-ubyte.gz",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        (
            "t10k-labels-idx1-ubyte.gz",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    )
)


def load_mnist(files: Sequence[DataFile] = MNIST_FILES) -> Mnist:
    """All 70,000 records, from wherever the four files are."""
    arrays = [parse_idx(gzip.decompress(find_file(file)), file.name) for file in files]
    train_images, train_labels, test_images, test_labels = arrays
    for images, labels in ((train_images, train_labels), (test_images, test_labels)):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise InputError(
                f"images of shape {images.shape} and labels of shape {labels.shape} do not belong "
                "together",
                hint="restore the original files",
            )
    return Mnist(
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
    )


def parse_idx(content: bytes, name: str) -> Bytes:
    """An array of bytes in the IDX format: two zeros, type, dimensions, big-endian sizes, data."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _IDX_OF_BYTES:
        raise InputError(f"{name} is not an IDX file of bytes", hint="restore the original file")
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise InputError(f"{name} ends within its header", hint="restore the original file")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    expected = int(np.prod(shape, dtype=object))
    if len(content) - start != expected:
        raise InputError(
            f"{name} holds {len(content) - start} bytes of data where its header says {expected}",
            hint="restore the original file",
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
