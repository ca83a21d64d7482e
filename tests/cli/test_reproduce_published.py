"""What `dppp reproduce` prints of published parameters is what docs/evidence.md shows."""

import pytest
from tests.cli.commands import json_of, run_dppp
from tests.experiments.published.evidence_page import table_with_columns

from dppp.cli.reproduce import DRAFT_COLUMNS, PATE_COLUMNS


@pytest.mark.parametrize(
    ("command", "columns"), [("pate", PATE_COLUMNS), ("binomial-draft", DRAFT_COLUMNS)]
)
def test_the_page_shows_what_the_command_prints(command, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    result = run_dppp(f"reproduce {command}")
    assert result.returncode == 0, result.stderr
    shown = [" ".join(row).split() for row in table_with_columns(*columns)]
    assert [line.split() for line in result.stdout.splitlines()[1:]] == shown


def test_a_program_is_told_whether_the_draft_is_certified_or_refuted():
    promises = json_of("reproduce binomial-draft")["promises"]
    assert all(promise["is_formula_certified"] for promise in promises)
    assert sum(promise["is_printed_refuted"] for promise in promises) == 2
