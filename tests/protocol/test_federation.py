from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from gmpy2 import mpz
from tests.protocol.small import (
    NOW,
    certificate,
    federation,
    first_feature,
    request_for,
    rows,
    small,
)
from tests.small_federation import SmallFederation, reply_of

from dppp.errors import BatchAborted, InputError, QueriesExhausted
from dppp.federation import Federation, Parties, in_process
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.privacy.noise import FAMILIES
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.events import Send
from dppp.protocol.messages import (
    BallotList,
    CertifiedList,
    SignedShares,
    TaskId,
)
from dppp.protocol.receipt import Receipt
from dppp.protocol.signing import sign
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.wire import decode, encode, kind_of


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_is_answered_and_its_transcript_verifies(family: str) -> None:
    parties = small(of=certificate(noise=family))
    outcome = federation(parties).ask(rows(*[1] * 20))
    assert outcome.transcript is not None
    verified = verify_transcript(outcome.transcript.to_bytes(), insecure_testing=True)
    assert verified.answers == outcome.answers
    assert verified.ballots == 5
    spread = np.sqrt(parties.task.noise.variance * 5 / 3)
    average = np.mean([answer.counts for answer in outcome.answers], axis=0)
    assert np.all(np.abs(average - [0, 5, 0]) < 6 * spread / np.sqrt(20) + 0.5)


def test_dropouts_within_the_bound_are_survived() -> None:
    parties = small()
    outcome = federation(parties, without=[3]).ask(rows(0, 1))
    assert outcome.transcript is not None
    verified = verify_transcript(outcome.transcript.to_bytes(), insecure_testing=True)
    assert verified.ballots == 4


def test_one_dropout_too_many_aborts_and_names_the_missing() -> None:
    parties = small()
    with pytest.raises(BatchAborted) as caught:
        federation(parties, without=[2, 5]).ask(rows(0, 1))
    assert caught.value.missing == (2, 5)
    assert caught.value.culprits == ()


def test_where_everybodys_budget_is_spent_the_querier_is_told() -> None:
    parties = small()
    asked = federation(parties)
    asked.ask(rows(*[0] * 40))
    with pytest.raises(QueriesExhausted, match="0 left of 40"):
        asked.ask([[1.0, 99.0]])
    assert len(asked.ask(rows(*[0] * 40)).answers) == 40


def test_where_one_teacher_has_budget_left_the_refusals_are_silence() -> None:
    parties = small()
    federation(parties, without=[3]).ask(rows(*[0] * 40))
    with pytest.raises(BatchAborted) as caught:
        federation(parties).ask([[1.0, 99.0]])
    assert caught.value.missing == (1, 2, 4, 5)


def test_a_dropout_between_vote_and_opening_is_survived() -> None:
    parties = small()
    here = in_process(parties.teachers)

    def deliver(sends: Sequence[Send], now: int) -> list[tuple[int, bytes]]:
        return [
            (teacher, data)
            for teacher, data in here(sends, now)
            if not (teacher == 2 and b"decryption shares" in data[:60])
        ]

    outcome = Federation(aggregator=parties.aggregator, deliver=deliver).ask(rows(0, 1))
    assert len(outcome.answers) == 2


def test_a_wrong_share_is_named_and_replaced() -> None:
    """One of those asked sends shares that are no roots; the others prove theirs, it cannot."""
    parties = small()
    here = in_process(parties.teachers)
    proved: list[int] = []
    liars: list[int] = []

    def deliver(sends: Sequence[Send], now: int) -> list[tuple[int, bytes]]:
        replies = here(sends, now)
        proved.extend(teacher for teacher, data in replies if b"share proof" in data[:60])
        given = [teacher for teacher, data in replies if b"decryption shares" in data[:60]]
        liars.extend(given[:1] if not liars else [])
        return [
            (who, with_wrong_shares(parties, who, data) if who in liars and who in given else data)
            for who, data in replies
        ]

    outcome = Federation(aggregator=parties.aggregator, deliver=deliver).ask(rows(0, 1))
    assert len(outcome.answers) == 2
    assert outcome.transcript is not None
    assert list(outcome.blamed) == liars
    assert set(proved) == {1, 2, 3, 4, 5}


def with_wrong_shares(parties: SmallFederation, teacher: int, data: bytes) -> bytes:
    public = parties.key.public
    message = decode(data, SignedShares)
    shares = DecryptionShares.from_bytes(public, message.shares)
    wrong = replace(shares, elements=tuple(mpz(4) for _ in shares.elements))
    forged = replace(message, shares=wrong.to_bytes(public))
    return encode(sign(forged, parties.signers[teacher]))


def test_a_known_input_costs_nothing_and_a_fresh_one_does() -> None:
    parties = small()
    asked = federation(parties)
    first = asked.ask(rows(1, 2))
    again = asked.ask(rows(1, 2, 0))
    assert again.answers[:2] == first.answers
    assert again.receipt is not None
    assert len(again.receipt.answers) == 1
    assert asked.ask(rows(1, 2)).receipt is None
    assert asked.ask(rows(1, 2)).transcript is None
    assert spent(parties) == 3
    assert asked.ask(rows(1, 2), fresh=True).transcript is not None
    assert spent(parties) == 5


