"""What the aggregator says has happened: each thing once, in order, with names."""

from dataclasses import replace

from tests.protocol.one_batch import DEADLINE, NOW, OneBatch, start_batch
from tests.protocol.parties import request_for
from tests.small_federation import reply_of

from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import Kind, MemoryBatchStore
from dppp.protocol.events import (
    Aborted,
    AnswerCounted,
    BallotCounted,
    EndorsementCounted,
    Event,
    ListClosed,
    Output,
    Released,
    Stage,
    Started,
    TeacherBlamed,
)
from dppp.protocol.messages import Ballot
from dppp.protocol.receipt import Receipt
from dppp.protocol.wire import decode, encode


def run_to_the_end(
    running: OneBatch, output: Output, aggregator: Aggregator | None = None
) -> list[Event]:
    """Every teacher answers at once, one after the other."""
    events = list(output.events)
    while output.sends:
        replies = [
            (send.teacher, reply_of(running.teachers[send.teacher], send.data, now=NOW))
            for send in output.sends
        ]
        output = Output()
        for teacher, data in replies:
            output += (aggregator or running.aggregator).receive(teacher, data, now=NOW)
        events += output.events
    return events


def test_a_batch_tells_its_whole_story_once_and_in_order() -> None:
    running = start_batch()
    threshold = running.setting.task.trust.threshold
    request = request_for(running.setting, [1, 2], nonce=7, deadline=DEADLINE)
    events = run_to_the_end(running, running.aggregator.start(request, now=NOW))
    kinds = [type(event) for event in events]
    assert kinds == [
        Started,
        *[BallotCounted] * 5,
        ListClosed,
        *[EndorsementCounted] * threshold,
        *[AnswerCounted] * threshold,
        Released,
    ]
    assert {event.batch for event in events} == {request.batch_id}
    ballots = [event for event in events if isinstance(event, BallotCounted)]
    assert [(event.teacher, event.count) for event in ballots] == [(n, n) for n in range(1, 6)]
    released = events[-1]
    assert isinstance(released, Released)
    assert released.receipt == running.aggregator.outcome(request.batch_id)


def test_an_abort_names_who_was_missing_and_who_was_at_fault() -> None:
    running = start_batch()
    running.vote(1, 2)
    good = decode(running.ballots[3], Ballot)
    bad = running.signed(replace(good, ciphertexts=good.ciphertexts[:-1]), by=3)
    blamed = running.aggregator.receive(3, bad, now=NOW).events
    assert [type(event) for event in blamed] == [TeacherBlamed]
    events = running.aggregator.tick(DEADLINE).events
    (ended,) = events
    assert isinstance(ended, Aborted)
    assert (ended.abort.missing, ended.abort.culprits) == ((4, 5), (3,))
    assert running.aggregator.tick(DEADLINE + 1) == Output()


def test_status_and_events_say_the_same() -> None:
    running = start_batch()
    running.vote(1, 2, 3, 4, 5)
    assert running.status.stage is Stage.ENDORSEMENTS
    running.endorse(1, 2, 3, 4)
    assert running.status.stage is Stage.ANSWERS
    (event,) = running.aggregator.receive(1, encode(running.shares_of(1)), now=NOW).events
    assert event == AnswerCounted(batch=running.batch, teacher=1, count=1)
    assert running.status.answerers == (1,)


def test_a_stored_list_that_somebody_changed_ends_its_batch() -> None:
    """It can never be opened, and whoever waits for it should know."""
    running = start_batch()
    store = MemoryBatchStore()
    request = request_for(running.setting, [1], deadline=DEADLINE)
    store.put_once(running.batch, Kind.LIST, running.list_of(1, 2, 3, 4)[:-1])

    def fresh() -> Aggregator:
        setting = running.setting
        return setting.aggregator(store)

    (ended,) = fresh().start(request, now=NOW).events
    assert isinstance(ended, Aborted)
    assert "refused" in ended.abort.reason
    again = fresh()
    assert again.unfinished() == ()
    assert again.outcome(running.batch) == ended.abort


def test_what_is_unfinished_is_found_and_what_has_ended_is_known() -> None:
    running = start_batch()
    store = MemoryBatchStore()
    setting = running.setting

    def fresh() -> Aggregator:
        return setting.aggregator(store)

    first = fresh()
    done = request_for(setting, [1], nonce=1, deadline=DEADLINE)
    waiting = request_for(setting, [2], nonce=2, deadline=DEADLINE)
    run_to_the_end(running, first.start(done, now=NOW), first)
    first.start(waiting, now=NOW)
    second = fresh()
    assert second.unfinished() == (waiting.batch_id,)
    receipt = second.outcome(done.batch_id)
    assert isinstance(receipt, Receipt)
    assert second.known_release(receipt.query_ids[:32]) == receipt.answers[0]
    output = second.adopt(waiting.batch_id, now=NOW)
    assert [type(event) for event in output.events] == [Started]
    assert len(output.sends) == 5
