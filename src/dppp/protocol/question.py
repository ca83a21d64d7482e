"""The question of a task: what one model says about a row, and what is released of all of them.

- `choice`: one of the task's classes. A vote is one class; the class with the largest noisy count
  is released, and whoever wants the k largest has them (`top_classes`).
- `labels`: some of the task's labels. A vote is at most `most_labels` of them, and whatever a model
  says beyond that is cut off; each label is released whose noisy count is at least `share` of the
  votes.
- `number`: a number between `low` and `high`. A vote is one of `levels` + 1 even steps; the mean of
  the votes is released, with the standard error that the noise gives it.

The names of a task's classes name its counts: the classes, the labels, or the one number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from dppp.errors import TaskError
from dppp.privacy.change import ONE_OF_CLASSES, Change, change_of
from dppp.whole_numbers import require_whole

KINDS = ("choice", "labels", "number")

DEFAULT_SHARE = 0.5
DEFAULT_LEVELS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One of the three kinds; the fields of the others are 0."""

    kind: str = "choice"
    most_labels: int = 0
    share: float = 0.0
    low: float = 0.0
    high: float = 0.0
    levels: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise TaskError(
                f"a question is of the kind {', '.join(KINDS[:-1])} or {KINDS[-1]}, not "
                f"{self.kind!r}"
            )
        _require_none_of(self, {"most_labels", "share"} if self.kind != "labels" else set())
        _require_none_of(self, {"low", "high", "levels"} if self.kind != "number" else set())
        if self.kind == "labels":
            require_whole("most_labels", self.most_labels, least=1)
            if not 0 < self.share < 1:
                raise TaskError(
                    f"a label is released from a share of the votes on, between 0 and 1, not "
                    f"{self.share}",
                    hint="0.5 is half of the votes",
                )
        if self.kind == "number":
            _require_range(self.low, self.high)
            change_of(classes=1, levels=self.levels)

    @classmethod
    def of_labels(cls, *, most_labels: int, share: float = DEFAULT_SHARE) -> Self:
        """Some of the labels, at most so many in a vote."""
        return cls(kind="labels", most_labels=most_labels, share=float(share))

    @classmethod
    def of_number(cls, *, low: float, high: float, levels: int = DEFAULT_LEVELS) -> Self:
        """A number between these two, in so many steps."""
        return cls(kind="number", low=float(low), high=float(high), levels=levels)

    def change(self, counts: int) -> Change:
        """What one vote can do to this many counts; refuses a number of counts that cannot be."""
        if self.kind == "number":
            if counts != 1:
                raise TaskError(
                    f"a number has one count, with one name, not {counts}",
                    hint="give the name of the number alone",
                )
            return change_of(classes=1, levels=self.levels)[1]
        if counts < 2:
            raise TaskError(
                f"a question of {self.kind} needs at least two names, not {counts}",
                hint="name every class or label that can be asked for",
            )
        if self.kind == "choice":
            return ONE_OF_CLASSES
        return change_of(classes=counts, max_labels=self.most_labels)[1]

    @property
    def largest_entry(self) -> int:
        """The most that one vote adds to one count."""
        return self.levels if self.kind == "number" else 1

    @property
    def largest_total(self) -> int:
        """The most that one vote adds to all counts of a query together."""
        return {"choice": 1, "labels": self.most_labels, "number": self.levels}[self.kind]

    @property
    def middle_level(self) -> int:
        """What a failed model votes where the question is a number: public, so it tells nothing."""
        return self.levels // 2

    def level_of(self, value: float) -> int:
        """The step next to a number, halves upwards; what lies outside the range is clipped."""
        clipped = min(max(float(value), self.low), self.high)
        return math.floor((clipped - self.low) / (self.high - self.low) * self.levels + 0.5)

    def mean_of(self, count: int, votes: int) -> float:
        """The number that a noisy count over so many votes stands for, clipped to the range."""
        mean = self.low + (self.high - self.low) * (count / (self.levels * votes))
        return min(max(mean, self.low), self.high)

    def standard_error(self, variance: float, votes: int) -> float:
        """What noise of this variance in the count adds to the mean of so many votes."""
        return (self.high - self.low) * math.sqrt(variance) / (self.levels * votes)

    def least_count(self, votes: int) -> int:
        """The noisy count from which on a label is released."""
        return math.ceil(self.share * votes)

    def describe(self, names: Sequence[str]) -> str:
        """What is asked, in words."""
        if self.kind == "choice":
            return f"one of {len(names)} classes"
        if self.kind == "labels":
            return (
                f"some of {len(names)} labels: at most {self.most_labels} in a vote, released "
                f"from {self.share:.0%} of the votes on"
            )
        return (
            f"a number, {names[0]}, from {self.low:g} to {self.high:g} in {self.levels} steps; a "
            "model that fails votes for the middle"
        )


def top_classes(counts: Sequence[int], how_many: int) -> tuple[int, ...]:
    """The classes of the largest counts, largest first; equal counts in the order of the classes.

    Counts are released anyway, so this costs nothing.
    """
    require_whole("how_many", how_many, least=1)
    order = sorted(range(len(counts)), key=lambda place: (-counts[place], place))
    return tuple(order[:how_many])


def _require_range(low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise TaskError(
            f"a number lies between two finite bounds, the lower one first, not {low} and {high}",
            hint="take bounds from public knowledge, never from the records",
        )
    if not math.isfinite(high - low):
        raise TaskError(f"the bounds {low} and {high} are too far apart to be computed with")


def _require_none_of(question: Question, names: set[str]) -> None:
    for name in sorted(names):
        if getattr(question, name):
            raise TaskError(f"a question of the kind {question.kind} has no {name}")


CHOICE = Question()
