"""Faults planted in the code under test, under masks: each is noticed by the invariant it breaks.

A check that cannot fail shows nothing, so every invariant has a fault here that it notices.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.protocol.attacker import take_out
from tests.simulation.invariants import Broken
from tests.simulation.masked_adversaries import MASKED_FORGED
from tests.simulation.masked_invariants import MaskedCheck, simulate_masked
from tests.simulation.masked_world import MaskedWorld
from tests.simulation.operations import (
    AGGREGATOR,
    FORGERIES,
    Drop,
    Forge,
    Misbehave,
    Operation,
    Silence,
)
from tests.simulation.stores import Fuse, FusedLedgerStore
from tests.simulation.test_masked_simulation import COLLUDER, lie_to, small_plan
from tests.simulation.world import Refused

import dppp.protocol.teacher
from dppp.masks.opening import open_counts
from dppp.privacy.ledger.batch import BatchAccount
from dppp.privacy.ledger.book import Book
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.noise import Noise
from dppp.privacy.sampling import sampling_table
from dppp.privacy.trust import Trust
from dppp.protocol import with_masks
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch import Batch
from dppp.protocol.events import Abort
from dppp.protocol.messages import Endorsement
from dppp.protocol.receipt import Receipt
from dppp.protocol.teacher import Teacher
from dppp.protocol.with_masks.answers import make_receipt
from dppp.protocol.with_masks.batch import MaskBatch
from dppp.protocol.with_masks.disputes import Disputes
from dppp.protocol.with_masks.endorsements import Endorsements
from dppp.protocol.with_masks.keys import MemoryEpochSecrets
from dppp.protocol.with_masks.teacher import MaskSide

Plant = Callable[[pytest.MonkeyPatch], None]


def _set(place: Any, name: str, value: Any) -> Plant:
    return lambda monkeypatch: monkeypatch.setattr(place, name, value)


def _replace(function: Callable[..., Any], defence: str, instead: str) -> Plant:
    return lambda monkeypatch: take_out(monkeypatch, function, defence, instead)


def _last(*parts: Any, **_: Any) -> Any:
    """A ledger that gives back what it should keep."""
    return parts[-1]


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _forget_the_ballot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cast anew whenever it is asked; what is kept is the first."""
    honest = Ledger.record_ballot
    take_out(
        monkeypatch,
        Teacher.vote,
        "stored = self._ledger.find_ballot(request.batch_id, asked.attempt)",
        "stored = None",
    )
    monkeypatch.setattr(Ledger, "check_can_answer", _nothing)

    def record(ledger: Ledger, task: bytes, batch: bytes, queries: Any, ballot: bytes) -> bytes:
        if ledger.find_ballot(batch) is None:
            honest(ledger, task, batch, queries, ballot)
        return ballot

    monkeypatch.setattr(Ledger, "record_ballot", record)


def _serve_any_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that keeps what it is given for every list, and not for one list per attempt."""

    def is_endorsed(batch: BatchAccount, list_hash: bytes, attempt: int) -> bool:
        return (batch.list_hash, batch.attempt) == (list_hash, attempt)

    monkeypatch.setattr(BatchAccount, "is_endorsed", is_endorsed)


def _believe_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (dppp.protocol.teacher, with_masks.teacher, with_masks.disputes):
        monkeypatch.setattr(module, "require_from_aggregator", _nothing)


def _charge_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Ledger.record_ballot

    def record(
        ledger: Ledger, task: bytes, batch: bytes, queries: tuple[bytes, ...], ballot: bytes
    ) -> bytes:
        honest(ledger, task, bytes(32), (bytes(32),), b"of nobody")
        return honest(ledger, task, batch, queries, ballot)

    monkeypatch.setattr(Ledger, "record_ballot", record)


def _add_one_to_what_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is opened: whoever verifies makes the same mistake."""
    honest = open_counts

    def open_counts_wrongly(*parts: Any, **named: Any) -> Any:
        return honest(*parts, **named) + 1

    for module in (with_masks.answers, with_masks.verification):
        monkeypatch.setattr(module, "open_counts", open_counts_wrongly)


