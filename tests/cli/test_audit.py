"""`dppp audit`: its three subjects, its names, its exit codes."""

from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp

AUDIT = "audit --epsilon 2 --delta 1e-3 --teachers 20 --queries 2"


def test_a_kept_promise_is_not_refuted(tmp_path: Path) -> None:
    picture = tmp_path / "audit.png"
    found = json_of(f"{AUDIT} --trials 200000 --plot {picture}")
    assert {"epsilon_lower", "epsilon_certified", "confidence", "trials"} <= set(found)
    assert 1.5 < found["epsilon_lower"] < found["epsilon_certified"] <= 2
    assert found["confidence"] == 0.95
    assert found["trials"] == 200_000
    assert picture.stat().st_size > 5_000


def test_a_broken_promise_ends_with_1() -> None:
    result = run_dppp(
        "audit --epsilon 0.5 --delta 1e-3 --teachers 250 --colluders 0 --dropouts 0 "
        "--noise discrete-gaussian --calibration paper --trials 200000"
    )
    assert result.returncode == 1
    assert "BROKEN, as the certificate says too" in result.stdout


def test_the_real_mode_says_how_little_it_proves() -> None:
    found = json_of(
        "audit --epsilon 8 --delta 1e-2 --teachers 4 --classes 2 --mode real --trials 40"
    )
    assert found["mode"] == "real"
    assert 0 <= found["epsilon_lower"] < found["epsilon_certified"]


def test_the_sampler_and_the_accountant_have_verdicts_of_their_own() -> None:
    sampler = json_of(f"{AUDIT} --of sampler --trials 20000")
    assert (sampler["passed"], sampler["false_alarm_rate"]) == (True, 1e-6)
    accountant = json_of(f"{AUDIT} --of accountant")
    assert accountant["passed"] is True
    assert accountant["epsilon_rounded_down"] < accountant["epsilon"]
    assert "The accountant passed." in run_dppp(f"{AUDIT} --of accountant").stdout


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--of budget", "unknown subject"),
        ("--mode slow", "unknown mode"),
        ("--trials 3", "trials"),
        ("--confidence 1", "confidence"),
        ("--plot nowhere.txt", "kind of figure"),
    ],
)
def test_bad_options_are_refused(options: str, word: str) -> None:
    assert_refused(2, word, run_dppp(f"{AUDIT} {options}"))
