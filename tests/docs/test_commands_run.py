"""Commands that README and usage show are run as they stand, here or by the test that is named."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import run_dppp
from tests.docs.test_commands import ROOT, lines_of
from tests.left_out import need_module

TABLES = {"table.csv": "column", "my.csv": "diagnosis", "records.csv": "diagnosis"}
"""What a reader has: the files that the lines name, and the column to predict."""

ELSEWHERE = {
    r"demo": "tests/cli/demo/test_command.py",
    r"demo --quick": "tests/cli/demo/test_command.py",
    r"demo --web": "tests/cli/demo/test_web.py",
    r"ledger show out/demo.ledger": "tests/cli/demo/test_command.py",
    r"verify out/demo-4.transcript": "tests/cli/demo/test_command.py",
    r"card .*": "tests/cli/demo/test_command.py",
    r"train .* --config .*": "tests/cli/test_train.py",
    r"audit .*": "tests/cli/test_audit.py",
    r"bench .*": "tests/cli/test_bench.py",
}
"""Lines that need more than a table: a demo before, a home, a browser, minutes."""


def shown() -> list[str]:
    pages = (ROOT / "README.md", ROOT / "docs" / "usage.md")
    lines = [line for page in pages for line in lines_of(page.read_text(encoding="utf-8"))]
    return sorted({re.sub(r"\s+", " ", line.split("#")[0]).strip() for line in lines})


def who_runs(line: str) -> str | None:
    return next((test for rule, test in ELSEWHERE.items() if re.fullmatch(rule, line)), None)


def write_tables(folder: Path) -> None:
    random = np.random.default_rng(0)
    for name, label in TABLES.items():
        numbers = random.normal(size=(600, 2))
        rows = [
            f"{first:.3f},{second:.3f},{place // 3},{'ill' if first + second > 0 else 'well'}"
            for place, (first, second) in enumerate(numbers)
        ]
        (folder / name).write_text("\n".join([f"age,pulse,patient,{label}", *rows]) + "\n")


@pytest.mark.parametrize("line", [line for line in shown() if not who_runs(line)])
def test_a_command_runs_as_it_is_shown(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("sklearn", "matplotlib", "skops"):
        need_module(module, extra="service,experiments")
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = run_dppp(line)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_other_command_is_run_by_a_test_that_is_there() -> None:
    for rule, test in ELSEWHERE.items():
        assert any(re.fullmatch(rule, line) for line in shown()), rule
        first = rule.split()[0]
        assert first in (ROOT / test).read_text(encoding="utf-8"), test
