import csv
import functools
from pathlib import Path

import pytest
from tests.cli.commands import json_of

from dppp.experiments.questions import artefacts, measure


def test_labels_and_numbers_against_epsilon_make_a_table_and_two_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [each for each in measure.settings(quick=True) if each.name != "Friedman"]
    one = functools.partial(artefacts.reproduce_questions, epsilons=(20.0,))
    monkeypatch.setattr(measure, "settings", lambda **_: small)
    monkeypatch.setattr(artefacts, "reproduce_questions", one)
    made = json_of(f"reproduce questions --quick --out {tmp_path}")
    labels, numbers = made["rows"]
    assert (labels["measure"], numbers["measure"]) == ("labels right", "root mean squared error")
    assert labels["always"] < labels["private"] <= labels["in_clear"] + 0.02
    assert numbers["private"] >= numbers["in_clear"]
    assert numbers["centralised"] < numbers["always"]
    with Path(made["csv"]).open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 2
    assert Path(made["png"]).is_file()
    assert (tmp_path / "questions-numbers.png").is_file()
    assert "diabetes: better than" in made["shows"]
