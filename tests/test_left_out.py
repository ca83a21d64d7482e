"""The end of a run on a machine that lacks something: a line per reason, not one per test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
TESTS = """
import pytest
from tests.left_out import need_program

@pytest.mark.parametrize("number", range(5))
def test_with_a_program(number):
    need_program("no-such-program", package="such-programs")

@pytest.mark.skip(reason="it is long; run it with: make soak")
def test_that_is_long():
    raise AssertionError

def test_that_passes(record_property):
    record_property("say", "three kills")
"""
FILE = """
from tests.left_out import need_module

need_module("no_such_module", extra="such")
"""
LEFT_OUT = [
    "left out: 1 test: it is long; run it with: make soak",
    "left out: 5 tests: no-such-program is missing; install it with: apt-get install such-programs",
    "left out: 1 file: no_such_module is missing; "
    "in your clone of dppp: pip install -c constraints.txt '.[such]'",
]


def run_in(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A run of its own, with this project's settings and the end of a run that all tests have."""
    (folder / "test_parts.py").write_text(TESTS)
    (folder / "test_whole_file.py").write_text(FILE)
    ours = ["-c", str(HERE / "pyproject.toml"), "--rootdir", str(folder), "-p", "tests.conftest"]
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "CI" and not name.startswith("PYTEST_")
    }
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "pytest", *ours, "-p", "no:cacheprovider", *options, str(folder)],
        cwd=HERE,
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_each_reason_is_said_once_with_the_number_of_tests(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    run = run_in(tmp_path, *options)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    assert sorted(each for each in lines if each.startswith("left out")) == sorted(LEFT_OUT)
    assert lines.count("three kills") == 1
    assert "SKIPPED" not in run.stdout
    assert "test_with_a_program" not in run.stdout


def test_ci_leaves_nothing_out_for_want_of_a_program(tmp_path: Path) -> None:
    run = run_in(tmp_path, CI="true")
    assert run.returncode != 0
    assert "CI must not leave this out: no_such_module is missing" in run.stdout
