"""The three claims of the demo's banks, in worlds that the demo does not show."""

import numpy as np
import pytest

from dppp.learning.examples.banks import BANKS, HELD_OUT, PAYMENTS, ask_banks, make_payments


@pytest.mark.parametrize("seed", [1, 2])
def test_company_beats_banks_that_each_see_a_part_and_the_worst_by_far(seed: int) -> None:
    found = ask_banks(make_payments(seed), apart=True, seed=seed, cryptography=False)
    verdict = found.verdict
    assert verdict.worth_it
    assert verdict.worth_it_to_a_teacher
    assert verdict.accuracy_expected > verdict.accuracy_single + 0.03
    assert verdict.accuracy_expected > verdict.accuracy_single_worst + 0.12
    assert found.one_vote.accuracy_expected < verdict.accuracy_majority
    assert sum(found.records) == PAYMENTS - HELD_OUT
    assert len(found.records) == BANKS
    assert min(found.records) >= 100
    assert found.kinds < 10


def test_several_votes_are_worth_it_to_an_outsider_where_one_vote_is_not() -> None:
    found = ask_banks(make_payments(1), apart=False, seed=1, cryptography=False)
    verdict = found.verdict
    assert verdict.worth_it
    assert not found.one_vote.worth_it
    assert verdict.accuracy_expected > 0.9 > verdict.accuracy_majority
    assert set(found.votes) == {16}
    assert found.deviation > BANKS


def test_a_table_is_the_same_for_the_same_seed_and_the_kind_decides() -> None:
    payments = make_payments(3)
    again = make_payments(3)
    assert np.array_equal(payments.rows, again.rows)
    assert np.array_equal(payments.labels == "fraud", payments.kinds % 3 == 0)
    assert not np.array_equal(payments.rows, make_payments(4).rows)
