"""What is expected of votes from shards of a size: from a learning curve, or measured.

`plan_votes` asks for a forecast for each number of votes; where it comes from is a *source*.
"""

from dataclasses import dataclass
from typing import Protocol

from dppp.learning.votes_planning.correlated_votes import CorrelatedVotes
from dppp.learning.votes_planning.learning_curve import LearningCurve
from dppp.learning.win_probability import ObservedVotes
from dppp.whole_numbers import keep_whole

CORRELATION = 0.6
"""Of two models' errors, where nothing was measured (docs/usage.md says where it comes from)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecast:
    """Votes of models that learned from one shard each."""

    votes: CorrelatedVotes | ObservedVotes
    accuracy_single: float
    correlation: float | None
    """Of the errors of two models; None where there are no errors."""
    shards_measured: int | None = None
    """Shards of a public table that voted; None where nothing was measured."""
    is_guess: bool = False
    """The shards are smaller than any that the learning curve was measured on."""
    is_flat: bool = False
    """The shards are larger than any of the learning curve, and taken to be no better."""


class VoteSource(Protocol):
    """Where forecasts come from."""

    @property
    def classes(self) -> int:
        """Classes to vote on."""

    @property
    def records(self) -> int:
        """Records of each teacher."""

    @property
    def accuracy_majority(self) -> float | None:
        """Of always saying the most frequent class, where it is known."""

    @property
    def held_out(self) -> int | None:
        """Records that the forecasts were measured on; None where nothing was measured."""

    def forecast(self, votes: int, teachers: int) -> Forecast | None:
        """For this many votes of each of so many teachers; None if it cannot be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveSource:
    """Forecasts from a learning curve and an assumed correlation."""

    curve: LearningCurve
    records: int
    classes: int = 2
    correlation: float = CORRELATION
    accuracy_majority: float | None = None
    held_out: int | None = None

    def __post_init__(self) -> None:
        keep_whole(self, "records")
        keep_whole(self, "classes", least=2)
        CorrelatedVotes(accuracy=1.0, correlation=self.correlation, classes=self.classes)

    def forecast(self, votes: int, teachers: int) -> Forecast:  # noqa: ARG002 - any number of them
        """From the curve at the size of a shard."""
        shard = max(1, self.records // votes)
        accuracy = self.curve.accuracy(shard, least=1 / self.classes)
        return Forecast(
            votes=CorrelatedVotes(
                accuracy=accuracy, correlation=self.correlation, classes=self.classes
            ),
            accuracy_single=accuracy,
            correlation=self.correlation,
            is_guess=not self.curve.covers(shard),
            is_flat=not self.curve.reaches(shard),
        )
