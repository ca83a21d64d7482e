"""Datasets: found in the folder named by DPPP_DATA, else in a cache, else downloaded and checked.

Run by experiments only. Every file has a fixed SHA-256, so it does not matter where it came from;
a damaged file is refused, never used. Nothing is ever written into the folder of DPPP_DATA.
"""

import gzip
import hashlib
import os
import struct
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from dppp.errors import DatasetUnavailable, InputError

Bytes = NDArray[np.uint8]

DATA_VARIABLE = "DPPP_DATA"
CACHE_VARIABLE = "DPPP_CACHE"
MNIST_HOMES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_CHUNK_BYTES = 1 << 16
_IDX_OF_BYTES = 0x08


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One file of a dataset: where it lies below a data folder, its checksum, its public homes."""

    folder: str
    name: str
    sha256: str
    homes: tuple[str, ...]

    def path_in(self, root: Path) -> Path:
        """Where this file lies below a data folder."""
        return root / self.folder / self.name


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
                "together; restore the original files"
            )
    return Mnist(
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
    )


def cache_folder() -> Path:
    """Where downloads and computed votes are kept: DPPP_CACHE, else the user's cache."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dppp"


def find_file(file: DataFile) -> bytes:
    """The checked bytes of a file: from DPPP_DATA, else the cache, else its public homes."""
    given = os.environ.get(DATA_VARIABLE)
    roots = [*([Path(given)] if given else []), cache_folder() / "data"]
    for root in roots:
        path = file.path_in(root)
        if path.is_file():
            return _checked(path.read_bytes(), file, str(path))
    content = _download(file, roots[0])
    target = file.path_in(cache_folder() / "data")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}.partial")
    partial.write_bytes(content)
    partial.replace(target)
    return content


def parse_idx(content: bytes, name: str) -> Bytes:
    """An array of bytes in the IDX format: two zeros, type, dimensions, big-endian sizes, data."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _IDX_OF_BYTES:
        raise InputError(f"{name} is not an IDX file of bytes; restore the original file")
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise InputError(f"{name} ends within its header; restore the original file")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    expected = int(np.prod(shape, dtype=object))
    if len(content) - start != expected:
        raise InputError(
            f"{name} holds {len(content) - start} bytes of data where its header says {expected}; "
            "restore the original file"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _checked(content: bytes, file: DataFile, place: str) -> bytes:
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise InputError(
            f"{place} is damaged or another file: its SHA-256 is {found}, expected {file.sha256}; "
            "delete it and fetch it again"
        )
    return content


def _download(file: DataFile, root: Path) -> bytes:
    reasons = []
    for home in file.homes:
        try:
            return _checked(_fetch(home + file.name), file, home + file.name)
        except (urllib.error.URLError, OSError, InputError) as error:
            reasons.append(f"{home + file.name}: {error}")
    raise DatasetUnavailable(
        f"{file.name} is missing and could not be downloaded ({'; '.join(reasons)}); put it at "
        f"{file.path_in(root)} (SHA-256 {file.sha256}), or set {DATA_VARIABLE} to the folder that "
        f"holds {file.folder}/{file.name}"
    )


def _fetch(address: str) -> bytes:
    if not address.startswith("https://"):
        raise InputError(f"{address} is not an https address; datasets are fetched by https only")
    with urllib.request.urlopen(address, timeout=30) as response, Progress() as progress:  # noqa: S310
        total = int(response.headers.get("Content-Length", 0)) or None
        bar = progress.add_task(address.rsplit("/", 1)[-1], total=total)
        chunks = []
        while chunk := response.read(_CHUNK_BYTES):
            chunks.append(chunk)
            progress.update(bar, advance=len(chunk))
    return b"".join(chunks)