def test_the_same_input_twice_in_a_batch_is_asked_once() -> None:
    parties = small()
    outcome = federation(parties).ask([[1, 0], [2, 0], [1, 0]])
    assert outcome.answers[0] == outcome.answers[2]
    assert spent(parties) == 2


def spent(parties: Parties) -> int:
    return parties.ledgers[1].summary().data[0].tasks[0].answered


def test_a_known_input_is_answered_from_the_store() -> None:
    parties = small()
    outcome = federation(parties).ask(rows(1))
    assert outcome.receipt is not None
    assert parties.aggregator.known_release(outcome.receipt.query_ids) == outcome.answers[0]
    assert parties.aggregator.known_release(bytes(32)) is None


def test_abstention_follows_the_threshold() -> None:
    parties = small(abstain_below=10_000)
    assert all(each.label is None for each in federation(parties).ask(rows(0, 1, 2)).answers)


def test_an_aggregator_that_restarts_goes_on_where_it_was() -> None:
    parties = small()
    store = MemoryBatchStore()
    here = in_process(parties.teachers)

    def fresh() -> Aggregator:
        return new_aggregator(parties, store)

    request = request_for(parties, 1, 2)
    identifier = request.batch_id
    aggregator = fresh()
    replies = here(aggregator.start(request, now=NOW).sends, NOW)
    aggregator = fresh()  # crashed with all ballots on their way
    sends = resume(aggregator)
    assert len(sends) == 5
    replies = here(sends, NOW)
    sends = [send for who, data in replies for send in aggregator.receive(who, data, now=NOW).sends]
    aggregator = fresh()  # crashed with the list closed and sent
    resent = resume(aggregator)
    assert {send.data for send in resent} == {send.data for send in sends}
    replies = here(resent, NOW)
    sends = [send for who, data in replies for send in aggregator.receive(who, data, now=NOW).sends]
    assert {kind_of(send.data) for send in sends} == {CertifiedList.KIND}
    replies = here(sends, NOW)
    aggregator = fresh()  # crashed with the certified list sent
    assert {send.data for send in resume(aggregator)} == {send.data for send in resent}
    while sends := [
        send for who, data in replies for send in aggregator.receive(who, data, now=NOW).sends
    ] or (list(aggregator.remind().sends) if aggregator.outcome(identifier) is None else []):
        replies = here(sends, NOW)
    outcome = aggregator.outcome(identifier)
    assert isinstance(outcome, Receipt)
    transcript = aggregator.transcript(identifier)
    assert transcript is not None
    verify_transcript(transcript.to_bytes(), insecure_testing=True)
    again = fresh()
    assert resume(again) == []
    assert again.outcome(identifier) == outcome
    assert again.transcript(identifier) == transcript


def resume(aggregator: Aggregator) -> list[Send]:
    """What a process does after a restart: go on with whatever the store has unfinished."""
    outputs = [aggregator.adopt(each, now=NOW) for each in aggregator.unfinished()]
    return [send for output in outputs for send in output.sends]


def new_aggregator(parties: SmallFederation, store: MemoryBatchStore) -> Aggregator:
    return Aggregator(
        task=parties.task,
        public=parties.key.public,
        signer=parties.aggregator_signer,
        store=store,
    )


def test_a_request_for_another_task_or_without_a_key_for_everybody_is_refused() -> None:
    parties = small()
    request = request_for(parties, 1)
    for broken in (
        replace(request, queries=replace(request.queries, task_id=TaskId(bytes(32)))),
        replace(request, deadline=NOW - 1),
        replace(request, queries=replace(request.queries, wrapped_keys=bytes(80))),
        replace(request, queries=replace(request.queries, query_ids=bytes(64))),
    ):
        with pytest.raises(InputError):
            parties.aggregator.start(broken, now=NOW)


def test_noise_is_there_for_every_query() -> None:
    parties = small(model=first_feature)
    outcome = federation(parties).ask(rows(*[0] * 40))
    assert len({answer.counts for answer in outcome.answers}) > 30


def test_a_clock_that_is_put_back_is_waited_from_and_not_for() -> None:
    parties = small()
    aggregator = new_aggregator(parties, MemoryBatchStore())
    teachers = {index: parties.teachers[index] for index in (1, 2, 3, 4)}

    def answer(sends: Sequence[Send], now: int) -> list[Send]:
        return [
            more
            for send in sends
            if send.teacher in teachers
            for more in aggregator.receive(
                send.teacher, reply_of(teachers[send.teacher], send.data, now=now), now=now
            ).sends
        ]

    answer(aggregator.start(request_for(parties, 1, 2), now=NOW).sends, NOW)
    earlier = NOW - 600
    assert aggregator.tick(earlier).sends == ()
    lists = aggregator.tick(earlier + 2).sends  # the patience after a quorum
    assert {kind_of(send.data) for send in lists} == {BallotList.KIND}
    earlier -= 600
    assert aggregator.tick(earlier).sends == ()
    certified = answer(lists, earlier + 5)
    assert {kind_of(send.data) for send in certified} == {CertifiedList.KIND}
    answer(certified, earlier + 5)
    assert aggregator.remind().sends == ()
