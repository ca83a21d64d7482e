"""How many votes each teacher casts: a given number, or one worked out from public numbers.

Used by the estimator, by `dppp train` and by the ceremony, so that all of them choose alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dppp.errors import InputError
from dppp.privacy.noise import Noise
from dppp.protocol.question import CHOICE, Question
from dppp.whole_numbers import require_whole

RECORDS_PER_CLASS = 15
"""In a shard, on average, when the number of votes is chosen here: a model needs some to learn."""

RECORDS_FOR_NUMBER = 30
"""The same where the question is a number."""

STANDARD_ERROR = 0.03
"""Of the mean, as a part of the range: the most that noise should add to a number."""

_DEVIATIONS = 5
"""Votes in all, in standard deviations of the noise: enough that a clear majority is seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesChosen:
    """How many votes each teacher casts, and a sentence that says why."""

    per_teacher: tuple[int, ...]
    reason: str

    @property
    def total(self) -> int:
        """The votes of all teachers."""
        return sum(self.per_teacher)

    def __str__(self) -> str:
        return self.reason


def choose_votes(
    votes: object,
    *,
    unit: str,
    noise: Noise,
    records: Sequence[int],
    classes: int,
    question: Question = CHOICE,
) -> VotesChosen:
    """Votes for teachers with so many records: a given number, or "auto" from public numbers only.

    Automatic: enough votes that all of them together are five standard deviations of the noise in
    a count, but on average at least 15 records per class or label in a shard, and at least one
    vote. For a number: so many that noise adds 3 % of the range to the mean, but at least 30
    records in a shard.
    """
    teachers = len(records)
    if unit == "teacher":
        if votes not in ("auto", 1):
            raise InputError(
                f"with the unit teacher everybody casts one vote, not {votes}: the noise hides one",
                hint="take the unit record or person, or one vote",
            )
        reason = "1 vote per teacher, since the promise covers everything that a teacher has"
        return VotesChosen(per_teacher=(1,) * teachers, reason=reason)
    if votes != "auto":
        given = require_votes(votes)
        if given > max(records):
            raise InputError(
                f"{given:,} votes of a teacher are more than the records of any, at most "
                f"{max(records):,}",
                hint="a model needs records: give fewer votes, or auto",
            )
        return VotesChosen(
            per_teacher=(given,) * teachers, reason=f"{_count(given)} per teacher, as was asked"
        )
    wanted = votes_for_noise(noise, teachers, question)
    chosen = votes_for_records(wanted, records, classes, question)
    reason = _why(chosen, wanted, noise, classes, question)
    return VotesChosen(per_teacher=chosen, reason=reason)


def votes_for_records(
    wanted: int, records: Sequence[int], classes: int, question: Question = CHOICE
) -> tuple[int, ...]:
    """As many as are wanted, or as a teacher's records allow; at least one vote of each."""
    least = RECORDS_FOR_NUMBER if question.kind == "number" else RECORDS_PER_CLASS * classes
    return tuple(max(1, min(wanted, count // least)) for count in records)


def votes_for_noise(noise: Noise, teachers: int, question: Question = CHOICE) -> int:
    """Of each teacher, so that all together are five deviations of the noise in a whole tally.

    For a number: so that the standard error of the mean is 3 % of the range.
    """
    deviations = _DEVIATIONS * _deviation(noise, teachers)
    if question.kind == "number":
        deviations = _deviation(noise, teachers) / question.levels / STANDARD_ERROR
    return max(1, math.ceil(deviations / teachers))


def _deviation(noise: Noise, teachers: int) -> float:
    return math.sqrt(noise.of_teachers(teachers).variance)


def require_votes(votes: object) -> int:
    """A number of votes that somebody gave."""
    if isinstance(votes, str):
        raise InputError(
            f"votes must be 'auto' or a number from 1 up, got {votes!r}", hint="leave it out"
        )
    return require_whole("votes", votes, least=1)


def _why(
    chosen: tuple[int, ...], wanted: int, noise: Noise, classes: int, question: Question
) -> str:
    low, high = min(chosen), max(chosen)
    deviation, teachers = _deviation(noise, len(chosen)), len(chosen)
    rule = (
        f"{_DEVIATIONS} standard deviations of the noise in a count ({deviation:.1f} votes) shared "
        f"by {teachers} teachers take {_count(wanted)} of each"
    )
    shard = f"{RECORDS_PER_CLASS} records for each of {classes} "
    shard += "labels" if question.kind == "labels" else "classes"
    if question.kind == "number":
        rule = (
            f"a standard error of {STANDARD_ERROR:.0%} of the range from the noise in the sum "
            f"({deviation / question.levels:.1f} votes) takes {_count(wanted)} of each of "
            f"{teachers} teachers"
        )
        shard = f"{RECORDS_FOR_NUMBER} records"
    if low == wanted:
        return f"{_count(wanted)} per teacher: {rule}"
    numbers = _count(low) if low == high else f"{low} to {_count(high)}"
    return (
        f"{numbers} per teacher: {rule}, but a shard should hold {shard}, and "
        f"{'no teacher has' if high < wanted else 'some lack'} the records for that"
    )


def _count(votes: int) -> str:
    return f"{votes} vote" if votes == 1 else f"{votes} votes"
