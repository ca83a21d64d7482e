import functools
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp

from dppp.learning.examples.local_models import digits

PLAN = "plan --teachers 20 --accuracy-margin 0.5 --classes 3 --queries 1 --epsilon 2"

NAMES = {
    "teachers",
    "colluders",
    "dropouts",
    "honest_shares",
    "classes",
    "epsilon",
    "delta",
    "queries",
    "accuracy_margin",
    "right_means",
    "accuracy_without_noise",
    "by_epsilon",
    "by_queries",
    "target_accuracy",
    "most_queries",
    "fewest_teachers",
}
OUTLOOK = {"epsilon", "queries", "noise", "variance", "tally_variance", "accuracy", "at_chance"}


@functools.cache
def made() -> dict[str, Any]:
    return json_of(PLAN)


def test_plan_names_everything() -> None:
    found = made()
    assert set(found) == NAMES
    assert all(set(each) == OUTLOOK for each in found["by_epsilon"] + found["by_queries"])
    assert found["accuracy_margin"] == 0.5
    assert found["right_means"] == "plurality"
    assert found["target_accuracy"] == 0.9
    assert found["honest_shares"] == 14


def test_every_family_has_an_accuracy_at_every_epsilon() -> None:
    found = made()["by_epsilon"]
    assert {each["epsilon"] for each in found} == {0.1, 0.2, 0.5, 1, 2, 4, 8}
    assert len(found) == 7 * 4
    for name in ("binomial", "discrete-gaussian", "skellam", "polya"):
        accuracies = [each["accuracy"] for each in found if each["noise"] == name]
        assert accuracies == sorted(accuracies)


def test_the_table_fits_a_terminal_and_ends_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    picture = tmp_path / "plan.png"
    result = run_dppp(f"{PLAN} --plot {picture}")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert f"buys about {made()['most_queries']} queries" in result.stdout
    assert f"takes {made()['fewest_teachers']} teachers" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_it_says_where_it_stopped_because_guessing_is_as_good() -> None:
    hopeless = "plan --teachers 20 --accuracy-margin 0.2 --epsilon 0.01"
    found = json_of(hopeless)
    result = run_dppp(hopeless)
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stdout.split())
    least, last = found["by_epsilon"][0], found["by_queries"][-1]
    assert least["at_chance"]
    assert last["at_chance"]
    assert f"At ε = {least['epsilon']:g} the noise drowns the votes" in said
    assert f"At {last['queries']:,} " in said


