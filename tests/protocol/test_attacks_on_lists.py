"""Attacks by an aggregator that chooses what is multiplied and opened."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

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
    sent_to,
    set_up,
)
from tests.small_federation import reply_of

from dppp.errors import (
    DpppError,
    ListFault,
    ListNotCertified,
    ListNotEndorsed,
    OwnBallotMissing,
    RowsChanged,
    SecondList,
)
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.trust import Trust
from dppp.protocol.lists import require_enough
from dppp.protocol.messages import BallotRequest, BatchId
from dppp.protocol.rows import name_rows, open_rows
from dppp.protocol.signing import require_certified, sign
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_paillier.teacher import PaillierSide

pytestmark = pytest.mark.attack

QUORUM = "not needed <= ballots <= len(task.teachers)"
OWN = "own_ballot not in ballot_list.ballots"

INSIDERS = "not set(named) <= set(statement.participants)"

COLLUDER = 5
VICTIM = 1


@pytest.fixture
def attacker() -> Attacker:
    """N = 5, C = 1, D = 1: four shares open, three honest noise shares are needed."""
    return Attacker(set_up(5, 1, 1), colluders=(COLLUDER,))


def _need_no_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, require_enough, QUORUM, "False")


def _need_no_own_ballot(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, PaillierSide._size_of_own_ballot, OWN, "False")


def _let_outsiders_endorse(monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, require_certified, INSIDERS, "False")


def _serve_any_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that keeps what it is given for every list, and not for one list per batch."""
    kept: dict[tuple[object, ...], bytes] = {}

    def find(what: str) -> Callable[..., bytes | None]:
        return lambda self, batch, of_list, *, attempt=1: kept.get(
            (what, id(self), batch, of_list, attempt)
        )

    def record(what: str) -> Callable[..., bytes]:
        return lambda self, batch, of_list, data, *, attempt=1: kept.setdefault(
            (what, id(self), batch, of_list, attempt), data
        )

    def find_answer(
        self: Ledger, batch: bytes, of_list: bytes, *, attempt: int = 1
    ) -> bytes | None:
        if self.find_endorsement(batch, of_list, attempt=attempt) is None:
            raise ListNotEndorsed("this list was not endorsed")
        return find("answer")(self, batch, of_list, attempt=attempt)

    monkeypatch.setattr(Ledger, "find_endorsement", find("endorsement"))
    monkeypatch.setattr(Ledger, "record_endorsement", record("endorsement"))
    monkeypatch.setattr(Ledger, "find_answer", find_answer)
    monkeypatch.setattr(Ledger, "record_answer", record("answer"))


def _open_one_ballot(attacker: Attacker) -> tuple[int, ...]:
    request = request_for(attacker.setting, [7])
    ballots = attacker.collect(request)
    opened = attacker.open(batch_of(attacker.setting, request), [ballots[VICTIM]])
    entries = attacker.entries(opened, 1)
    assert entries == entries_of(attacker.setting, ballots[VICTIM], 1)
    return entries


DEFENCES = (_need_no_quorum, _need_no_own_ballot, _let_outsiders_endorse)


@pytest.mark.parametrize(
    "taken_out",
    [(), *itertools.combinations(DEFENCES, 2)],
    ids=["all defences", "endorsers are in the list", "own ballot", "quorum"],
)
def test_one_teachers_ballot_alone_is_not_opened(
    attacker: Attacker,
    monkeypatch: pytest.MonkeyPatch,
    taken_out: tuple[Callable[[pytest.MonkeyPatch], None], ...],
) -> None:
    """Each of three defences is enough by itself."""
    for take_one_out in taken_out:
        take_one_out(monkeypatch)
    with pytest.raises(NotOpened) as caught:
        _open_one_ballot(attacker)
    kinds = {type(refusal) for refusal in caught.value.refusals.values()}
    assert kinds <= {OwnBallotMissing, ListFault, ListNotCertified}
    assert len(caught.value.refusals) >= 3


def test_without_all_defences_one_teachers_ballot_would_be_opened(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for take_one_out in DEFENCES:
        take_one_out(monkeypatch)
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


def _colluders_ballot(
    attacker: Attacker, batch: BatchId, entries: Sequence[int] = (0, 0, 0)
) -> bytes:
    return cast_anything(
        attacker.setting,
        COLLUDER,
        batch,
        pack_unchecked(attacker.setting, entries),
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
        lists = [
            [*ballots.values(), _colluders_ballot(attacker, batch, entries)]
            for entries in ([0, 0, 0], [1, 1, 1])
        ]
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


def _mix_two_inputs(attacker: Attacker, nonce: str) -> None:
    """One batch id, two inputs: what the models say on both would be in one sum.

    A querier that colludes seals the one input to some teachers and the other to the rest, under
    one row key; the aggregator asks all of them for the batch of the first.
    """
    setting = attacker.setting
    one, other = (request_for(setting, [value], nonce=nonce) for value in (7, 8))
    assert label_of(1, 7) != label_of(1, 8)
    assert one.queries.sealed != other.queries.sealed
    ballots = attacker.collect(one, of=(1, 2))
    refusals: dict[int, DpppError] = {}
    for index in (3, 4):
        asked = decode(sent_to(setting, other, index), BallotRequest)
        relabelled = sign(replace(asked, batch_id=one.batch_id), setting.aggregator_signer)
        try:
            ballots[index] = reply_of(attacker.teachers[index], encode(relabelled))
        except DpppError as refusal:
            refusals[index] = refusal
    if refusals:
        raise NotOpened(refusals)
    opened = attacker.open(batch_of(setting, one), list(ballots.values()))
    cast = {index: entries_of(setting, data, 1) for index, data in ballots.items()}
    assert attacker.entries(opened, 1) == tuple(map(sum, zip(*cast.values(), strict=True)))


def test_different_inputs_under_one_id_get_no_ballot_and_no_charge(attacker: Attacker) -> None:
    with pytest.raises(NotOpened) as caught:
        _mix_two_inputs(attacker, "all defences")
    named = {index: type(refusal) for index, refusal in caught.value.refusals.items()}
    assert named == {3: RowsChanged, 4: RowsChanged}
    assert [attacker.answered(index) for index in attacker.honest] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("function", "defence", "instead"),
    [
        (name_rows, "one.update(row)", "one.update(b'')"),
        (open_rows, 'batch_id(task.task_id, b"".join(query_ids)) != request.batch_id', "False"),
    ],
    ids=["ids that do not cover the input", "teachers that do not compare the batch id"],
)
def test_without_the_check_of_ids_two_inputs_would_be_mixed(
    attacker: Attacker,
    monkeypatch: pytest.MonkeyPatch,
    function: Callable[..., Any],
    defence: str,
    instead: str,
) -> None:
    take_out(monkeypatch, function, defence, instead)
    _mix_two_inputs(attacker, defence)
