import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.small import certificate, small

from dppp.privacy.noise import FAMILIES
from dppp.protocol.messages import ListHash, QueryId
from dppp.protocol.release import ballots_offset, choose_label

LIST, QUERY = ListHash(bytes(32)), QueryId(bytes(32))


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=12))
def test_the_label_has_the_largest_count(counts: list[int]) -> None:
    label = choose_label(counts, LIST, QUERY, abstain_below=None)
    assert label is not None
    assert counts[label] == max(counts)


def test_ties_are_broken_by_hash_and_not_by_order() -> None:
    chosen = {
        choose_label([5, 5, 5], LIST, QueryId(number.to_bytes(32, "big")), abstain_below=None)
        for number in range(50)
    }
    assert chosen == {0, 1, 2}
    first = choose_label([5, 5], LIST, QUERY, abstain_below=None)
    assert first == choose_label([5, 5], LIST, QUERY, abstain_below=None)


@given(st.integers(-5, 20))
def test_below_the_threshold_there_is_no_label(threshold: int) -> None:
    label = choose_label([3, 7], LIST, QUERY, abstain_below=threshold)
    assert label == (None if threshold > 7 else 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_offset_is_what_the_lowest_shares_and_the_centre_leave(family: str) -> None:
    task = small(of=certificate(noise=family)).task
    share = task.noise.one_share()
    lowest_entry_sum = 0
    counts = lowest_entry_sum - ballots_offset(task, 4)
    assert counts == pytest.approx(-4 * (task.entry_bound - 1) / 2, abs=1)
    assert share.shares == 1
