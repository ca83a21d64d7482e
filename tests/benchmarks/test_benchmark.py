"""The benchmark's structure and sums, on small work. No test asserts a time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dppp.benchmarks import peers, whole_run
from dppp.benchmarks.report import run_benchmark
from dppp.benchmarks.steps import plot_steps
from dppp.benchmarks.workload import Workload
from dppp.errors import DpppError, InputError
from dppp.paillier.encryption import add_ballots

SMALL = Workload(teachers=5, classes=3, modulus_bits=512, s=2, labels=9, slot_bits=12)


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return run_benchmark(
        SMALL,
        proof_batches=(3, 30),
        scaling_teachers=(4, 8),
        share_teachers=(5, 9),
        with_steps=True,
    )


def test_the_object_has_every_figure_of_the_issue(result: dict[str, Any]) -> None:
    for name in (
        "cpu_ms_per_label",
        "teacher_cpu_ms_per_label",
        "paper_cpu_ms_per_label",
        "ratio_to_paper",
        "proof_cpu_ms_per_label",
        "bytes_sent_per_label",
        "list_bytes_per_label",
        "share_over_modexp",
        "table_megabytes",
    ):
        assert result[name] > 0, name
    assert result["sums_checked"] is True
    assert result["threshold"] == 4
    assert set(result["proof_cpu_ms_per_label_by_batch"]) == {"3", "9", "30"}
    assert set(result["teacher_cpu_ms_per_label_by_teachers"]) == {"4", "8"}
    assert "times the classes" in result["paper_measured"]
    assert set(result["share_over_modexp_by_teachers"]) == {"5", "9"}
    assert set(result["supplied_share_over_modexp_by_teachers"]) == {"5", "9"}
    assert set(result["supplied_powers_save_part_of_teacher_by_batch"]) == {"3", "9", "30"}


def test_ratios_are_of_figures_in_the_same_object(result: dict[str, Any]) -> None:
    ratio = result["paper_cpu_ms_per_label"] / result["cpu_ms_per_label"]
    assert result["ratio_to_paper"] == pytest.approx(ratio)
    parts = sum(result["cpu_ms_per_label_by_part"].values())
    assert parts == pytest.approx(result["cpu_ms_per_label"])


def test_the_bytes_are_those_of_the_encodings(result: dict[str, Any]) -> None:
    # 27 slots of 12 bits fit one plaintext of 1023 bits: one ciphertext of 192 bytes; one share of
    # 64 behind a header of 63; and a proof of two elements behind a tag of 20.
    assert result["bytes_sent_per_label"] == pytest.approx((192 + 63 + 64 + 20 + 128) / 9)
    assert result["list_bytes_per_label"] == pytest.approx(5 * (192 + 20 + 128) / 9)


def test_the_steps_go_from_the_paper_to_s_4_and_can_be_plotted(
    result: dict[str, Any], tmp_path: Path
) -> None:
    names = [row["step"] for row in result["steps"]]
    assert names[:5] == ["paper", "packing", "fixed base", "Pippenger", "denominators"]
    assert names[5:] == [f"root, s = {s}" for s in (1, 2, 3, 4)]
    assert result["steps"][0]["ms"] > result["steps"][1]["ms"]
    plot_steps(result, tmp_path / "steps.png")
    assert (tmp_path / "steps.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError):
        plot_steps({"steps": None}, tmp_path / "none.png")


def test_a_wrong_sum_stops_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = add_ballots
    monkeypatch.setattr(
        whole_run, "add_ballots", lambda public, ballots: honest(public, ballots[1:])
    )
    with pytest.raises(DpppError, match="differ from the plain sums"):
        run_benchmark(SMALL)


def test_peers_that_cannot_be_had_are_skipped_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", {"no-such-package-of-ours==9.9": "not there"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    found = peers.measure_peers(SMALL, (), 1.0)  # type: ignore[arg-type]
    assert "could not be installed" in found["no-such-package-of-ours==9.9"]["skipped"]  # type: ignore[operator]


def test_work_that_cannot_be_is_refused() -> None:
    for change in ({"teachers": 1}, {"classes": 1}, {"labels": 0}, {"slot_bits": 2}):
        with pytest.raises(InputError):
            replace(SMALL, **change)