def _name_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def abort(batch: Batch, reason: str, **_: Any) -> None:
        batch.end_with(Abort(reason=reason))

    monkeypatch.setattr(Batch, "abort", abort)


def _tell_another_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, asked = Aggregator.outcome, []

    def outcome(aggregator: Aggregator, batch: Any) -> Any:
        found = honest(aggregator, batch)
        asked.append(found)
        if isinstance(found, Receipt) and len(asked) % 3 == 0:
            return replace(found, attempt=found.attempt + 1)
        return found

    monkeypatch.setattr(Aggregator, "outcome", outcome)


def _keep_no_epoch_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryEpochSecrets, "put_once", _last)


def _draw_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(noise: Noise, count: int, _: object) -> NDArray[np.int64]:
        return np.full(count, -sampling_table(noise).lowest)

    monkeypatch.setattr(dppp.protocol.teacher, "draw_raised_shares", none)


def _show_roots_to_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Disputes, "_require_withdrawn", _nothing)


def silent(*teachers: int) -> list[Operation]:
    return [Silence(teacher=each, since=0, until=10**6) for each in teachers]


ALL = (1, 2, 3, 4)
SMALL, WITH_DISPUTES = (5, 1, 1), (9, 1, 2)
NO_DROPOUTS = (12, 2, 0)
"""Ten rows open a list, and ten honest noise shares are needed: two colluders make up for noise."""
LOST_BALLOT = [Drop(sender=1, receiver=AGGREGATOR, nth=3), *silent(5)]
"""After its key, which is asked for twice in the first second; it is waited for."""
BAD_DEALER = Misbehave(teacher=COLLUDER, how="other rows")


