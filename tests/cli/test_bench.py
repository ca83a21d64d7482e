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


NAMES = (
    "cpu_ms_per_label",
    "bytes_sent_per_label",
    "bytes_received_per_label",
    "transcript_bytes_per_label",
    "teacher_cpu_ms_per_label",
    "aggregator_cpu_ms_per_label",
)


def test_bench_compares_both_cryptosystems_in_one_object() -> None:
    result = run(*SMALL, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    for figures in (found, found["masks"], found["paillier"]):
        assert all(figures[name] > 0 for name in NAMES)
    assert found["cryptosystem"] == "masks"
    assert (found["teachers"], found["classes"], found["labels"]) == (5, 2, 8)
    assert found["epoch_cpu_ms"] > 0
    assert found["paillier"]["epoch_cpu_ms"] == 0


def test_bench_measures_one_cryptosystem_alone() -> None:
    for name, other in (("masks", "paillier"), ("paillier", "masks")):
        result = run(*SMALL, "--cryptosystem", name, "--json")
        assert result.returncode == 0, result.stderr
        found = json.loads(result.stdout)
        assert found["cryptosystem"] == name
        assert other not in found


def test_the_paper_benchmark_prints_one_object() -> None:
    result = run(*SMALL, "--paper", "--federation", "--json")
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
    assert "paillier_over_masks_cpu_ms_per_label" in result.stdout
    result = run(*SMALL, "--paper")
    assert result.returncode == 0, result.stderr
    assert "ratio_to_paper" in result.stdout


def test_bad_work_is_exit_2_and_one_line() -> None:
    for wrong in (
        ("--teachers", "1"),
        ("--modulus-bits", "510"),
        ("--s", "0"),
        ("--labels", "0"),
        ("--paper", "--plot", "no/such/folder/steps.png"),
        ("--steps",),
        ("--cryptosystem", "rsa"),
    ):
        result = run(*SMALL, *wrong)
        assert result.returncode == 2, wrong
        assert_one_failure(result)
