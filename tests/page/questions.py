"""Small federations that ask for labels or for a number, whose right answers are known."""

from collections.abc import Sequence
from typing import Any

from tests.small_federation import kept_certificate

from dppp.federation import Parties, create_federation
from dppp.protocol.question import Question

TEACHERS = 5
FEATURES = ("weight", "age")
SIGNS = ("fever", "cough", "rash", "pain")
LOW, HIGH, STEPS = 0.0, 2_000.0, 40
VOTES = 20
"""Of each teacher: a hundred in all stand well above the noise."""


def ask_of_labels() -> Parties:
    """Fever where the weight is above 1, cough where the age is; a row of zeros has no label."""

    def predict(rows: Any) -> list[list[int]]:
        return [[place for place in (0, 1) if row[place] > 1] for row in rows]

    return _found("Ward", Question.of_labels(most_labels=2), SIGNS, predict, max_labels=2)


def ask_of_number() -> Parties:
    """A dose: ten times the weight."""

    def predict(rows: Any) -> list[float]:
        return [10 * float(row[0]) for row in rows]

    question = Question.of_number(low=LOW, high=HIGH, levels=STEPS)
    return _found("Dose", question, ("dose in mg",), predict, levels=STEPS)


def _found(
    name: str, question: Question, names: Sequence[str], predict: Any, **kind: int
) -> Parties:
    counts = {"classes": len(names)} if question.kind == "labels" else {}
    certificate = kept_certificate(
        "skellam",
        epsilon=20,
        delta=1e-4,
        teachers=TEACHERS,
        colluders=1,
        queries=20,
        **counts,
        **kind,
    )
    return create_federation(
        name=name,
        class_names=names,
        features=FEATURES,
        certificate=certificate,
        models=[[predict] * VOTES] * TEACHERS,
        question=question,
    )
