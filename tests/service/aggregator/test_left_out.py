"""Under masks, who was at fault is asked no more, also after a restart, until it is let in."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.service.ceremony.ceremonies import AGGREGATOR, hold_masked

from dppp import calibrate, create_federation
from dppp.federation import Federation, Parties, Reply, in_process
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import Culprit, MemoryBatchStore, StoredBatches
from dppp.protocol.events import Send
from dppp.protocol.messages import BatchId
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.messages import MaskedBallot
from dppp.protocol.with_masks.teacher import MaskSide
from dppp.service.stores.batches import open_batch_store

LIAR = 5


@dataclass
class Channel:
    """Carries messages; one teacher signs that its ballots are of another roster than all others'.

    Another body under a good header would not be its fault: whoever carries it may change that.
    """

    parties: Parties
    is_lying: bool = True
    asked: set[int] = field(default_factory=set)

    def deliver(self, sends: Sequence[Send], now: int) -> list[Reply]:
        self.asked |= {send.teacher for send in sends}
        replies = in_process(self.parties.teachers)(sends, now)
        return [(teacher, self._spoilt(teacher, data)) for teacher, data in replies]

    def _spoilt(self, teacher: int, data: bytes) -> bytes:
        if teacher != LIAR or not self.is_lying or kind_of(data) != MaskedBallot.KIND:
            return data
        side = self.parties.teachers[LIAR]._side
        assert isinstance(side, MaskSide)
        ballot = replace(decode(data, MaskedBallot), roster_hash=bytes(32))
        return encode(sign(ballot, side._desk.signer))


@pytest.fixture
def parties() -> Parties:
    promise = calibrate(
        "skellam", epsilon=8, delta=1e-5, teachers=5, dropouts=1, queries=9, classes=2
    )
    return create_federation(
        name="fruit",
        class_names=["apple", "pear"],
        features=["weight"],
        certificate=promise,
        models=[lambda rows: [1] * len(rows)] * 5,
    )


def aggregator_on(store: MemoryBatchStore, parties: Parties) -> Aggregator:
    return Aggregator(task=parties.task, signer=parties.aggregator_signer, store=store)


def test_who_was_at_fault_is_asked_no_more_until_it_is_let_in(parties: Parties) -> None:
    store, channel = MemoryBatchStore(), Channel(parties)
    federation = Federation(aggregator=aggregator_on(store, parties), deliver=channel.deliver)
    assert set(federation.ask([[1.0]]).blamed) == {LIAR}
    assert LIAR in channel.asked

    for after_restart in (federation.aggregator, aggregator_on(store, parties)):
        channel.asked.clear()
        outcome = Federation(aggregator=after_restart, deliver=channel.deliver).ask(
            [[2.0]], fresh=True
        )
        assert outcome.blamed == {}
        assert channel.asked == {1, 2, 3, 4}

    (culprit,) = StoredBatches(store).let_in(LIAR)
    assert culprit.teacher == LIAR
    channel.is_lying = False
    outcome = Federation(aggregator=aggregator_on(store, parties), deliver=channel.deliver).ask(
        [[3.0]]
    )
    assert outcome.receipt is not None
    assert outcome.receipt.participants == (1, 2, 3, 4, 5)


def test_a_new_fault_counts_after_old_ones_were_forgotten() -> None:
    stored = StoredBatches(MemoryBatchStore())
    faults = [
        Culprit(teacher=teacher, batch_id=BatchId(bytes([number]) * 32), reason="lied")
        for number, teacher in enumerate((1, 2, 1))
    ]
    for fault in faults:
        stored.put_culprit(fault)
    assert stored.culprits() == tuple(faults)
    assert stored.let_in(1) == (faults[0], faults[2])
    assert stored.culprits() == (faults[1],)
    again = replace(faults[0], batch_id=BatchId(bytes([9]) * 32))
    stored.put_culprit(again)
    assert stored.culprits() == (faults[1], again)


def test_an_operator_sees_who_is_left_out_and_lets_it_in(tmp_path: Path) -> None:
    config = hold_masked(tmp_path).set_up(AGGREGATOR).configuration
    with open_batch_store(config.parent / "batches.db") as store:
        fault = Culprit(teacher=2, batch_id=BatchId(b"\1" * 32), reason="its rows do not fit")
        StoredBatches(store).put_culprit(fault)
    command = f"aggregator left-out --config {config}"
    assert json_of(command)["left_out"] == [
        {"teacher": 2, "batch": "01" * 32, "reason": "its rows do not fit"}
    ]
    assert "teacher 2: its rows do not fit" in run_dppp(command).stdout
    assert_refused(2, "not left out", run_dppp(f"{command} --let-in 1"))
    assert json_of(f"{command} --let-in 2")["left_out"] == []
    assert "Nobody is left out" in run_dppp(command).stdout
