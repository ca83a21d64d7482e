"""`dppp verify` under masks: a receipt says what it leaves to the aggregator's word."""

from pathlib import Path

import pytest
from tests.cli.commands import json_of, run_dppp

from dppp import Federation, calibrate, create_federation, in_process
from dppp.federation import Outcome

WORD = "the aggregator's word"


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    promise = calibrate("skellam", epsilon=8, delta=1e-5, teachers=4, queries=5, classes=2)
    parties = create_federation(
        name="fruit",
        class_names=["apple", "pear"],
        features=["weight"],
        certificate=promise,
        models=[lambda rows: [1] * len(rows)] * 4,
    )
    deliver = in_process(parties.teachers)
    return Federation(aggregator=parties.aggregator, deliver=deliver).ask([[150.0], [170.0]])


def test_the_sums_of_a_receipt_are_the_aggregators_word(outcome: Outcome, tmp_path: Path) -> None:
    assert outcome.receipt is not None
    path = tmp_path / "receipt"
    path.write_bytes(outcome.receipt.to_bytes())
    found = json_of(f"verify {path}")
    assert (found["cryptosystem"], found["are_sums_checked"]) == ("masks", False)
    shown = run_dppp(f"verify {path}").stdout
    assert "sealed by masks" in shown
    assert WORD in shown


def test_a_transcript_shows_that_they_are_those_of_the_list(
    outcome: Outcome, tmp_path: Path
) -> None:
    assert outcome.transcript is not None
    path = tmp_path / "transcript"
    path.write_bytes(outcome.transcript.to_bytes())
    found = json_of(f"verify {path}")
    assert (found["cryptosystem"], found["are_sums_checked"]) == ("masks", True)
    assert WORD not in run_dppp(f"verify {path}").stdout
