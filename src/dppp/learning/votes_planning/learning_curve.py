"""A learning curve: how often one model is right, by the number of records it learned from.

Used to plan votes. A teacher with more votes has smaller shards, and so worse models: the curve
says how much worse. Between its points it is a straight line over the logarithm of the records.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

from dppp.errors import InputError

_EXAMPLE = "write records:accuracy with commas between, e.g. 50:0.80,200:0.88,1000:0.93"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCurve:
    """Points (records, accuracy) in the order of their records; accuracy never falls."""

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        if len(self.points) < 2:
            raise InputError(
                f"a learning curve needs at least two points, got {len(self.points)}", hint=_EXAMPLE
            )
        for records, accuracy in self.points:
            if records < 1:
                raise InputError(
                    f"the learning curve has a point at {records} records; they start at 1",
                    hint=_EXAMPLE,
                )
            if not 0 < accuracy <= 1:
                raise InputError(
                    f"the learning curve has the accuracy {accuracy:g} at {records} records; it "
                    "must be above 0 and at most 1",
                    hint="write 0.8 for 80 %",
                )
        for (fewer, first), (more, second) in pairwise(self.points):
            if more <= fewer:
                raise InputError(
                    f"the learning curve has two points at {more} records", hint="keep one of them"
                )
            if second < first:
                raise InputError(
                    f"the learning curve falls from {first:g} at {fewer} records to {second:g} at "
                    f"{more}",
                    hint="more records should not hurt: give averages of several models",
                )

    def accuracy(self, records: int, *, least: float = 0.0) -> float:
        """Of one model on that many records.

        Past the last point the accuracy stays as it is, which is too low if anything. Below the
        first point the first line goes on, but not below `least`: that is a guess (`covers`).
        """
        (first, lowest), (last, highest) = self.points[0], self.points[-1]
        if records >= last:
            return highest
        if records < first:
            guess = _between(self.points[0], self.points[1], records)
            return min(lowest, max(least, guess))
        left, right = next(pair for pair in pairwise(self.points) if records < pair[1][0])
        return _between(left, right, records)

    def covers(self, records: int) -> bool:
        """Whether the curve was measured on as few records as this; more are no guess."""
        return records >= self.points[0][0]

    def reaches(self, records: int) -> bool:
        """Whether the curve was measured on as many records as this."""
        return records <= self.points[-1][0]


def _between(left: tuple[int, float], right: tuple[int, float], records: int) -> float:
    part = math.log(records / left[0]) / math.log(right[0] / left[0])
    return left[1] + part * (right[1] - left[1])


def parse_curve(text: str) -> LearningCurve:
    """The curve in a text like `50:0.80,200:0.88,1000:0.93`, its points in any order."""
    return LearningCurve(points=tuple(sorted(_point(each) for each in text.split(","))))


def _point(text: str) -> tuple[int, float]:
    records, colon, accuracy = text.partition(":")
    try:
        point = int(records), float(accuracy)
    except ValueError:
        point = None
    if point is None or not colon:
        raise InputError(f"{text.strip()!r} is not a point of a learning curve", hint=_EXAMPLE)
    return point
