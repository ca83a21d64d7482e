"""What is asked of the teachers' models, and how their answers compare with what is true.

Used by both estimators: the question, the names of its counts, and for each kind of question how a
model is asked, what is true of a record, and what somebody says who knows no more than the training
labels.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.learning.label_verdict import LabelsHeldOut
from dppp.learning.number_verdict import NumbersHeldOut
from dppp.learning.question_models import as_answering
from dppp.learning.verdict import HeldOut, Seen
from dppp.privacy.change import MOST_LEVELS
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.votes import Predict, cast_votes


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and the labels of y that its counts stand for: one for each count."""

    question: Question = CHOICE
    names: tuple[Any, ...]

    @property
    def counts(self) -> int:
        """Of one query."""
        return len(self.names)

    def predict_of(self, model: object) -> Predict:
        """What asks this model for votes."""
        return as_answering(model, self.names, self.question)

    def truth_of(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Labels of records as verdicts have them: class numbers, zeros and ones, or numbers."""
        if self.question.kind != "choice":
            return labels
        names = np.array(self.names)
        truth = np.searchsorted(names, labels)
        if np.any(names[np.minimum(truth, len(names) - 1)] != labels):
            raise InputError(
                "a label does not occur among the training labels",
                hint=f"the classes are {', '.join(map(str, self.names[:8]))}",
            )
        return truth

    def usual_of(self, truth: NDArray[Any]) -> Any:
        """The majority class, the labels of most records, or the mean."""
        if self.question.kind == "labels":
            return (truth.mean(axis=0) >= self.question.share).astype(np.int64)
        if self.question.kind == "number":
            return float(np.clip(truth, self.question.low, self.question.high).mean())
        return int(np.bincount(truth).argmax())

    def cast(self, model: Predict, rows: Any) -> NDArray[np.int64]:
        """A model's vote in the clear, a row for each record."""
        return cast_votes(model, rows, self.counts, question=self.question)

    def cast_alone(self, model: Predict, rows: Any) -> NDArray[np.int64]:
        """What a teacher's own model says to it: no label cut off, and in the finest steps."""
        question = self.question
        if question.kind == "labels":
            question = replace(question, most_labels=self.counts)
        if question.kind == "number":
            question = replace(question, levels=MOST_LEVELS)
        return cast_votes(model, rows, self.counts, question=question)

    def see(
        self,
        *,
        votes: NDArray[np.int64],
        cast: NDArray[np.int64],
        alone: NDArray[np.int64] | None,
        truth: NDArray[Any],
        usual: Any,
        known: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    ) -> Seen:
        """What was seen of records: counts, votes cast, and what own models say, by teacher.

        `known` are teachers and records where the own model was trained on the record.
        """
        quality = np.zeros(votes.shape[:2])
        if alone is not None:
            quality = self._quality_of(alone, truth, usual)
            if known is not None:
                quality[known] = np.nan
        if self.question.kind == "labels":
            return LabelsHeldOut(
                question=self.question,
                votes=votes,
                cast=cast,
                truth=truth,
                usual=usual,
                alone=quality,
            )
        if self.question.kind == "number":
            return NumbersHeldOut(
                question=self.question,
                votes=votes,
                cast=cast,
                truth=truth,
                usual=usual,
                alone=quality,
            )
        return HeldOut(votes=votes, labels=truth, majority=usual, alone=quality)

    def _quality_of(self, alone: NDArray[np.int64], truth: NDArray[Any], usual: Any) -> Any:
        if self.question.kind == "labels":
            return LabelsHeldOut.quality(alone, truth)
        if self.question.kind == "number":
            low, high = self.question.low, self.question.high
            said = low + (high - low) * alone[:, :, 0] / MOST_LEVELS
            return NumbersHeldOut.quality(said, truth, usual)
        return alone[:, np.arange(len(truth)), truth].astype(np.float64)
