"""Overhead with few teachers and short keys; the paper's own sum of bytes."""

import pytest

from dppp.experiments.figures import draw_overhead
from dppp.experiments.overhead import measure_overhead
from dppp.experiments.shows import shows_overhead


@pytest.fixture(scope="module")
def rows():
    return measure_overhead(teachers=(4, 6), modulus_bits=(1024,), labels=8)


def test_both_ways_are_measured_at_every_point(rows):
    assert [(row.way, row.teachers) for row in rows] == [
        ("paper", 4), ("dppp", 4), ("paper", 6), ("dppp", 6),
    ]  # fmt: skip
    assert all(row.teacher_cpu_ms > 0 and row.aggregator_cpu_ms > 0 for row in rows)


def test_the_papers_way_moves_the_bytes_that_the_paper_says(rows):
    """768 bytes a class between aggregator and teacher at 1024 bits (Section VII)."""
    for row in rows:
        if row.way == "paper":
            assert row.teacher_sends_bytes + row.teacher_receives_bytes == 768 * row.classes


def test_a_teacher_sends_as_much_whatever_the_number_of_teachers(rows):
    ours = [row for row in rows if row.way == "dppp"]
    assert ours[0].teacher_sends_bytes == pytest.approx(ours[1].teacher_sends_bytes, rel=0.02)
    assert ours[1].teacher_receives_bytes > ours[0].teacher_receives_bytes


def test_the_figure_and_the_line_are_made_of_the_rows(rows, tmp_path):
    assert "6 teachers and 1024 bits" in shows_overhead(rows)
    assert draw_overhead(rows, tmp_path / "overhead.png").stat().st_size > 5_000
