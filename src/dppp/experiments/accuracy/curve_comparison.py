"""Curves taken from the rows of a figure, compared point by point, and summed up in a sentence.

Means of repetitions differ by chance, so one is above another only past four standard errors. The
chance is that of the noise: one ensemble was trained for each dataset. Used by claims and figures.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dppp.errors import InputError
from dppp.experiments.accuracy.curves import Row
from dppp.experiments.teachers.stored_votes import StoredVotes
from dppp.privacy.paper_calibration import PAPER_FAMILIES

COMPARABLE = 0.02
"""Points of accuracy, over 100; the paper does not say what it means by the word."""
STANDARD_ERRORS = 4
CALIBRATIONS = ("paper", "certified")
"""What every comparison is made with."""
GAMMAS = {"1": 1.0, "2/3": 2 / 3}
"""Parts of the teachers that are honest, by the words for them."""

Curve = tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """At how many points one curve is above another, below it, or too close to tell."""

    above: int
    tied: int
    below: int
    largest_lead: float
    largest_lag: float

    def __str__(self) -> str:
        return (
            f"above at {self.above}, too close to tell at {self.tied}, below at {self.below} of "
            f"{self.above + self.tied + self.below} points; difference "
            f"{-100 * self.largest_lag:+.1f} to {100 * self.largest_lead:+.1f} points of accuracy"
        )

    @property
    def is_above(self) -> bool:
        """Never below, and above at half of the points or more."""
        return self.below == 0 and 2 * self.above >= self.above + self.tied


def compare(one: Curve, other: Curve) -> Comparison:
    """Point by point, at the same ε and δ."""
    if [(row.epsilon, row.delta) for row in one] != [(row.epsilon, row.delta) for row in other]:
        raise InputError(
            "two curves can be compared only at the same points", hint="measure both there"
        )
    pairs = list(zip(one, other, strict=True))
    leads = [a.accuracy_mean - b.accuracy_mean for a, b in pairs]
    above = sum(_is_above(a, b) for a, b in pairs)
    below = sum(_is_above(b, a) for a, b in pairs)
    return Comparison(
        above=above,
        tied=len(pairs) - above - below,
        below=below,
        largest_lead=max(leads),
        largest_lag=max(-lead for lead in leads),
    )


def mean_lead(one: Curve, other: Curve) -> tuple[float, float]:
    """How far one curve is above another on average, and the standard error of that."""
    pairs = list(zip(one, other, strict=True))
    lead = sum(a.accuracy_mean - b.accuracy_mean for a, b in pairs) / len(pairs)
    squares = sum(_squared_error(a) + _squared_error(b) for a, b in pairs)
    return lead, math.sqrt(squares) / len(pairs)


def curve(
    rows: Iterable[Row], framework: str, noise: str, calibration: str, honest: float | None = None
) -> Curve:
    """The points of one curve, in their order."""
    wanted = (framework, noise, calibration)
    found = tuple(
        row
        for row in rows
        if row.curve[:3] == wanted and _is_close(row.honest_fraction or 0, honest or 0)
    )
    if not found:
        raise InputError(f"there are no rows of {' '.join(wanted)}", hint="reproduce them first")
    return found


def comparable_from(rows: Sequence[Row], private: Curve) -> float | None:
    """The smallest ε from which on a curve stays within `COMPARABLE` of the distributed one."""
    distributed = only_row(rows, "distributed").accuracy_mean
    smallest = None
    for row in reversed(private):
        if distributed - row.accuracy_mean > COMPARABLE:
            break
        smallest = row.epsilon
    return smallest


def dppp_curves(rows: Sequence[Row], calibration: str) -> dict[str, Curve]:
    """DPPP by name: both noises of the paper at both γ, or the best certified at both γ."""
    if calibration == "paper":
        return {
            f"{noise}, γ = {word}": curve(rows, "dppp", noise, "paper", honest)
            for noise in PAPER_FAMILIES
            for word, honest in GAMMAS.items()
        }
    return {
        f"best family, γ = {word}": curve(rows, "dppp-best", "best", "exact", honest)
        for word, honest in GAMMAS.items()
    }


def only_row(rows: Iterable[Row], framework: str) -> Row:
    """The row of a framework that promises nothing."""
    return curve(rows, framework, "none", "none")[0]


def spread_of(points: Curve) -> float:
    """From the lowest mean to the highest."""
    means = [row.accuracy_mean for row in points]
    return max(means) - min(means)


def summarise_epsilon(votes: StoredVotes, rows: Sequence[Row]) -> str:
    """One sentence: where DPPP reaches the plurality, and what has no certificate."""
    best = dppp_curves(rows, "certified")["best family, γ = 2/3"]
    binomial = dppp_curves(rows, "paper")["binomial, γ = 2/3"]
    starts = [comparable_from(rows, each) for each in (best, binomial)]
    words = ["nowhere" if start is None else f"from ε = {start:g}" for start in starts]
    plurality = only_row(rows, "distributed").accuracy_mean
    bad = sum(
        not row.certified
        for row in rows
        if (row.framework, row.noise, row.calibration) == ("dppp", "discrete-gaussian", "paper")
    )
    return (
        f"One teacher is right in {votes.teacher_accuracy:.1%} of the records, the plurality of "
        f"{votes.teachers} in {plurality:.1%}. Certified DPPP (γ = 2/3) comes within "
        f"{100 * COMPARABLE:.0f} points of that {words[0]}, the paper's binomial noise {words[1]}; "
        f"the paper's discrete Gaussian has no certificate at {bad} of its {2 * len(best)} points."
    )


def summarise_delta(by_epsilon: Sequence[Row], by_delta: Sequence[Row], epsilon: float) -> str:
    """One sentence: how far ε and δ move accuracy."""
    parts = []
    for calibration in CALIBRATIONS:
        varied_epsilon = dppp_curves(by_epsilon, calibration)
        for name, varied_delta in dppp_curves(by_delta, calibration).items():
            by_one, by_other = spread_of(varied_epsilon[name]), spread_of(varied_delta)
            parts.append(f"{100 * by_one:.1f} points and {100 * by_other:.1f} ({name})")
    return f"How far ε moves accuracy, and δ at ε = {epsilon:g}: {'; '.join(parts)}."


def is_rising(points: Curve) -> bool:
    """The last point is above the first, and no point is below the one before it."""
    return _is_above(points[-1], points[0]) and not any(
        _is_above(before, after) for before, after in itertools.pairwise(points)
    )


def _is_above(one: Row, other: Row) -> bool:
    lead, error = mean_lead((one,), (other,))
    return lead > STANDARD_ERRORS * error


def _squared_error(row: Row) -> float:
    """Of the mean; what one repetition is worth cannot be told from itself."""
    if row.repetitions < 2:
        return math.inf
    return row.accuracy_std**2 / row.repetitions


def _is_close(one: float, other: float) -> bool:
    return abs(one - other) < 1e-9
