"""What people are told is told as it is: a name with brackets is not taken for a colour."""

import io
from pathlib import Path

from rich.console import Console
from tests.cli.commands import run_dppp

from dppp.cli import local, query
from dppp.service.local.federation import LocalFederation


def test_a_folder_with_brackets_is_named_whole(tmp_path: Path) -> None:
    out = Console(file=io.StringIO(), width=200)
    local._show(
        out,
        LocalFederation(folder=Path("try[red]"), teachers=3, broker_port=1, gateway_port=2),
    )
    assert isinstance(out.file, io.StringIO)
    assert "--out try[red]/labels.csv" in out.file.getvalue()
    budget = {"charged": 1, "queries": 2, "epsilon_spent": 1.0, "epsilon": 8.0, "delta": 1e-5}
    result = {"rows": 1, "out": "labels[blue].csv", "abstained": 0, "flagged": 0, "in_receipts": 1}
    result["question"] = "choice"
    query._show(out, {**result, "receipts": "kept[b]", "is_verified": True}, budget)
    assert "labels[blue].csv" in out.file.getvalue()
    assert "kept[b]" in out.file.getvalue()


def test_certify_and_account_speak_in_words() -> None:
    said = run_dppp("certify --noise skellam --variance 600 --epsilon 1 --delta 1e-5").stdout
    assert "δ of the noise, exactly" in said
    assert "promise kept" in said
    assert "_" not in said
    bare = run_dppp("certify --noise polya --shape 1 --ratio 0.7 --epsilon 1").stdout
    assert "promise" not in bare
    assert "_" not in bare
    assert "_" not in run_dppp("account --noise binomial --total-tosses 900 --delta 1e-5").stdout


def test_account_of_several_tasks_speaks_in_words(tmp_path: Path) -> None:
    found = run_dppp("calibrate --epsilon 1 --delta 1e-5 --teachers 20 --noise skellam --json")
    (tmp_path / "one.json").write_text(found.stdout)
    both = f"--certificate {tmp_path}/one.json --certificate {tmp_path}/one.json"
    said = run_dppp(f"account --delta 1e-5 {both}").stdout
    assert said.count("variance of one share") == 2
    assert "_" not in said
    assert "{" not in said
