from pathlib import Path

from tests.cli.commands import assert_refused, json_of, run_dppp


def test_the_demo_tells_its_story_and_leaves_a_transcript_that_verifies(tmp_path: Path) -> None:
    result = run_dppp(f"demo --out {tmp_path}")
    assert result.returncode == 0, result.stderr
    assert "How much noise" in result.stdout
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    verified = json_of(f"verify {tmp_path / 'demo.transcript'}")
    assert verified["verified"] is True
    assert (verified["ballots"], verified["teachers"], verified["queries"]) == (18, 20, 3)


def test_the_quick_demo_answers_in_json(tmp_path: Path) -> None:
    found = json_of(f"demo --quick --out {tmp_path}")
    assert found["picture"] is None
    assert set(found["labels"]) <= {"malignant", "benign"}
    assert found["many_queries"]["certified"] is True
    assert found["transcript"] == str(tmp_path / "demo.transcript")
    assert found["spent"]["data"][0]["tasks"][0]["answered"] == 3
    shown = json_of(f"ledger show {found['ledger']}")
    assert shown["data"] == found["spent"]["data"]
    checked = run_dppp(f"ledger check {found['ledger']} --remembered {found['ledger']}.head")
    assert checked.returncode == 0, checked.stderr
    json_of(f"demo --quick --out {tmp_path}")  # starts anew


def test_a_folder_that_cannot_be_made_is_one_line() -> None:
    assert_refused(2, "cannot", run_dppp("demo --quick --out /proc/none"))
