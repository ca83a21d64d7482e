"""`dppp audit`: its three subjects, its names, its exit codes."""

from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp

from dppp.federation import Federation, create_federation, in_process
from dppp.privacy.calibration import calibrate
from dppp.protocol.question import Question
from dppp.protocol.wire import encode

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


def test_the_real_mode_proves_something() -> None:
    found = json_of(
        "audit --epsilon 1 --delta 1e-2 --teachers 4 --classes 2 --mode real --trials 1000"
    )
    assert found["mode"] == "real"
    assert 0 < found["epsilon_lower"] < found["epsilon_certified"]
    assert found["epsilon_for_verdict"] < found["epsilon_lower"]


@pytest.fixture(scope="module")
def receipt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a querier keeps of one answered query of a number."""
    certificate = calibrate("skellam", epsilon=2, delta=1e-2, teachers=4, queries=2, levels=10)
    parties = create_federation(
        name="weights",
        class_names=["weight"],
        features=["size"],
        certificate=certificate,
        models=[lambda rows: [1.0] * len(rows)] * 4,
        question=Question.of_number(low=0, high=4, levels=10),
    )
    federation = Federation(aggregator=parties.aggregator, deliver=in_process(parties.teachers))
    outcome = federation.ask([[1.0]])
    assert outcome.receipt is not None
    file = tmp_path_factory.mktemp("receipt") / "release.receipt"
    file.write_bytes(encode(outcome.receipt))
    return file


@pytest.mark.parametrize("mode", ["fast --trials 100000", "real --trials 200"])
def test_the_task_of_a_receipt_is_audited(receipt: Path, mode: str) -> None:
    found = json_of(f"audit {receipt} --mode {mode}")
    assert (found["counts_moved"], found["moved_by"]) == (1, 10)
    assert (found["certificate"]["unit"], found["certificate"]["queries"]) == ("teacher", 2)
    assert found["epsilon_certified"] == pytest.approx(2, rel=1e-3)
    assert 0 <= found["epsilon_lower"] < found["epsilon_certified"]


def test_sampler_and_accountant_of_a_task_are_audited(receipt: Path) -> None:
    assert json_of(f"audit {receipt} --of sampler --trials 20000")["passed"]
    assert json_of(f"audit {receipt} --of accountant")["passed"]


def test_a_promise_is_that_of_the_task_or_of_the_options(receipt: Path) -> None:
    assert_refused(
        2, "so --epsilon and --levels cannot", run_dppp(f"audit {receipt} --epsilon 1 --levels 3")
    )
    assert_refused(2, "without --delta and --teachers", run_dppp("audit --epsilon 1"))


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
        ("--trials 0", "trials"),
        ("--confidence 1", "confidence"),
        ("--plot nowhere.txt", "kind of figure"),
    ],
)
def test_bad_options_are_refused(options: str, word: str) -> None:
    assert_refused(2, word, run_dppp(f"{AUDIT} {options}"))