@pytest.mark.parametrize(
    ("plant", "trust", "operations", "noticed"),
    [
        pytest.param(
            _set(MaskBatch, "advance", _nothing),
            SMALL,
            [],
            "never ended",
            id="an aggregator that waits for ever",
        ),
        pytest.param(
            _tell_another_ending,
            SMALL,
            [],
            "ended twice",
            id="an aggregator that tells two endings",
        ),
        pytest.param(
            _name_nobody,
            SMALL,
            silent(3, 4),
            "aborted without a name",
            id="an aggregator that names nobody",
        ),
        pytest.param(
            _add_one_to_what_is_opened,
            SMALL,
            [],
            "other sums than were masked",
            id="sums that are opened wrongly, and verified wrongly",
        ),
        pytest.param(
            _replace(make_receipt, "sums = open_counts(", "sums = 1 + open_counts("),
            SMALL,
            [],
            "was released, and",
            id="an aggregator that opens something else than it says",
        ),
        pytest.param(
            _replace(Endorsements.endorsers, "self._certified[:count]", "self._certified[:1]"),
            SMALL,
            [],
            "1 teachers endorsed|was released, and",
            id="an aggregator that leaves endorsements out",
        ),
        pytest.param(
            _set(Ledger, "record_ballot", _last),
            SMALL,
            [],
            "left before it was stored",
            id="a teacher that keeps no ballot",
        ),
        pytest.param(
            _set(Ledger, "record_endorsement", _last),
            SMALL,
            [],
            "left before it was stored",
            id="a teacher that keeps no endorsement",
        ),
        pytest.param(
            _set(Ledger, "record_answer", _last),
            SMALL,
            [],
            "left before it was stored",
            id="a teacher that keeps no answer",
        ),
        pytest.param(
            _set(Ledger, "record_withdrawal", _last),
            WITH_DISPUTES,
            [BAD_DEALER],
            "left before it was stored",
            id="a teacher that keeps no withdrawal",
        ),
        pytest.param(
            _keep_no_epoch_secret,
            SMALL,
            [],
            "left before it was stored",
            id="a teacher that keeps no secret of its epoch",
        ),
        *(
            pytest.param(
                _believe_anybody,
                SMALL,
                [Forge(batch=0, victims=(1, 2, 3, 4, 5), kind=kind, how=how, times=1)],
                "without the aggregator having asked",
                id=f"a teacher that believes anybody: {kind}, {how}",
            )
            for kind in MASKED_FORGED
            for how in FORGERIES
        ),
        pytest.param(
            _forget_the_ballot,
            SMALL,
            LOST_BALLOT,
            "left before it was stored",
            id="a teacher that forgets its ballot",
        ),
        pytest.param(
            _serve_any_list,
            SMALL,
            [lie_to(*ALL, how="without one")],
            "two of endorsement",
            id="a teacher that endorses two lists",
        ),
        pytest.param(
            _set(BatchAccount, "_require_not_withdrawn", _nothing),
            SMALL,
            [lie_to(*ALL, how="asks to withdraw")],
            "opened what it had withdrawn",
            id="a teacher that opens what it withdrew",
        ),
        pytest.param(
            _set(BatchAccount, "_require_unanswered", _nothing),
            SMALL,
            [lie_to(*ALL, how="asks to withdraw")],
            "withdrew what it had opened",
            id="a teacher that withdraws what it opened",
        ),
        pytest.param(
            _replace(MaskSide._take_preparation, "waiting.pop()", "waiting[-1]"),
            SMALL,
            [],
            "is in two ballots",
            id="a teacher that uses a dealing twice",
        ),
        pytest.param(
            _draw_no_noise, SMALL, [], "votes plus noise", id="a teacher that draws no noise"
        ),
        pytest.param(
            _replace(
                MaskSide._open,
                "not is_own or message.roster_hash != own.roster_hash",
                "False",
            ),
            SMALL,
            [lie_to(1, how="without the victim")],
            "endorsed what is not so",
            id="a teacher that endorses a list without its ballot",
        ),
        *(
            pytest.param(
                _set(MaskSide, "_require_certified", _nothing),
                SMALL,
                [lie_to(*ALL, how=how)],
                "opened without t endorsements",
                id=f"a teacher that needs no endorsements: {how}",
            )
            for how in ("too few endorsers", "endorser twice")
        ),
        pytest.param(
            _show_roots_to_anybody,
            SMALL,
            [lie_to(*ALL, how="asks for roots")],
            "what only t withdrawals, or an answer, allow|can be opened",
            id="a teacher that shows its root to anybody",
        ),
        pytest.param(
            _set(Disputes, "_was_answered", lambda *_: True),
            SMALL,
            [lie_to(*ALL, how="asks for seed rows")],
            "what only t withdrawals, or an answer, allow",
            id="a teacher that shows rows of seeds before it answered",
        ),
        pytest.param(
            _set(Trust, "ballots_needed", property(lambda trust: trust.threshold)),
            NO_DROPOUTS,
            [*silent(9, 10), *(Misbehave(teacher=each, how="bias") for each in (11, 12))],
            "honest noise shares can be opened",
            id="a quorum that is not asked for",
        ),
        pytest.param(
            _show_roots_to_anybody,
            SMALL,
            [lie_to(1, how="gives back")],
            "did not charge it",
            id="a teacher that gives a charge back to anybody",
        ),
        pytest.param(
            _charge_for_more,
            SMALL,
            [],
            "queries, and .* were asked",
            id="a teacher that charges for what nobody asked",
        ),
        pytest.param(
            _replace(
                MaskBatch._take_ballot,
                "self._require_signed(ballot, teacher)",
                "self.blame(teacher, 'it voted') if teacher == 3 else None",
            ),
            SMALL,
            [],
            "honest teacher 3 is blamed",
            id="an aggregator that blames whoever votes",
        ),
    ],
)
def test_the_simulation_notices_under_masks(
    monkeypatch: pytest.MonkeyPatch,
    plant: Plant,
    trust: tuple[int, int, int],
    operations: list[Operation],
    noticed: str,
) -> None:
    plan = small_plan(*operations, trust=trust)
    simulate_masked(plan)
    plant(monkeypatch)
    with pytest.raises(Broken, match=noticed):
        simulate_masked(plan)


def _run(*operations: Operation) -> MaskedCheck:
    world = MaskedWorld(small_plan(*operations))
    world.run()
    return MaskedCheck(world)


