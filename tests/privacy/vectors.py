"""The exact figures that the whole project is held to (tests/vectors)."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from dppp.privacy.noise import Binomial, DiscreteGaussian, Noise, Polya, Skellam

FOLDER = Path(__file__).parent.parent / "vectors"


def rows(name: str) -> Iterator[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def noise_of(row: dict[str, str]) -> Noise:
    shares = int(row["honest_shares"] or 1)
    match row["noise"]:
        case "binomial":
            return Binomial(total_tosses=int(row["parameter"]), shares=shares)
        case "discrete-gaussian":
            return DiscreteGaussian(share_sigma=float(row["parameter"]), shares=shares)
        case "skellam":
            return Skellam(share_variance=float(row["parameter"]) / shares, shares=shares)
        case _:
            return Polya(shape=float(row["shape"]), ratio=_ratio(row["parameter"]), shares=shares)


def _ratio(text: str) -> float:
    """A number, or exp(-a/b) as the file spells it."""
    if text.startswith("exp("):
        above, below = text[4:-1].split("/")
        return math.exp(float(above) / float(below))
    return float(text)
