"""What a budget buys where the question is a number or several labels, before there are any votes.

A number: what the noise adds to the mean of all votes. Labels: how likely a label is released
rightly that has a given share of the votes more, or fewer, than it takes. Both are computed from
the noise of all teachers' shares, and nothing is sampled.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dppp.errors import InputError
from dppp.learning.choosing_votes import votes_for_noise
from dppp.learning.label_verdict import chances_of_release
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate
from dppp.protocol.question import Question
from dppp.whole_numbers import require_whole

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
MARGINS = (0.05, 0.1, 0.2, 0.3)
"""How far the share of the votes is from the one that it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOutlook:
    """What one ε and one number of votes mean."""

    epsilon: float
    votes: int
    """Of each teacher."""
    noise: str
    variance: float
    standard_error: float | None = None
    """Of a number, in its own unit."""
    part_of_range: float | None = None
    released_rightly: tuple[float, ...] = ()
    """Of a label, for each of the margins: the smaller chance of those above and below."""

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPlan:
    """Every ε and number of votes, and the votes that the rule asks for at each ε."""

    question: Question
    teachers: int
    queries: int
    delta: float
    outlooks: tuple[QuestionOutlook, ...]
    votes_wanted: tuple[tuple[float, int], ...]

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {
            "question": self.question.kind,
            "teachers": self.teachers,
            "queries": self.queries,
            "delta": self.delta,
            "margins": list(MARGINS) if self.question.kind == "labels" else [],
            "outlooks": [each.to_json() for each in self.outlooks],
            "votes_wanted": {f"{epsilon:g}": votes for epsilon, votes in self.votes_wanted},
        }


def plan_question(
    question: Question,
    *,
    teachers: int,
    labels: int = 1,
    votes: Sequence[int] = (1, 5, 20),
    epsilons: Sequence[float] = EPSILONS,
    delta: float = 1e-5,
    queries: int = 100,
    colluders: int | None = None,
    dropouts: int | None = None,
) -> QuestionPlan:
    """What to expect of a question of a number, or of some of so many labels.

    >>> from dppp.protocol.question import Question
    >>> made = plan_question(
    ...     Question.of_number(low=0, high=40), teachers=20, votes=(10,), epsilons=(8,), queries=10
    ... )
    >>> 0 < made.outlooks[0].part_of_range < 0.05
    True
    """
    if question.kind == "choice":
        raise InputError("a plan for one of several classes is made from votes", hint="see plan")
    for each in votes:
        require_whole("votes", each)
    outlooks, wanted = [], []
    for epsilon in epsilons:
        certificate = calibrate(
            "auto",
            epsilon=epsilon,
            delta=delta,
            teachers=teachers,
            queries=queries,
            colluders=colluders,
            dropouts=dropouts,
            classes=labels,
            max_labels=question.most_labels or None,
            levels=question.levels or None,
        )
        outlooks += [_outlook(question, certificate, teachers, each) for each in votes]
        wanted.append((epsilon, votes_for_noise(certificate.noise, teachers, question)))
    return QuestionPlan(
        question=question,
        teachers=teachers,
        queries=queries,
        delta=delta,
        outlooks=tuple(outlooks),
        votes_wanted=tuple(wanted),
    )


def chance_released_rightly(
    question: Question, certificate: Certificate, *, votes: int, margin: float
) -> float:
    """Of a label with this share of all votes beyond, or short of, the share that it takes.

    The smaller of both; shares are kept within 0 and 1, and counts are rounded towards the share.
    """
    noise = certificate.noise.of_teachers(certificate.trust.teachers)
    least = question.least_count(votes)
    above = math.floor(min(1.0, question.share + margin) * votes + 1e-9)
    below = math.ceil(max(0.0, question.share - margin) * votes - 1e-9)
    released, kept = chances_of_release(np.array([above - least, below - least]), noise)
    return float(min(released, 1 - kept))


def _outlook(
    question: Question, certificate: Certificate, teachers: int, votes: int
) -> QuestionOutlook:
    noise, total = certificate.noise, teachers * votes
    epsilon = certificate.promise.epsilon
    if question.kind == "number":
        error = question.standard_error(noise.of_teachers(teachers).variance, total)
        return QuestionOutlook(
            epsilon=epsilon,
            votes=votes,
            noise=noise.name,
            variance=noise.variance,
            standard_error=error,
            part_of_range=error / (question.high - question.low),
        )
    return QuestionOutlook(
        epsilon=epsilon,
        votes=votes,
        noise=noise.name,
        variance=noise.variance,
        released_rightly=tuple(
            chance_released_rightly(question, certificate, votes=total, margin=margin)
            for margin in MARGINS
        ),
    )
