"""The least variance of every family for every kind of question: the table of docs/privacy.md.

`python -m dppp.privacy.question_table` prints it; a test holds the quick cells to what is printed.
"""

from dppp.errors import UncertifiedError
from dppp.privacy.calibration import calibrate
from dppp.privacy.noise import FAMILIES

TEACHERS, COLLUDERS, DROPOUTS = 250, 50, 25
EPSILON, DELTA = 1.0, 1e-5
QUERIES = (1, 10, 100, 1_000)
QUESTIONS: dict[str, dict[str, int]] = {
    "one of 10 classes": {"classes": 10},
    "3 of 10 labels": {"classes": 10, "max_labels": 3},
    "a number in 100 steps": {"classes": 1, "levels": 100},
}


def least_variance(question: str, noise: str, queries: int) -> float | None:
    """Of the noise in a count; None where the family cannot be certified."""
    try:
        certificate = calibrate(
            noise,
            epsilon=EPSILON,
            delta=DELTA,
            teachers=TEACHERS,
            colluders=COLLUDERS,
            dropouts=DROPOUTS,
            queries=queries,
            **QUESTIONS[question],  # type: ignore[arg-type]
        )
    except UncertifiedError:
        return None
    return certificate.noise.variance


def table_row(question: str, noise: str) -> str:
    """A line of Markdown."""
    found = [least_variance(question, noise, queries) for queries in QUERIES]
    cells = [
        "—" if each is None else f"{each:,.4g}" if each < 1e4 else f"{each:,.0f}" for each in found
    ]
    return f"| {question} | {noise} | {' | '.join(cells)} |"


if __name__ == "__main__":
    for each in QUESTIONS:
        for family in FAMILIES:
            print(table_row(each, family), flush=True)