def test_votes_of_a_file_are_held_against_its_labels(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    names = ",".join(f"hospital {number}" for number in range(20))
    rows = ["b" + ",m" * 19 + ",m", "b" + ",b" * 17 + ",m,m,b", "m" + ",m" * 19 + ",b"]
    path.write_text("\n".join([names + ",label", *rows]) + "\n", encoding="utf-8")
    found = json_of(f"plan --votes {path} --classes 3 --queries 1 --epsilon 2")
    assert found["right_means"] == "label"
    assert found["accuracy_margin"] is None
    assert (found["teachers"], found["classes"]) == (20, 3)
    assert found["accuracy_without_noise"] == pytest.approx(2 / 3)
    assert found["most_queries"] is None


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--teachers 20", "either"),
        ("--teachers 20 --accuracy-margin 0", "margin"),
        ("--teachers 20 --accuracy-margin 1.1", "margin"),
        ("--teachers 20 --accuracy-margin nan", "margin"),
        ("--teachers 20 --accuracy-margin much", "accuracy-margin"),
        ("--accuracy-margin 0.4", "--teachers"),
        ("--teachers 1 --accuracy-margin 0.4", "at least 2"),
        ("--teachers 20 --accuracy-margin 0.4 --target-accuracy nan", "target"),
        ("--teachers 20 --accuracy-margin 0.4 --epsilon nan", "epsilon"),
        ("--teachers 20 --accuracy-margin 0.4 --delta 0", "delta"),
        ("--teachers 20 --accuracy-margin 0.4 --queries 0", "queries"),
        ("--teachers 20 --accuracy-margin 0.4 --classes 1", "classes"),
        ("--votes /nowhere/votes.csv", "cannot read"),
    ],
)
def test_bad_options_are_refused_in_one_line(options: str, word: str) -> None:
    assert_refused(2, word, run_dppp(f"plan {options}"))


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "no votes"),
        (b"a,b\n", "no votes"),
        (b"a,b\n0,1\n0\n", "line 3"),
        (b"a,b\n0,1,2\n", "line 2"),
        (b"0,1,1\n0,0,1\n", "name every column"),
        (b",a,b\n0,0,1\n", "name every column"),
        (b"a,b\n0,nan\n", "missing"),
        (b"a,b\n0,\n", "missing"),
        (b"a,b,label\n0,1,\n", "missing"),
        (b"a,b,label\ncat,dog,cow\n", "unknown class 'cow'"),
        (b"a,b\n0,7\n", "unknown class 7"),
        (b"label\n0\n", "no query"),
        (b"a,b\n\xff\xfe,1\n", "UTF-8"),
        (b'a,b\n"0,1\n', "CSV"),
    ],
)
def test_bad_votes_are_refused_in_one_line(content: bytes, word: str, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_bytes(content)
    assert_refused(2, word, run_dppp(f"plan --votes {path} --classes 3"))


BY_VOTES = "plan --teachers 20 --records 1600 --curve 20:0.75,100:0.85,1000:0.95 --epsilon 1"


def test_votes_are_planned_from_a_curve(tmp_path: Path) -> None:
    found = json_of(BY_VOTES)
    accuracies = {each["votes"]: each["accuracy_expected"] for each in found["by_votes"]}
    assert accuracies[found["votes_best"]] == max(accuracies.values()) == found["accuracy_expected"]
    assert found["larger_epsilon"]["accuracy_expected"] > found["accuracy_expected"]
    assert found["next_teacher"]["teachers"] == 21
    assert found["source"] == "curve"
    picture = tmp_path / "votes.png"
    shown = run_dppp(f"{BY_VOTES} --plot {picture}")
    assert shown.returncode == 0, shown.stderr
    assert f"Best: {found['votes_best']} votes" in shown.stdout
    assert "One more teacher" in shown.stdout
    assert "ε = 2:" in shown.stdout
    assert "Assumed" in shown.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_votes_are_planned_from_a_public_table(tmp_path: Path) -> None:
    records = digits()
    path = tmp_path / "digits.csv"
    lines = [
        ",".join([*map(str, row), "even" if int(label) % 2 == 0 else "odd"])
        for row, label in zip(records.rows.tolist(), records.labels, strict=True)
    ]
    path.write_text("\n".join([",".join([*records.features, "kind"]), *lines]) + "\n")
    command = f"plan --teachers 8 --data {path} --label kind --votes-per-teacher 1,5 --epsilon 4"
    found = json_of(command)
    assert (found["source"], found["classes"], found["held_out"]) == ("data", 2, 359)
    assert found["records"] == (1797 - 359) // 8
    assert {1, 5} <= {each["votes"] for each in found["by_votes"]}
    assert all(each["shards_measured"] == each["shards"] for each in found["by_votes"])
    shown = run_dppp(command)
    assert shown.returncode == 0, shown.stderr
    assert "Measured: votes of models on disjoint shards" in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--teachers 20 --records 100", "learning curve or a public table"),
        ("--teachers 20 --curve 10:0.5,90:0.8 --data x.csv", "learning curve or a public table"),
        ("--records 100 --curve 10:0.5,90:0.8", "how many teachers"),
        ("--teachers 9 --curve 10:0.5,90:0.8", "how many records"),
        ("--teachers 9 --records 100 --curve ten", "not a point of a learning curve"),
        ("--teachers 9 --records 0 --curve 10:0.5,90:0.8", "records"),
        ("--teachers 9 --records 100 --curve 10:0.5,90:0.8 --label x", "--label goes with --data"),
        ("--teachers 9 --records 100 --curve 10:0.5,90:0.8 --correlation 2", "correlation"),
        ("--teachers 9 --records 100 --curve 10:0.5,90:0.8 --votes-per-teacher a", "whole numbers"),
        ("--teachers 9 --records 100 --curve 10:0.5,90:0.8 --votes-per-teacher 9", "shards of 11"),
        ("--teachers 9 --records 100 --curve 10:0.5,90:0.8 --accuracy-margin 1", "one vote"),
        ("--teachers 9 --data x.csv", "which column"),
        ("--teachers 9 --data x.csv --label y --classes 3", "own classes"),
        ("--teachers 9 --data x.csv --label y --correlation 0.5", "how errors correlate"),
        ("--teachers 9 --data /nowhere/x.csv --label y", "cannot read"),
        ("--teachers 9 --colluders 9 --data /nowhere/x.csv --label y", "collu"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_line(options: str, word: str) -> None:
    assert_refused(2, word, run_dppp(f"plan {options}"))


RECORDS = "age,sex,city,label\n" + "".join(
    f"{30 + place},{'mf'[place % 2]},{'rome' if place % 3 else 'bonn'},{place % 2}\n"
    for place in range(9)
)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("a,b,c\n0,17.99,yes\n", "17.99"),
        ("a,b,c\nno,-3,yes\n", "-3"),
        (RECORDS, "column 'age'"),
        (RECORDS.replace("age", "id"), "--data"),
        ("a,b\n" + "".join(f"x{place},x{place}\n" for place in range(101)), "101 different"),
    ],
)
def test_a_table_that_is_not_votes_is_refused_with_what_to_do(
    content: str, word: str, tmp_path: Path
) -> None:
    path = tmp_path / "records.csv"
    path.write_text(content)
    result = run_dppp(f"plan --votes {path} --queries 1")
    assert_refused(2, word, result)
    assert "hint: " in result.stderr


