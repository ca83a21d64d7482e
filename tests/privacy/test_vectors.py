"""Every row of tests/vectors, which came with the project's specification."""

import pytest
from tests.privacy.vectors import noise_of, rows

from dppp.privacy.accounting import Spending, account
from dppp.privacy.divergence import delta_at

PRIVACY = list(rows("privacy.csv"))
COMPOSITION = list(rows("composition.csv"))


@pytest.mark.parametrize("row", PRIVACY, ids=lambda row: row["id"])
def test_the_exact_delta_is_the_vector_and_never_below(row: dict[str, str]) -> None:
    expected = float(row["exact_delta"])
    found = delta_at(noise_of(row), float(row["epsilon"]), scope=row["scope"])
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert found >= expected * (1 - 1e-12)
    assert (found <= float(row["delta"])) == (row["within_promise"] == "True")


@pytest.mark.parametrize(
    "row", [row for row in PRIVACY if row["sum_variance"]], ids=lambda row: row["id"]
)
def test_the_variance_of_the_sum_is_the_vector(row: dict[str, str]) -> None:
    assert noise_of(row).variance == pytest.approx(float(row["sum_variance"]), rel=1e-7)


@pytest.mark.parametrize("row", COMPOSITION, ids=lambda row: f"{row['noise']}-{row['queries']}")
def test_composed_epsilon_lies_in_the_accepted_range(row: dict[str, str]) -> None:
    spending = Spending(noise=noise_of(row), queries=int(row["queries"]))
    found = account([spending], float(row["delta"]))
    assert float(row["accept_low"]) <= found <= float(row["accept_high"])
    assert found == pytest.approx(float(row["epsilon"]), rel=1e-4)


def test_the_vectors_are_all_there() -> None:
    assert (len(PRIVACY), len(COMPOSITION)) == (28, 9)
