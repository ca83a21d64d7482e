"""Attacks by an aggregator that chooses what is multiplied and opened."""

import itertools
from collections.abc import Callable

import pytest
from tests.protocol.attacker import Attacker, NotOpened, take_out
from tests.protocol.parties import (
    batch_of,
    cast_anything,
    entries_of,
    label_of,
    pack_unchecked,
    request_for,
    seeded,
    set_up,
)

from dppp.errors import BallotUnknown, ListFault, OwnBallotMissing, SecondList
from dppp.privacy.ledger_book import Book
from dppp.privacy.trust import Trust
from dppp.protocol.ballots import check_list
from dppp.protocol.messages import BatchId, query_id
from dppp.protocol.teacher import Teacher

QUORUM = "not needed <= len(ballot_list.ballots) <= len(task.teachers)"
OWN = "own is None or own not in ballot_list.ballots"
ONE_LIST = "batch.list_hash is None:\n        return"

COLLUDER = 5
VICTIM = 1


@pytest.fixture
def attacker() -> Attacker:
    """N = 5, C = 1, D = 1: four shares open, three honest noise shares are needed."""
    return Attacker(set_up(5, 1, 1), colluders=(COLLUDER,))


def _need_no_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, check_list, QUORUM, "False")


def _need_no_own_ballot(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, Teacher._size_of_own_ballot, OWN, "own is None")


def _serve_any_list(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, Book.is_served, ONE_LIST, "batch.list_hash != list_hash:\n        return")


def _open_one_ballot(attacker: Attacker) -> tuple[int, ...]:
    request = request_for(attacker.setting, [7])
    ballots = attacker.collect(request)
    opened = attacker.open(batch_of(attacker.setting, request), [ballots[VICTIM]])
    entries = attacker.entries(opened, 1)
    assert entries == entries_of(attacker.setting, ballots[VICTIM], 1)
    return entries


@pytest.mark.parametrize(
    "standing",
    [
        (),
        (_need_no_quorum,),
        (_need_no_own_ballot,),
    ],
    ids=["both defences", "own ballot alone", "quorum alone"],
)
def test_one_teachers_ballot_alone_is_not_opened(
    attacker: Attacker,
    monkeypatch: pytest.MonkeyPatch,
    standing: tuple[Callable[[pytest.MonkeyPatch], None], ...],
) -> None:
    for take_one_out in standing:
        take_one_out(monkeypatch)
    with pytest.raises(NotOpened) as caught:
        _open_one_ballot(attacker)
    kinds = {type(refusal) for refusal in caught.value.refusals.values()}
    assert kinds <= {OwnBallotMissing, ListFault}
    assert len(caught.value.refusals) >= 3


