"""Rows of the figures: a rerun agrees, a table holds them, figures say what is not certified."""

import csv

import pytest
from tests.experiments.tables import made_up_votes

from dppp.errors import InputError
from dppp.experiments.accuracy.curves import accuracy_by_delta, accuracy_by_epsilon
from dppp.experiments.figures import PANELS, draw_accuracy, draw_curve, new_figure
from dppp.experiments.tables import write_table

COLUMNS = (
    "framework,noise,calibration,honest_fraction,epsilon,delta,certified,accuracy_mean,"
    "accuracy_std,repetitions"
)


@pytest.fixture(scope="module")
def votes():
    return made_up_votes(teachers=20, records=50, classes=2)


@pytest.fixture(scope="module")
def rows(votes):
    return accuracy_by_epsilon(votes, epsilons=(0.1, 1.0), repetitions=3)


def test_a_rerun_with_the_same_seed_agrees_and_with_another_does_not(votes, rows):
    assert accuracy_by_epsilon(votes, epsilons=(0.1, 1.0), repetitions=3) == rows
    assert accuracy_by_epsilon(votes, epsilons=(0.1, 1.0), repetitions=3, seed=2) != rows


def test_a_row_does_not_depend_on_which_others_are_asked_for(votes, rows):
    alone = accuracy_by_epsilon(votes, epsilons=(1.0,), repetitions=3)
    assert alone == [row for row in rows if row.epsilon in (None, 1.0)]


def test_a_table_has_the_columns_that_were_agreed_on_and_every_value(rows, tmp_path):
    path = write_table(rows, tmp_path / "rows.csv")
    assert path.read_text().splitlines()[0] == COLUMNS
    with path.open() as file:
        lines = list(csv.DictReader(file))
    assert [line["epsilon"] for line in lines] == [str(row.epsilon or "") for row in rows]
    assert [float(line["accuracy_mean"]) for line in lines] == [row.accuracy_mean for row in rows]
    assert [line["certified"] == "true" for line in lines] == [row.certified for row in rows]
    assert {line["certified"] for line in lines} == {"true", "false"}


def test_a_table_that_cannot_be_written_is_said_in_one_line(rows, tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        write_table(rows, tmp_path)


def test_more_budget_makes_every_private_framework_better(rows):
    for row in rows:
        if row.epsilon == 0.1 and row.framework in ("dppp", "dppp-best", "pate"):
            same = next(other for other in rows if other.curve == row.curve and other.epsilon == 1)
            assert same.accuracy_mean > row.accuracy_mean


def test_delta_varies_at_the_epsilon_of_the_dataset(votes):
    found = accuracy_by_delta(votes, deltas=(1e-4, 1e-2), repetitions=2)
    assert {(row.epsilon, row.delta) for row in found} == {(None, None), (0.5, 1e-4), (0.5, 1e-2)}


def test_no_repetition_is_refused(votes):
    with pytest.raises(InputError, match="1 or more, got 0"):
        accuracy_by_epsilon(votes, repetitions=0)


def test_a_curve_without_a_certificate_is_dashed_hollow_and_says_so(rows):
    seen = {}
    for style in [style for styles in PANELS.values() for style in styles]:
        _, axes = new_figure(4, 3)
        points = tuple(
            row for row in rows
            if row.curve == (style.framework, style.noise, style.calibration, style.honest)
        )  # fmt: skip
        draw_curve(axes, points, [row.epsilon for row in points], style)
        line = axes.lines[0]
        label = axes.get_legend_handles_labels()[1][0]
        is_hollow = line.get_markerfacecolor() == "white"
        assert is_hollow == (line.get_linestyle() == "--") == ("not certified" in label)
        seen[style.framework, style.noise, style.calibration] = is_hollow
    assert seen["dppp", "discrete-gaussian", "paper"]
    assert seen["pate", "laplace", "1/epsilon"]
    assert not seen["dppp-best", "best", "exact"]
    assert not seen["dppp", "binomial", "paper"]


def test_a_figure_is_small_enough_to_keep(rows, tmp_path):
    path = draw_accuracy(rows, "made up", against="epsilon", path=tmp_path / "figure.png")
    assert 5_000 < path.stat().st_size < 150_000
