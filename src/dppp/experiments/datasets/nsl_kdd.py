"""NSL-KDD-20: connections that are normal or an attack, and the official test file.

Used by the SVM teachers. The paper's subset is read as the official 20 % file. Which split of it
the paper tested on is not said: here it is 80/20 at random, and beside it the official test file,
which holds attacks that no training file has. The two classes are 0 (normal) and 1 (attack).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.experiments.datasets.files import DataFile, find_file

Floats = NDArray[np.float64]
Labels = NDArray[np.uint8]

NSL_KDD_HOMES = (
    "https://raw.githubusercontent.com/defcom17/NSL_KDD/master/",
    "https://raw.githubusercontent.com/jmnwong/NSL-KDD-Dataset/master/",
)
FEATURES = 41
CATEGORIES = (1, 2, 3)
"""Columns of words: protocol, service, flag."""


def _text_file(name: str, sha256: str) -> DataFile:
    return DataFile(
        folder="nsl-kdd", name=name, sha256=sha256, homes=NSL_KDD_HOMES, is_plain_text=True
    )


TWENTY_PERCENT = _text_file(
    "KDDTrain+_20Percent.txt", "7ea86479faab5ca2190b7f18b4982fb058ce5bf2b46e0e1017d0d9ef90f9c16e"
)
OFFICIAL_TEST = _text_file(
    "KDDTest+.txt", "fa46b0935342616aa83b7c2578db355b6a7aaabbc492248172c7a1e8b7ab8f84"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Words of shape (records, 3), numbers of shape (records, 38), and labels."""

    words: NDArray[np.str_]
    numbers: Floats
    labels: Labels

    def rows(self, chosen: NDArray[np.int64]) -> "Connections":
        """Some of the records."""
        return Connections(
            words=self.words[chosen], numbers=self.numbers[chosen], labels=self.labels[chosen]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NslKdd:
    """An 80/20 split of the 20 % file, and the official test file."""

    train: Connections
    test: Connections
    official_test: Connections


def load_nsl_kdd(*, seed: int = 1) -> NslKdd:
    """The split by this seed, from wherever the two files are."""
    everything = parse_connections(find_file(TWENTY_PERCENT), TWENTY_PERCENT.name)
    order = np.random.default_rng(seed).permutation(len(everything.labels))
    cut = len(order) * 4 // 5
    return NslKdd(
        train=everything.rows(order[:cut]),
        test=everything.rows(order[cut:]),
        official_test=parse_connections(find_file(OFFICIAL_TEST), OFFICIAL_TEST.name),
    )


def parse_connections(content: bytes, name: str) -> Connections:
    """Lines of 41 features, the name of the attack (or normal) and a difficulty we ignore."""
    try:
        lines = [line.split(",") for line in content.decode("ascii").splitlines() if line]
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not plain text", hint="restore the original file") from error
    if not lines:
        raise InputError(f"{name} is empty", hint="restore the original file")
    for place, line in enumerate(lines, 1):
        if len(line) != FEATURES + 2:
            raise InputError(
                f"line {place} of {name} has {len(line)} columns, expected {FEATURES + 2}",
                hint="restore the original file",
            )
    cells = np.array(lines)
    numeric = [column for column in range(FEATURES) if column not in CATEGORIES]
    try:
        numbers = cells[:, numeric].astype(np.float64)
    except ValueError as error:
        raise InputError(
            f"{name} has words where numbers should be: {error}", hint="restore the original file"
        ) from error
    return Connections(
        words=cells[:, list(CATEGORIES)],
        numbers=numbers,
        labels=(cells[:, FEATURES] != "normal").astype(np.uint8),
    )
