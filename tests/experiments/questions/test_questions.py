import csv
from pathlib import Path

import pytest

from dppp.experiments.questions import measure
from dppp.experiments.questions.artefacts import reproduce_questions


def test_labels_and_numbers_against_epsilon_make_a_table_and_two_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [each for each in measure.settings(quick=True) if each.name != "Friedman"]
    monkeypatch.setattr(measure, "settings", lambda **_: small)
    made = reproduce_questions(tmp_path, epsilons=(2.0, 20.0))
    assert [row.measure for row in made.rows] == ["labels right"] * 2 + [
        "root mean squared error"
    ] * 2
    labels, numbers = made.rows[:2], made.rows[2:]
    assert labels[0].private < labels[1].private <= labels[1].in_clear + 0.02
    assert numbers[0].private > numbers[1].private >= numbers[1].in_clear
    assert numbers[1].centralised < numbers[1].always
    with made.table.open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 4
    assert made.figure.is_file()
    assert (tmp_path / "questions-numbers.png").is_file()
    assert "diabetes: better than" in made.summary