def test_without_both_defences_one_teachers_ballot_would_be_opened(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    _need_no_quorum(monkeypatch)
    _need_no_own_ballot(monkeypatch)
    assert len(_open_one_ballot(attacker)) == 3


def _open_a_subset() -> int:
    """How many honest noise shares are in a list that the attacker opened."""
    attacker = Attacker(set_up(8, 1, 0), colluders=(8,))
    request = request_for(attacker.setting, [7])
    ballots = list(attacker.collect(request).values())[:5]
    attacker.open(batch_of(attacker.setting, request), ballots)
    return len(ballots)


def test_a_subset_below_the_quorum_is_not_opened() -> None:
    with pytest.raises(NotOpened) as caught:
        _open_a_subset()
    named = {index: type(refusal) for index, refusal in caught.value.refusals.items()}
    assert named == dict.fromkeys(range(1, 6), ListFault) | dict.fromkeys((6, 7), OwnBallotMissing)


def test_without_the_quorum_a_subset_with_too_little_noise_would_be_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _need_no_quorum(monkeypatch)
    assert _open_a_subset() < set_up(8, 1, 0).task.trust.honest_shares


def _subtract_two_lists(attacker: Attacker) -> tuple[int, ...]:
    """A list with the victim minus a list without: the victim's ballot alone."""
    request = request_for(attacker.setting, [7])
    batch = batch_of(attacker.setting, request)
    ballots = attacker.collect(request)
    whole = attacker.entries(attacker.open(batch, list(ballots.values())), 1)
    assert len(ballots) == attacker.setting.task.trust.ballots_needed
    ballots[COLLUDER] = _colluders_ballot(attacker, batch)
    del ballots[VICTIM]
    rest = attacker.entries(attacker.open(batch, list(ballots.values())), 1)
    # The colluder voted zero, so its ballot changes nothing.
    return tuple(one - other for one, other in zip(whole, rest, strict=True))


def _colluders_ballot(attacker: Attacker, batch: BatchId) -> bytes:
    return cast_anything(
        attacker.setting,
        COLLUDER,
        batch,
        pack_unchecked(attacker.setting, [0, 0, 0]),
        source=seeded("colluder").randbytes,
    )


def test_no_second_list_of_a_batch_is_opened(attacker: Attacker) -> None:
    with pytest.raises(NotOpened) as caught:
        _subtract_two_lists(attacker)
    assert {type(refusal) for refusal in caught.value.refusals.values()} == {SecondList}
    assert set(caught.value.refusals) == set(attacker.honest)


def test_if_teachers_served_two_lists_their_difference_would_be_one_ballot(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    _serve_any_list(monkeypatch)
    difference = _subtract_two_lists(attacker)
    ballot = attacker.ledgers[VICTIM].find_ballot(
        batch_of(attacker.setting, request_for(attacker.setting, [7]))
    )
    assert ballot is not None
    assert difference == entries_of(attacker.setting, ballot, 1)


def _splits_that_open_two_lists(name: str) -> int:
    """In how many ways of showing each honest teacher one of two lists both are opened."""
    setting = set_up(5, 1, 1, name)
    successes = 0
    for number, first in enumerate(_subsets((1, 2, 3, 4))):
        attacker = Attacker(setting, colluders=(COLLUDER,))
        request = request_for(setting, [7], nonce=number)
        batch = batch_of(setting, request)
        ballots = attacker.collect(request)
        lists = [list(ballots.values()), [*ballots.values(), _colluders_ballot(attacker, batch)]]
        second = [index for index in attacker.honest if index not in first]
        opened = 0
        for ballot_list, shown_to in zip(lists, (first, second), strict=True):
            try:
                attacker.open(batch, ballot_list, of=shown_to)
                opened += 1
            except NotOpened:
                pass
        successes += opened == 2
    return successes


def _subsets(items: tuple[int, ...]) -> list[tuple[int, ...]]:
    sizes = range(len(items) + 1)
    return [each for size in sizes for each in itertools.combinations(items, size)]


def test_no_split_of_the_honest_teachers_opens_two_lists() -> None:
    assert _splits_that_open_two_lists("test") == 0


def test_with_a_threshold_one_smaller_some_split_would_open_two_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    smaller = property(lambda trust: (trust.teachers + trust.colluders) // 2)
    monkeypatch.setattr(Trust, "threshold", smaller)
    assert _splits_that_open_two_lists("smaller threshold") > 0


def _mix_two_inputs(attacker: Attacker) -> None:
    """One id, two inputs: what the models say on both would be in one sum."""
    setting = attacker.setting
    one, other = (request_for(setting, [value], nonce="the same") for value in (7, 8))
    assert [query.nonce for query in one.queries] == [query.nonce for query in other.queries]
    assert label_of(1, 7) != label_of(1, 8)
    ballots = attacker.collect(one, of=(1, 2)) | attacker.collect(other, of=(3, 4))
    attacker.open(batch_of(setting, one), list(ballots.values()))


def test_different_inputs_under_one_id_cannot_be_opened(attacker: Attacker) -> None:
    with pytest.raises(NotOpened) as caught:
        _mix_two_inputs(attacker)
    named = {index: type(refusal) for index, refusal in caught.value.refusals.items()}
    assert named == {1: ListFault, 2: ListFault, 3: BallotUnknown, 4: BallotUnknown}


def test_if_ids_did_not_cover_the_input_two_inputs_would_be_mixed(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(monkeypatch, query_id, "input_digest(query.input)", "bytes(32)")
    _mix_two_inputs(attacker)