def test_two_ballots_of_an_attempt_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By themselves: not only because the second was not stored."""
    _forget_the_ballot(monkeypatch)
    check = _run(*LOST_BALLOT)
    with pytest.raises(Broken, match="two of masked ballot"):
        check.nothing_is_said_twice_in_other_words()


def test_two_lists_that_can_be_opened_are_noticed_under_masks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By themselves: not only because somebody endorsed both."""
    kept: dict[tuple[object, ...], bytes] = {}

    def find(what: str) -> Callable[..., bytes | None]:
        return lambda ledger, batch, of_list, *, attempt=1: kept.get(
            (what, id(ledger), batch, of_list, attempt)
        )

    def record(what: str) -> Callable[..., bytes]:
        return lambda ledger, batch, of_list, data, *, attempt=1: kept.setdefault(
            (what, id(ledger), batch, of_list, attempt), data
        )

    for what in ("endorsement", "answer"):
        monkeypatch.setattr(Ledger, f"find_{what}", find(what))
        monkeypatch.setattr(Ledger, f"record_{what}", record(what))
    monkeypatch.setattr(MaskSide, "_require_certified", _nothing)
    victims = (2, 3, 4, 5)  # all of whom are shown the list without teacher 1
    check = _run(*(lie_to(*victims, how=how) for how in ("without one", "another list certified")))
    with pytest.raises(Broken, match="two lists of one batch can be opened"):
        check.at_most_one_list_of_a_batch_can_be_opened()


def test_a_root_of_a_list_that_can_be_opened_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself: not only because too few had withdrawn."""
    _show_roots_to_anybody(monkeypatch)
    check = _run(lie_to(1, how="asks for roots"))
    with pytest.raises(Broken, match="root was shown of a list that can be opened"):
        check.what_can_be_opened_has_enough_noise_and_no_other_secret()


def _refuse(check: MaskedCheck) -> None:
    check._world.asked[0].endings[:] = [Refused(reason="it was not taken")]


def _lose_the_ledger(check: MaskedCheck) -> None:
    store = FusedLedgerStore(Fuse())
    check._world.setting.new_ledger(1, store)
    check._world.homes[1].store = store


def _forget_endorsements(check: MaskedCheck) -> None:
    for place in [each for each in check._tap.said if each[0] == Endorsement.KIND]:
        del check._tap.said[place]


def _mix_up_receipts(check: MaskedCheck) -> None:
    first, second = check._world.asked
    second.endings[:] = first.endings


@pytest.mark.parametrize(
    ("tamper", "noticed"),
    [
        (_refuse, "was refused, and"),
        (_mix_up_receipts, "something else than its receipt"),
        (lambda check: check._tap.ballots.clear(), "never cast"),
        (_forget_endorsements, "endorsed something else"),
        (lambda check: check._tap.lists.clear(), "never sent"),
        (_lose_the_ledger, "did not charge it"),
    ],
    ids=[
        "a batch that was refused and charged",
        "a transcript of another batch",
        "a ballot that nobody cast",
        "a receipt that others endorsed",
        "a list that nobody sent",
        "a release that was not charged",
    ],
)
def test_what_cannot_be_planted_is_noticed_when_the_record_says_so(
    tamper: Callable[[MaskedCheck], None], noticed: str
) -> None:
    check = _run()
    check.everything()
    tamper(check)
    with pytest.raises(Broken, match=noticed):
        check.everything()


def test_a_ballot_that_left_without_a_charge_is_noticed() -> None:
    """By itself: not only because it was released."""
    check = _run()
    _lose_the_ledger(check)
    with pytest.raises(Broken, match="masked ballot of teacher 1 left, and is not charged"):
        check.what_left_was_charged_once()


def test_a_budget_that_was_passed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = small_plan(batches=(16, 16, 16, 16))
    simulate_masked(plan)
    monkeypatch.setattr(Book, "_require_queries_left", _nothing)
    with pytest.raises(Broken, match="passed its budget"):
        simulate_masked(plan)
