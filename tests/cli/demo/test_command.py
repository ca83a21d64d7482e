import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from tests.cli.commands import assert_refused, json_of, run_dppp, run_process

from dppp.learning.examples.hospital_batches import voters_of
from dppp.privacy.accounting import Spending, account
from dppp.privacy.certificate import noise_from_json
from dppp.protocol.transcript import Transcript
from dppp.protocol.wire import decode


@dataclass(frozen=True)
class Told:
    folder: Path
    found: dict[str, Any]

    @property
    def transcripts(self) -> list[Path]:
        return [Path(each) for each in self.found["transcripts"]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """One whole demo, in a process of its own."""
    folder = tmp_path_factory.mktemp("demo")
    result = run_process(f"demo --json --out {folder}")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return Told(folder, json.loads(result.stdout))


def test_every_transcript_verifies_and_holds_the_labels(told: Told) -> None:
    assert told.found["transcript"] in told.found["transcripts"]
    verified = [json_of(f"verify {path}") for path in told.transcripts]
    assert all(each["verified"] for each in verified)
    assert len({each["task_id"] for each in verified}) == 1
    for name in ("labels", "counts"):
        assert [item for each in verified for item in each[name]] == told.found[name]


def test_a_changed_transcript_does_not_verify(told: Told, tmp_path: Path) -> None:
    data = bytearray(Path(told.found["transcript"]).read_bytes())
    data[len(data) // 2] ^= 1
    changed = tmp_path / "changed.transcript"
    changed.write_bytes(data)
    assert run_dppp(f"verify {changed}").returncode == 1


def test_two_hospitals_fail_mid_way_one_of_them_after_its_ballot(told: Told) -> None:
    lists = [voters_of(decode(path.read_bytes(), Transcript)) for path in told.transcripts]
    everybody = set(range(1, 21))
    missing = [everybody - set(voters) for voters in lists]
    assert missing == [set(), {7}, {7, 13}, {7, 13}]
    assert [each["voters"] for each in told.found["batches"]] == [list(each) for each in lists]


def test_the_labels_are_of_patients_that_nobody_trained_on(told: Told) -> None:
    data = load_breast_cancer()
    held_out = np.random.RandomState(0).permutation(len(data.data))[:114]
    truth = [str(data.target_names[each]) for each in data.target[held_out]]
    labels = told.found["labels"]
    assert told.found["diagnoses"] == truth[: len(labels)]
    right = sum(label == each for label, each in zip(labels, truth, strict=False))
    assert told.found["accuracy"]["private"] == right / len(labels)


def test_every_label_is_the_class_of_the_largest_noisy_count(told: Told) -> None:
    names = tuple(map(str, load_breast_cancer().target_names))
    for label, counts in zip(told.found["labels"], told.found["counts"], strict=True):
        assert counts[names.index(label)] == max(counts)


def test_privacy_costs_some_accuracy_and_company_brings_more(told: Told) -> None:
    average = told.found["accuracy_on_average"]
    order = ("single_mean", "private", "plurality", "centralised")
    assert [average[name] for name in order] == sorted(average[name] for name in order)
    for accuracy in (average, told.found["accuracy"]):
        assert accuracy["single_min"] <= accuracy["single_mean"] <= accuracy["single_max"] <= 1


def test_the_budget_is_spent_batch_by_batch_up_to_the_promise(told: Told) -> None:
    certificate, batches = told.found["certificate"], told.found["batches"]
    assert certificate["certified"] is True
    chosen_from = certificate["chosen_from"]
    assert chosen_from[certificate["noise"]] == min(chosen_from.values())
    noise, answered = noise_from_json(certificate), 0
    for batch in batches:
        answered += batch["patients"]
        spending = Spending(noise=noise, queries=answered)
        assert batch["epsilon_spent"] == account([spending], certificate["delta"])
    assert answered == certificate["queries"]
    assert 0.999 * certificate["epsilon"] < batches[-1]["epsilon_spent"] <= certificate["epsilon"]


def test_the_ledger_shows_what_was_charged_and_refuses_more(told: Told) -> None:
    shown = json_of(f"ledger show {told.found['ledger']}")
    assert shown == told.found["spent"]
    (task,) = shown["data"][0]["tasks"]
    asked = len(told.found["labels"])
    assert (task["answered"], task["left"]) == (asked, 0)
    assert task["batches"] == len(told.found["batches"])
    head = f"{told.found['ledger']}.head"
    checked = run_dppp(f"ledger check {told.found['ledger']} --remembered {head}")
    assert checked.returncode == 0, checked.stderr
    refusals = told.found["refusals"]
    assert len(refusals) == 18
    assert all(f"0 left of {asked}" in each for each in refusals)


def test_there_is_a_picture(told: Told) -> None:
    picture = Path(told.found["picture"])
    assert picture.parent == told.folder
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_demo_says_what_the_hospitals_have_without_it_and_whether_it_is_worth_it(
    told: Told,
) -> None:
    verdict, average = told.found["verdict"], told.found["accuracy_on_average"]
    assert verdict["accuracy_expected"] == pytest.approx(average["private"])
    assert verdict["accuracy_single"] == pytest.approx(average["single_mean"])
    assert verdict["worth_it"] is True
    assert verdict["accuracy_majority"] < verdict["accuracy_expected"]


def test_a_larger_table_is_worth_it_at_epsilon_one_by_several_votes(told: Told) -> None:
    alike = told.found["banks"]["alike"]
    assert alike["worth_it"] is True
    assert alike["accuracy_one_vote"] < alike["accuracy_majority"] < alike["accuracy_expected"]
    assert len(alike["votes"]) == 20
    assert min(alike["votes"]) > 1
    # A hundred answers have a standard deviation of 3 points.
    assert alike["accuracy_private"] == pytest.approx(alike["accuracy_expected"], abs=0.2)


def test_banks_that_see_a_part_of_the_world_gain_by_company_and_the_worst_most(
    told: Told,
) -> None:
    apart = told.found["banks"]["apart"]
    assert apart["worth_it"] is True
    assert apart["worth_it_to_a_teacher"] is True
    assert apart["accuracy_expected"] > apart["accuracy_single"] + 0.03
    assert apart["accuracy_expected"] > apart["accuracy_single_worst"] + 0.12
    picture = Path(told.found["banks"]["picture"])
    assert picture.parent == told.folder
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_quick_demo_tells_the_whole_story_and_clears_away_the_one_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for stale in ("demo-3.transcript", "demo.png", "demo-banks.png", "demo.ledger"):
        (tmp_path / stale).write_text("of an earlier demo")
    result = run_dppp(f"demo --quick --out {tmp_path}")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    commands = [line for line in result.stdout.splitlines() if line.startswith("  dppp ")]
    prose = [line for line in result.stdout.splitlines() if line not in commands]
    assert max(map(len, prose)) <= 80
    for word in (
        "nobody who deals",
        "secret",
        "Hospital 7 does not answer",
        "Hospital 13 votes",
        "refuse",
    ):
        assert word in result.stdout
    assert commands == [
        f"  dppp ledger show {tmp_path}/demo.ledger",
        f"  dppp verify {tmp_path}/demo-1.transcript",
        "  dppp demo --web",
    ]
    verified = json_of(f"verify {tmp_path / 'demo-1.transcript'}")
    assert (verified["ballots"], verified["teachers"]) == (19, 20)
    left = {path.name for path in tmp_path.iterdir()}
    assert left >= {"demo-1.transcript", "demo.ledger"}
    assert not left & {"demo-3.transcript", "demo.png", "demo-banks.png"}


@pytest.mark.parametrize("is_active", [True, False])
def test_the_demo_says_how_to_activate_only_where_that_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_active: bool
) -> None:
    """An environment as venv makes it, with the program in it, on the path or not."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "activate").touch()
    (programs / "dppp").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    monkeypatch.setenv("PATH", str(programs) if is_active else "/usr/bin:/bin")
    result = run_dppp("demo --quick")
    assert result.returncode == 0, result.stderr
    assert ("  . .venv/bin/activate\n" in result.stdout) is not is_active


def test_noise_is_new_in_every_demo(told: Told, tmp_path: Path) -> None:
    again = json_of(f"demo --quick --out {tmp_path}")
    assert again["picture"] is None
    patients = len(again["labels"])
    assert again["diagnoses"] == told.found["diagnoses"][:patients]
    assert again["counts"] != told.found["counts"][:patients]
    assert (
        again["spent"]["data"][0]["tasks"][0]["task_id"]
        != (told.found["spent"]["data"][0]["tasks"][0]["task_id"])
    )


@pytest.mark.parametrize("options", ["--data mnist", "--data digits --quick"])
def test_records_that_the_demo_does_not_have_are_refused(tmp_path: Path, options: str) -> None:
    refused = run_dppp(f"demo {options} --out {tmp_path / 'out'}")
    assert_refused(2, "with breast-cancer, not with", refused)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_one_line() -> None:
    assert_refused(2, "cannot", run_dppp("demo --quick --out /proc/none"))


def test_the_card_in_the_docs_is_that_of_the_demo(told: Told) -> None:
    """By the command in docs/usage.md; keys, and so the task's id, are new in every demo."""
    ledger = told.folder / "demo.ledger"
    made = run_dppp(f"card {told.transcripts[-1]} --ledger {ledger}")
    shown = Path("docs/card-demo.md").read_text(encoding="utf-8")
    assert re.sub("[0-9a-f]{64}", "…", made.stdout) == re.sub("[0-9a-f]{64}", "…", shown)


def test_a_card_is_written_in_every_form(told: Told, tmp_path: Path) -> None:
    source = told.transcripts[0]
    for form, first in (("html", "<!doctype html>"), ("yaml", "url_slug:"), ("markdown", "# ")):
        out = tmp_path / form
        assert run_dppp(f"card {source} --as {form} --out {out}").returncode == 0
        assert out.read_text().startswith(first)
    found = json_of(f"card {source}")
    assert found["sections"][0]["title"] == "What is protected"
    assert found["registry"]["deployment"]["basic"]["name"] == "demo"
    assert_refused(2, "unknown form", run_dppp(f"card {source} --as pdf"))
