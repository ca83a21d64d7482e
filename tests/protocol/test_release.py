import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.small import certificate, small

from dppp.privacy.noise import FAMILIES, pmf_of
from dppp.protocol.messages import ListHash, QueryId
from dppp.protocol.release import (
    FALSE_ALARM_RATE,
    ballots_offset,
    choose_label,
    is_plausible,
    make_releases,
    plausible_noise,
)

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


BALLOTS, CLASSES = 4, 3


@pytest.mark.parametrize("family", FAMILIES)
def test_honest_counts_are_flagged_less_often_than_stated(family: str) -> None:
    """By the exact masses of the noise of all shares: each bound, on both sides, added up."""
    noise = certificate(noise=family).noise
    of_one, of_all = plausible_noise(noise, BALLOTS, CLASSES)
    alarms = CLASSES * mass_beyond(noise, BALLOTS, of_one)
    alarms += mass_beyond(noise, BALLOTS * CLASSES, of_all)
    assert alarms <= FALSE_ALARM_RATE


def mass_beyond(noise, shares: int, bound: int) -> float:
    """The chance that this many shares are further than `bound` from what is subtracted."""
    masses = pmf_of(noise.of_teachers(shares))
    centre = noise.sum_of_centres(shares)
    lowest = masses.first
    return math.fsum(
        float(mass)
        for place, mass in enumerate(masses.masses)
        if abs(lowest + place - centre) > bound
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_counts_that_votes_and_noise_cannot_give_are_flagged(family: str) -> None:
    noise = certificate(noise=family).noise
    of_one, of_all = plausible_noise(noise, BALLOTS, CLASSES)
    assert is_plausible(noise, [0, BALLOTS, 0], BALLOTS, votes=BALLOTS)
    assert is_plausible(noise, [0, BALLOTS + of_one, -of_one], BALLOTS, votes=BALLOTS)
    assert not is_plausible(noise, [0, BALLOTS + of_one + 1, 0], BALLOTS, votes=BALLOTS)
    assert not is_plausible(noise, [0, BALLOTS, -of_one - 1], BALLOTS, votes=BALLOTS)
    assert is_plausible(noise, [BALLOTS, 0, 0], BALLOTS, votes=BALLOTS)
    each = of_all // CLASSES + BALLOTS + 1
    assert each < of_one + BALLOTS, "each count alone would pass"
    assert not is_plausible(noise, [each] * CLASSES, BALLOTS, votes=BALLOTS)
    assert not is_plausible(noise, [-each] * CLASSES, BALLOTS, votes=BALLOTS)


@given(
    sums=st.lists(st.integers(0, 900), min_size=6, max_size=6).flatmap(
        lambda some: st.permutations(some * 3)
    ),
    threshold=st.none() | st.integers(0, 60),
)
def test_a_batch_is_released_as_each_query_would_be_by_itself(
    sums: list[int], threshold: int | None
) -> None:
    task = replace(small().task, abstain_below=threshold)
    classes, offset = len(task.class_names), ballots_offset(task, BALLOTS)
    ids = [QueryId(number.to_bytes(32, "big")) for number in range(len(sums) // classes)]
    found = make_releases(task, ids, sums, participants=range(1, BALLOTS + 1), of_list=LIST)
    for place, release in enumerate(found):
        of_query = sums[place * classes : (place + 1) * classes]
        counts = tuple(each - offset for each in of_query)
        is_void = max(of_query) > BALLOTS * task.entry_bound
        label = choose_label(counts, LIST, ids[place], abstain_below=threshold)
        assert release.label == (None if is_void else label)
        assert release.counts == counts
        of_one, of_all = plausible_noise(task.noise, BALLOTS, classes)
        is_good = all(-of_one <= each <= BALLOTS + of_one for each in counts)
        is_good = is_good and -of_all <= sum(counts) <= BALLOTS + of_all
        assert release.is_flagged is not is_good
        assert all(type(each) is int for each in release.counts)
    assert len(found) == len(ids)
