import functools
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp

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
