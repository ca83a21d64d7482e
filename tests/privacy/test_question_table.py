"""The table of least variances in docs/privacy.md is what the command prints."""

from pathlib import Path

import pytest

from dppp.privacy.noise import FAMILIES
from dppp.privacy.question_table import QUERIES, QUESTIONS, least_variance

PRIVACY = (Path(__file__).parents[2] / "docs" / "privacy.md").read_text(encoding="utf-8")


def cells(question: str, noise: str) -> list[str]:
    (line,) = (
        each for each in PRIVACY.splitlines() if each.startswith(f"| {question} | {noise} |")
    )
    return [cell.strip().strip("*") for cell in line.strip("|").split("|")][2:]


def test_every_question_and_family_has_a_cell_for_every_number_of_queries() -> None:
    for question in QUESTIONS:
        for noise in FAMILIES:
            assert len(cells(question, noise)) == len(QUERIES)


# The cells of more queries take seconds each; the numbers in 100 steps are wide.
@pytest.mark.parametrize("noise", ["skellam", "polya"])
@pytest.mark.parametrize("question", ["one of 10 classes", "3 of 10 labels"])
def test_the_quick_cells_are_as_the_page_has_them(question: str, noise: str) -> None:
    for place, queries in enumerate((1, 10)):
        found = least_variance(question, noise, queries)
        assert found == pytest.approx(
            float(cells(question, noise)[place].replace(",", "")), rel=1e-3
        )
