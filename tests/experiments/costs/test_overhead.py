"""Overhead with few teachers and short keys; the paper's own sum of bytes."""

import pytest
from tests.vectors.make_paillier import PRIMES

from dppp.errors import DpppError
from dppp.experiments.costs import paper_protocol
from dppp.experiments.costs.overhead import draw_overhead, measure_overhead, summarise_overhead
from dppp.experiments.costs.whole_federation import run_federation
from dppp.paillier.dealer import deal_from_primes
from dppp.paillier.encryption import add
from dppp.paillier.keys import Decryption
from dppp.protocol.messages import BallotList, BallotRequest, CertifiedList


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


@pytest.mark.filterwarnings("ignore::dppp.errors.WeakModulusWarning")
def test_a_teachers_bytes_are_those_of_every_round():
    """A ballot, an endorsement and shares go out; a request and two lists come in."""
    run = run_federation(teachers=4, classes=2, labels=3, modulus_bits=1024, s=1)
    rounds = run.meter.rounds
    assert list(rounds) == [BallotRequest.KIND, BallotList.KIND, CertifiedList.KIND]
    assert [len(each.asked_bytes) for each in rounds.values()] == [4, 3, 3], "N, then t"
    assert [len(each.answer_bytes) for each in rounds.values()] == [4, 3, 3]
    assert 0 < run.meter.teachers_cpu_seconds < run.cpu_seconds


def test_a_wrong_sum_of_the_papers_protocol_is_noticed(monkeypatch):
    key = deal_from_primes(
        PRIMES,
        teachers=3,
        threshold=2,
        s=1,
        decryption=Decryption.PAPER,
        insecure_testing=True,
    )
    assert paper_protocol.run_paper(key, [1, 0, 1]).total == 2
    honest = add
    monkeypatch.setattr(paper_protocol, "add", lambda public, all_: honest(public, all_[1:]))
    with pytest.raises(DpppError, match="do not trust these times"):
        paper_protocol.run_paper(key, [1, 0, 1])


def test_a_teacher_sends_as_much_whatever_the_number_of_teachers(rows):
    ours = [row for row in rows if row.way == "dppp"]
    assert ours[0].teacher_sends_bytes == pytest.approx(ours[1].teacher_sends_bytes, rel=0.02)
    assert ours[1].teacher_receives_bytes > ours[0].teacher_receives_bytes


def test_the_figure_and_the_line_are_made_of_the_rows(rows, tmp_path):
    assert "6 teachers and 1024 bits" in summarise_overhead(rows)
    assert draw_overhead(rows, tmp_path / "overhead.png").stat().st_size > 5_000
