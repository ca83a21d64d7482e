"""Channels that belong to no teacher of the task."""

from tests.protocol.attacker import Attacker
from tests.protocol.parties import batch_of, request_for, sent_to, set_up
from tests.protocol.recording import RecordingAggregator

from dppp.protocol.batch_store import MemoryBatchStore


def test_a_channel_that_is_no_teachers_changes_nothing() -> None:
    """Else a few strangers with broken ballots would end the vote before the teachers have cast."""
    attacker = Attacker(set_up(5, 1, 1))
    setting, request = attacker.setting, request_for(attacker.setting, [7])
    aggregator = RecordingAggregator(setting, MemoryBatchStore())
    aggregator.start(request, now=0)
    ballot = attacker.collect(request)[1]
    for stranger in (-1, 0, 6, 7, 8, 9):
        assert aggregator.receive(stranger, ballot, now=0).sends == ()
    batch = batch_of(setting, request)
    assert aggregator.faults(batch) == {}
    assert aggregator.outcome(batch) is None
    assert sent_to(setting, request, 1) in {send.data for send in aggregator.remind().sends}
