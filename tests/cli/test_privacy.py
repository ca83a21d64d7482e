"""`dppp calibrate`, `certify` and `account`, held against each other."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp

CALIBRATE = "calibrate --epsilon 1 --delta 1e-5 --teachers 20"

NAMES = {
    "noise",
    "calibration",
    "teachers",
    "colluders",
    "dropouts",
    "honest_shares",
    "threshold",
    "epsilon",
    "delta",
    "queries",
    "exact_delta",
    "sampling_delta",
    "certified",
    "variance",
}

PARAMETERS = {
    "binomial": {"total_tosses", "tosses_per_teacher"},
    "discrete-gaussian": {"share_sigma"},
    "skellam": {"share_variance"},
    "polya": {"share_shape", "ratio"},
}


@pytest.mark.parametrize("noise", PARAMETERS)
def test_calibrate_says_everything_that_account_needs(noise: str) -> None:
    found = json_of(f"{CALIBRATE} --noise {noise}")
    assert NAMES | PARAMETERS[noise] <= set(found)
    assert found["certified"] is True
    assert found["noise"] == noise


def test_the_exact_calibration_of_250_teachers() -> None:
    found = json_of(
        "calibrate --noise skellam --epsilon 8 --delta 1e-5 --queries 1000 "
        "--teachers 250 --colluders 50 --dropouts 25"
    )
    assert found["honest_shares"] == 175
    assert found["threshold"] == 151
    assert found["variance"] == pytest.approx(720.56, rel=1e-4)
    assert found["share_variance"] * 175 == pytest.approx(found["variance"])
    assert found["exact_delta"] + found["sampling_delta"] <= 1e-5


@pytest.mark.parametrize("noise", PARAMETERS)
def test_certify_agrees_with_calibrate(noise: str) -> None:
    found = json_of(f"{CALIBRATE} --noise {noise}")
    options = {
        "binomial": f"--total-tosses {found.get('sum_tosses')}",
        "discrete-gaussian": f"--share-sigma {found.get('share_sigma')}",
        "skellam": f"--variance {found.get('variance')}",
        "polya": f"--shape {found.get('shape')} --ratio {found.get('ratio')}",
    }[noise]
    certified = json_of(
        f"certify --noise {noise} --epsilon 1 --honest-shares 14 --delta 1e-5 {options}"
    )
    assert certified["exact_delta"] == pytest.approx(found["exact_delta"], rel=1e-9)
    assert certified["certified"] is True


def test_certify_without_a_promise_certifies_nothing() -> None:
    found = json_of("certify --noise skellam --variance 605.6 --epsilon 0.1")
    assert found["certified"] is None
    assert found["exact_delta"] == pytest.approx(1.000054e-3, rel=1e-5)


def test_certify_knows_the_papers_scope() -> None:
    command = "certify --noise binomial --total-tosses 6704 --epsilon 0.1"
    single = json_of(f"{command} --scope single-coordinate")
    assert single["exact_delta"] == pytest.approx(1.217989e-7, rel=1e-6)
    assert json_of(command)["exact_delta"] == pytest.approx(2.005508e-5, rel=1e-6)


def test_account_gives_the_epsilon_of_the_vectors() -> None:
    found = json_of("account --noise binomial --total-tosses 7206 --queries 1000 --delta 1e-5")
    assert 4.65027 <= found["epsilon"] <= 4.67399


def test_account_takes_certificates_fixed_together(tmp_path: Path) -> None:
    files = ""
    for noise in ("skellam", "polya"):
        result = run_dppp(f"{CALIBRATE} --noise {noise} --queries 10 --json")
        path = tmp_path / f"{noise}.json"
        path.write_text(result.stdout, encoding="utf-8")
        files += f" --certificate {path}"
    both = json_of(f"account --delta 2e-5{files}")
    assert 1.0 < both["epsilon"] < 2.0
    assert [task["noise"] for task in both["tasks"]] == ["skellam", "polya"]


def test_compare_shows_all_families_and_both_calibrations() -> None:
    found = json_of(f"{CALIBRATE} --compare")["compared"]
    assert len(found) == 6
    assert found[0]["ratio_to_best"] == 1
    broken = [row for row in found if not row["certified"]]
    assert [(row["noise"], row["calibration"]) for row in broken] == [
        ("discrete-gaussian", "paper")
    ]
    text = run_dppp(f"{CALIBRATE} --compare").stdout
    for word in ("polya", "skellam", "binomial", "discrete-gaussian", "paper", "NO"):
        assert word in text


def test_people_get_sentences() -> None:
    text = run_dppp(f"{CALIBRATE} --noise skellam").stdout
    assert "14 honest shares" in text
    assert "certified" in text


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "curve.png"
    result = run_dppp(f"{CALIBRATE} --compare --plot {path} --json")
    assert result.returncode == 0
    assert json.loads(result.stdout)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("epsilon", "calibrate --epsilon 0 --delta 1e-5 --teachers 20"),
        ("epsilon", "calibrate --epsilon -1 --delta 1e-5 --teachers 20"),
        ("epsilon", "calibrate --epsilon nan --delta 1e-5 --teachers 20"),
        ("epsilon", "calibrate --epsilon inf --delta 1e-5 --teachers 20"),
        ("epsilon", "calibrate --epsilon one --delta 1e-5 --teachers 20"),
        ("epsilon", "calibrate --delta 1e-5 --teachers 20"),
        ("delta", "calibrate --epsilon 1 --delta 0 --teachers 20"),
        ("delta", "calibrate --epsilon 1 --delta 1 --teachers 20"),
        ("delta", "calibrate --epsilon 1 --delta nan --teachers 20"),
        ("delta", "calibrate --epsilon 1 --delta tiny --teachers 20"),
        ("teachers", "calibrate --epsilon 1 --delta 1e-5 --teachers 1"),
        ("teachers", "calibrate --epsilon 1 --delta 1e-5 --teachers 2.5"),
        ("colluders", f"{CALIBRATE} --colluders 12 --dropouts 8"),
        ("threshold", f"{CALIBRATE} --colluders 10 --dropouts 8"),
        ("colluders", f"{CALIBRATE} --colluders -1"),
        ("queries", f"{CALIBRATE} --queries 0"),
        ("classes", f"{CALIBRATE} --classes 1"),
        ("laplace", f"{CALIBRATE} --noise laplace"),
        ("calibration", f"{CALIBRATE} --calibration rough"),
        ("paper", f"{CALIBRATE} --noise skellam --calibration paper"),
        ("too small", f"{CALIBRATE} --delta 1e-300"),
        ("does not exist", f"{CALIBRATE} --noise skellam --json --plot /proc/x/y.png"),
        ("kind of figure", f"{CALIBRATE} --noise skellam --json --plot /proc/y.txt"),
        ("cannot draw", f"{CALIBRATE} --noise skellam --json --plot /proc/y.png"),
        ("cannot draw", f"{CALIBRATE} --noise skellam --json --plot x.what"),
        ("--variance", "certify --noise skellam --epsilon 1"),
        ("--ratio", "certify --noise polya --shape 1 --epsilon 1"),
        ("--share-sigma", "certify --noise skellam --variance 9 --share-sigma 1 --epsilon 1"),
        ("--variance", "certify --noise skellam --variance nan --epsilon 1"),
        ("--variance", "certify --noise skellam --variance 0 --epsilon 1"),
        ("total_tosses", "certify --noise binomial --total-tosses 0 --epsilon 1"),
        ("honest-shares", "certify --noise skellam --variance 9 --epsilon 1 --honest-shares 0"),
        ("scope", "certify --noise skellam --variance 9 --epsilon 1 --scope both"),
        (
            "one query",
            "certify --noise skellam --variance 9 --epsilon 1 --queries 3 "
            "--scope single-coordinate",
        ),
        ("no noise is given", "account --delta 1e-5"),
        ("cannot read", "account --delta 1e-5 --certificate missing.json"),
        ("give either", "account --delta 1e-5 --certificate a.json --noise skellam"),
        ("delta", "account --noise skellam --variance 9 --delta 2"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(word: str, command: str) -> None:
    assert_refused(2, word, run_dppp(command))


def test_a_broken_certificate_is_one_line_and_exit_2(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"noise": "skellam", "queries": 3}', '{"queries": "x"}'):
        path = tmp_path / "certificate.json"
        path.write_text(text, encoding="utf-8")
        assert_refused(2, "", run_dppp(f"account --delta 1e-5 --certificate {path}"))


def test_what_cannot_be_certified_is_exit_1() -> None:
    command = "account --noise binomial --total-tosses 4 --delta 1e-5 --queries 1000"
    assert_refused(1, "use more noise", run_dppp(command))


@pytest.mark.parametrize(
    "command",
    [
        "certify --noise skellam --variance 1e18 --epsilon 1",
        "certify --noise polya --shape 1 --ratio 0.999999999999 --epsilon 1",
        "certify --noise binomial --total-tosses 100000000000000 --epsilon 1",
        "account --noise skellam --variance 1e14 --queries 10 --delta 1e-5",
        "calibrate --epsilon 1e-9 --delta 1e-5 --queries 1000 --teachers 20",
        "calibrate --noise discrete-gaussian --calibration paper --epsilon 1e-6 --delta 1e-5 "
        "--queries 1000 --teachers 20",
    ],
)
def test_noise_that_would_take_all_memory_is_refused_in_one_line(command: str) -> None:
    assert_refused(2, "too wide", run_dppp(command))