def test_teachers_who_disagree_on_few_queries_still_vote(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("a,b,c\nred,blue,red\nred,blue,green\n")
    assert json_of(f"plan --votes {path} --queries 1 --target-accuracy 0.5")["classes"] == 3


def test_a_number_is_planned_by_what_the_noise_adds() -> None:
    command = "plan --low 0 --high 30 --levels 10 --teachers 20 --queries 5 --votes-per-teacher 2,4"
    found = json_of(command)
    assert found["question"] == "number"
    one, two = found["outlooks"][:2]
    assert one["standard_error"] == pytest.approx(2 * two["standard_error"])
    assert one["part_of_range"] == pytest.approx(one["standard_error"] / 30)
    shown = run_dppp(command)
    assert "of the range" in shown.stdout
    assert "Votes of each teacher by the rule" in shown.stdout


def test_labels_are_planned_by_how_likely_each_is_right() -> None:
    found = json_of("plan --max-labels 2 --classes 5 --teachers 20 --queries 5")
    assert found["margins"] == [0.05, 0.1, 0.2, 0.3]
    assert all(0.4 < each < 1 + 1e-9 for each in found["outlooks"][0]["released_rightly"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--low 0 --high 30", "give --teachers"),
        ("--low 0 --teachers 5", "give --low and --high"),
        ("--max-labels 2 --teachers 5", "give --classes"),
        ("--max-labels 2 --low 1 --teachers 5", "not of both"),
        ("--low 0 --high 3 --teachers 5 --accuracy-margin 0.4", "takes no votes"),
        ("--low 0 --high 3 --teachers 5 --votes-per-teacher no", "numbers from 1 up"),
    ],
)
def test_a_plan_of_a_question_that_cannot_be_meant_is_one_line(options: str, reason: str) -> None:
    assert_refused(2, reason, run_dppp(f"plan {options}"))
