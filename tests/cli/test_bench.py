"""`dppp bench` on the smallest work that it takes."""

import json
import subprocess
import sys

import pytest
from tests.cli.commands import assert_one_failure


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "dppp", "bench", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


SMALL = ("--teachers", "5", "--classes", "2", "--modulus-bits", "1024", "--s", "1", "--labels", "8")


def test_bench_prints_one_object() -> None:
    result = run(*SMALL, "--federation", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["sums_checked"] is True
    assert found["samples_per_second"] > 0
    assert found["sampling_over_numpy"] > 0
    assert sum(found["federation_steps"].values()) == pytest.approx(1)
    assert (found["teachers"], found["modulus_bits"], found["labels"]) == (5, 1024, 8)


def test_bench_speaks_to_people_too() -> None:
    result = run(*SMALL)
    assert result.returncode == 0, result.stderr
    assert "ratio_to_paper" in result.stdout


def test_bad_work_is_exit_2_and_one_line() -> None:
    for wrong in (
        ("--teachers", "1"),
        ("--modulus-bits", "510"),
        ("--s", "0"),
        ("--labels", "0"),
        ("--plot", "no/such/folder/steps.png"),
    ):
        result = run(*SMALL, *wrong)
        assert result.returncode == 2, wrong
        assert_one_failure(result)
