"""Failures in the middle of a federation; short moduli, real roles and bytes."""

import numpy as np
import pytest
from tests.protocol.small import certain, certificate, rows, small

from dppp.errors import BatchAborted
from dppp.federation import Parties
from dppp.learning.examples.hospital_batches import (
    AnsweredBatch,
    Failure,
    ask_batch,
    ask_past_the_budget,
    voters_of,
)
from dppp.privacy.accounting import Spending, account
from dppp.protocol.transcript import verify_transcript


def ask(parties: Parties, number: int, *failures: Failure) -> AnsweredBatch:
    """Two new inputs in every batch."""
    asked = rows(1, 2) + np.array([0, 10 * number])
    return ask_batch(
        parties, asked, number=number, answered_before=2 * (number - 1), failures=failures
    )


@pytest.mark.parametrize("is_masked", [True, False])
def test_a_hospital_is_silent_from_its_batch_on(is_masked: bool) -> None:
    parties, failure = certain(is_masked=is_masked), Failure(hospital=3, batch=2)
    found = [ask(parties, number, failure).voters for number in (1, 2, 3)]
    assert found == [(1, 2, 3, 4, 5), (1, 2, 4, 5), (1, 2, 4, 5)]


@pytest.mark.parametrize("is_masked", [True, False])
def test_who_vanishes_after_its_ballot_has_voted_in_that_batch_and_gives_no_share(
    is_masked: bool,
) -> None:
    parties = certain(is_masked=is_masked)
    failure = Failure(hospital=3, batch=2, is_after_ballot=True)
    batches = [ask(parties, number, failure) for number in (1, 2, 3)]
    assert [3 in batch.voters for batch in batches] == [True, True, False]
    ledger = parties.ledgers[3]
    (task,) = ledger.summary().data[0].tasks
    assert (task.answered, task.batches) == (4, 2)
    for batch in batches:
        data = batch.transcript.to_bytes()
        assert verify_transcript(data, insecure_testing=True).answers == batch.answers


def test_shares_of_who_vanished_are_not_waited_for_in_vain() -> None:
    # Four of five open: with teacher 2 gone after its ballot, each of the others is needed.
    parties = small()
    assert parties.task.trust.threshold == 4
    batch = ask(parties, 1, Failure(hospital=2, batch=1, is_after_ballot=True))
    assert batch.voters == (1, 2, 3, 4, 5)


def test_one_failure_more_than_agreed_aborts() -> None:
    failures = (Failure(hospital=2, batch=1), Failure(hospital=4, batch=1))
    with pytest.raises(BatchAborted) as caught:
        ask(small(), 1, *failures)
    assert caught.value.missing == (2, 4)


def test_what_is_spent_is_that_of_all_batches_so_far() -> None:
    parties = small()
    batches = [ask(parties, number) for number in (1, 2, 3)]
    assert [batch.answered for batch in batches] == [2, 4, 6]
    for batch in batches:
        spending = Spending(noise=parties.task.noise, queries=batch.answered)
        assert batch.epsilon_spent == account([spending], parties.task.delta)
    spent = [batch.epsilon_spent for batch in batches]
    assert spent == sorted(set(spent))


def test_past_the_budget_everybody_present_refuses() -> None:
    parties = small(of=certificate(queries=2))
    failure = Failure(hospital=5, batch=2)
    batch = ask(parties, 1, failure)
    assert batch.epsilon_spent <= parties.task.epsilon
    assert voters_of(batch.transcript) == (1, 2, 3, 4, 5)
    refusals = ask_past_the_budget(parties, rows(0) + 50, number=2, failures=(failure,))
    assert [text.split(" refused")[0] for text in refusals] == [
        f"teacher {n}" for n in (1, 2, 3, 4)
    ]
    assert all("0 left of 2" in text for text in refusals)


def test_within_the_budget_nobody_refuses() -> None:
    assert ask_past_the_budget(small(), rows(0), number=1) == ()
