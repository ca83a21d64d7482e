"""Several queriers' rows in one batch: nobody reads another's, and nobody spoils it for others."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.protocol.attacker import take_out
from tests.protocol.small import CLASS_NAMES, DEADLINE, NOW, certain
from tests.protocol.with_masks.colluders import add_to_rows, deal_badly
from tests.protocol.with_masks.federation import Federation, set_up
from tests.small_federation import seal_table

import dppp.privacy.ledger.book
import dppp.protocol.shared_batch
from dppp.errors import (
    BatchChanged,
    InputError,
    NotFromAggregator,
    RowsChanged,
    RowsUnreadable,
    WireError,
)
from dppp.federation import Parties, in_process
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.events import Aborted, Output, Released
from dppp.protocol.messages import (
    WRAPPED_KEY_BYTES,
    BallotRequest,
    BatchRequest,
    SealedQueries,
    split_query_ids,
)
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import ballots_offset
from dppp.protocol.rows import open_rows
from dppp.protocol.shared_batch import shared_ballot_request
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks.messages import CastRequest, WithdrawalRequest

pytestmark = pytest.mark.attack


def asked_by(parties: Parties, label: int, querier: str) -> SealedQueries:
    return seal_table(parties.task, [[float(label), 0.5]], seed=querier)


def shared(*parts: SealedQueries) -> BatchRequest:
    return BatchRequest(deadline=DEADLINE, queries=parts[0], others=parts[1:])


def sent_to(parties: Parties, request: BatchRequest, teacher: int) -> BallotRequest:
    return sign(shared_ballot_request(request, teacher), parties.aggregator_signer)


def garbage(part: SealedQueries) -> SealedQueries:
    """Query ids and keys as they should be, and rows that nobody can open."""
    return replace(part, sealed=bytes(len(part.sealed)))


def run(parties: Parties, request: BatchRequest) -> Released | Aborted:
    """The batch with all teachers, to its end."""
    deliver, now = in_process(parties.teachers), NOW
    output = parties.aggregator.start(request, now=now)
    for _ in range(DEADLINE):
        for event in output.events:
            if isinstance(event, Released | Aborted):
                return event
        replies = deliver(output.sends, now)
        output = Output()
        for teacher, data in replies:
            output += parties.aggregator.receive(teacher, data, now=now)
        if not output.sends and not output.events:
            now += 1
            output = parties.aggregator.tick(now)
    raise AssertionError("the batch did not end")


def answered(parties: Parties, teacher: int) -> int:
    return parties.ledgers[teacher].summary().data[0].tasks[0].answered


def test_one_list_answers_the_rows_of_several_queriers_in_their_order() -> None:
    parties = certain()
    parts = [asked_by(parties, label, f"querier {label}") for label in (2, 0, 1)]
    event = run(parties, shared(*parts))
    assert isinstance(event, Released)
    assert [each.label for each in event.receipt.answers] == [2, 0, 1]
    assert event.receipt.query_ids == b"".join(each.query_ids for each in parts)
    assert [answered(parties, index) for index in parties.teachers] == [3] * 5
    assert parties.aggregator.known_release(parts[1].query_ids) == event.receipt.answers[1]


@pytest.mark.parametrize("spoilt_for", [(1, 2, 3, 4, 5), (3, 4, 5)])
def test_garbage_of_one_querier_spoils_its_own_answer_only_and_is_not_charged(
    spoilt_for: tuple[int, ...],
) -> None:
    parties = certain()
    good, bad = asked_by(parties, 2, "good"), asked_by(parties, 1, "bad")
    keys = [
        bytes(WRAPPED_KEY_BYTES) if index in spoilt_for else key
        for index, key in enumerate(_split(bad.wrapped_keys), start=1)
    ]
    event = run(parties, shared(good, replace(bad, wrapped_keys=b"".join(keys))))
    assert isinstance(event, Released)
    assert event.receipt.answers[0].label == 2
    assert len(event.receipt.participants) == 5
    charged = [answered(parties, index) for index in parties.teachers]
    assert charged == [1 if index in spoilt_for else 2 for index in parties.teachers]


def _split(keys: bytes) -> list[bytes]:
    return [keys[at : at + WRAPPED_KEY_BYTES] for at in range(0, len(keys), WRAPPED_KEY_BYTES)]


def test_without_the_defence_garbage_of_one_querier_ends_the_batch_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parties = certain()
    request = shared(asked_by(parties, 2, "good"), garbage(asked_by(parties, 1, "bad")))
    take_out(
        monkeypatch,
        dppp.protocol.shared_batch._read_part,
        "except (RowsUnreadable, RowsChanged):",
        "except ZeroDivisionError:",
    )
    assert isinstance(run(parties, request), Aborted)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda part, _: garbage(part),
        lambda part, other: replace(part, sealed=other.sealed, wrapped_keys=other.wrapped_keys),
        lambda part, other: replace(part, query_ids=other.query_ids),
        lambda part, _: replace(part, query_ids=part.query_ids + bytes(32)),
    ],
    ids=["garbage", "rows of others", "ids of others", "one query too many"],
)
def test_no_vote_is_cast_on_rows_that_are_not_those_of_the_query_ids(
    spoil: Callable[[SealedQueries, SealedQueries], SealedQueries],
) -> None:
    asked: list[np.ndarray] = []

    def model(rows: np.ndarray) -> list[int]:
        asked.append(rows)
        return [2] * len(rows)

    parties = certain(model=model, votes=1)
    good, bad = asked_by(parties, 2, "good"), asked_by(parties, 1, "bad")
    spoilt = spoil(bad, asked_by(parties, 0, "another"))
    parties.teachers[1].vote(encode(sent_to(parties, shared(good, spoilt), 1)), now=NOW)
    assert [each.tolist() for each in asked] == [[[2.0, 0.5]]]
    assert answered(parties, 1) == 1


def test_a_query_that_was_asked_before_gets_no_second_vote_and_spoils_nothing() -> None:
    parties = certain()
    again, good = asked_by(parties, 1, "again"), asked_by(parties, 2, "good")
    assert isinstance(run(parties, BatchRequest(deadline=DEADLINE, queries=again)), Released)
    event = run(parties, shared(again, good))
    assert isinstance(event, Released)
    assert event.receipt.answers[1].label == 2
    assert max(event.receipt.answers[0].counts) < max(event.receipt.answers[1].counts)
    assert [answered(parties, index) for index in parties.teachers] == [2] * 5


def test_a_shared_batch_of_which_a_teacher_can_read_nothing_is_refused_and_free() -> None:
    parties = certain()
    bad = [garbage(asked_by(parties, label, f"bad {label}")) for label in (0, 1)]
    with pytest.raises(RowsUnreadable, match="nothing was charged"):
        parties.teachers[1].vote(encode(sent_to(parties, shared(*bad), 1)), now=NOW)
    assert answered(parties, 1) == 0


def test_whoever_carries_a_shared_request_cannot_take_a_vote_away() -> None:
    parties = certain()
    request = shared(asked_by(parties, 1, "one"), asked_by(parties, 2, "two"))
    asked = sent_to(parties, request, 1)
    first, second = asked.shared
    for changed in (
        replace(first, wrapped_key=bytes(WRAPPED_KEY_BYTES)),
        replace(first, sealed=bytes(len(first.sealed))),
        replace(first, query_ids=bytes(32)),
    ):
        forged = encode(replace(asked, shared=(changed, second)))
        with pytest.raises(NotFromAggregator):
            parties.teachers[1].vote(forged, now=NOW)
    of_another = encode(replace(asked, shared=sent_to(parties, request, 2).shared))
    with pytest.raises(NotFromAggregator):
        parties.teachers[1].vote(of_another, now=NOW)


def test_the_ids_of_all_parts_are_those_of_the_batch() -> None:
    parties = certain()
    one, two, three = (asked_by(parties, label, f"querier {label}") for label in range(3))
    asked = shared_ballot_request(shared(one, two), 1)
    other = shared_ballot_request(shared(one, three), 1)
    forged = sign(replace(asked, shared=other.shared), parties.aggregator_signer)
    with pytest.raises(RowsChanged):
        parties.teachers[1].vote(encode(forged), now=NOW)


def test_no_querier_can_open_the_part_of_another() -> None:
    parties = certain()
    one, two = asked_by(parties, 1, "one"), asked_by(parties, 2, "two")
    asked = sent_to(parties, shared(one, two), 1)
    crossed = replace(
        asked,
        shared=(),
        queries=1,
        batch_id=one.batch_id,
        sealed=asked.shared[0].sealed,
        wrapped_key=asked.shared[1].wrapped_key,
    )
    with pytest.raises(RowsUnreadable):
        open_rows(parties.task, 1, parties.row_keys[0], crossed)


def test_parts_of_one_query_or_of_two_tasks_or_not_sealed_to_all_are_refused() -> None:
    parties, other = certain(), certain()
    one, two = asked_by(parties, 1, "one"), asked_by(parties, 2, "two")
    unsealed = replace(two, wrapped_keys=bytes(WRAPPED_KEY_BYTES))
    with pytest.raises(InputError, match="same query"):
        parties.aggregator.put(shared(one, two, one), now=NOW)
    with pytest.raises(InputError, match="sealed to 1 teachers"):
        parties.aggregator.put(shared(one, unsealed), now=NOW)
    elsewhere = asked_by(other, 2, "two")
    with pytest.raises(WireError, match="several tasks"):
        shared(one, elsewhere)
    asked = shared_ballot_request(shared(one, two), 1)
    for change in ({"queries": 3}, {"sealed": b"x"}, {"shared": asked.shared[:1], "queries": 1}):
        with pytest.raises(WireError):
            replace(asked, **change)
    assert decode(encode(asked), BallotRequest) == asked


def test_an_aggregator_goes_on_with_a_shared_batch_after_a_restart() -> None:
    parties = certain()
    parts = [asked_by(parties, label, f"querier {label}") for label in (1, 2)]
    identifier = parties.aggregator.put(shared(*parts), now=NOW)
    restarted = Aggregator(
        task=parties.task,
        public=None if parties.key is None else parties.key.public,
        signer=parties.aggregator_signer,
        store=parties.aggregator._stored._store,
    )
    asked = restarted.adopt(identifier, now=NOW).sends
    assert [each.teacher for each in asked] == [1, 2, 3, 4, 5]
    assert decode(asked[0].data, BallotRequest).queries == len(parts) < len(CLASS_NAMES)


@pytest.mark.parametrize("is_redone", [False, True])
def test_under_masks_too_garbage_spoils_nothing_in_either_attempt(is_redone: bool) -> None:
    federation = Federation(set_up())
    if is_redone:
        federation.corrupt(5, deal_badly(secret_rows=add_to_rows([1])))
    good, bad = (seal_table(federation.task, [[place]], seed=place) for place in (1.0, 2.0))
    request = BatchRequest(deadline=federation.now + 900, queries=garbage(bad), others=(good,))
    federation.run(federation.start(request))
    receipt = federation.end
    assert isinstance(receipt, Receipt), receipt
    assert receipt.attempt == federation.attempts == (2 if is_redone else 1)
    assert receipt.query_ids == bad.query_ids + good.query_ids
    assert [federation.charged(each) for each in (1, 2, 3, 4)] == [1] * 4
    entered = [
        federation.entries[each, request.batch_id, receipt.attempt] for each in receipt.participants
    ]
    expected = np.sum(entered, axis=0) - ballots_offset(federation.task, len(entered))
    counts = [count for answer in receipt.answers for count in answer.counts]
    assert counts == expected.tolist()


def test_what_was_not_charged_in_the_first_attempt_is_not_voted_on_in_the_next() -> None:
    parties = certain()
    good, bad = asked_by(parties, 2, "good"), asked_by(parties, 1, "bad")
    request = shared(good, garbage(bad))
    parties.teachers[1].vote(encode(sent_to(parties, request, 1)), now=NOW)
    may_vote_on = parties.ledgers[1].may_vote_on
    assert may_vote_on(request.batch_id, split_query_ids(good.query_ids))
    assert not may_vote_on(request.batch_id, split_query_ids(bad.query_ids))
    assert may_vote_on(bytes(32), split_query_ids(bad.query_ids))
    assert not may_vote_on(bytes(32), split_query_ids(good.query_ids))


def test_a_query_in_two_parts_is_refused_by_teachers_though_one_part_cannot_be_read() -> None:
    """Made readable in a later attempt, the second part would get another vote for one charge."""
    parties = certain()
    one = asked_by(parties, 1, "one")
    for second in (one, garbage(one)):
        asked = sent_to(parties, shared(one, second), 1)
        with pytest.raises(RowsChanged, match="same query"):
            parties.teachers[1].handle(encode(asked), now=NOW)
        assert answered(parties, 1) == 0


def test_without_that_a_query_in_two_parts_would_be_voted_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parties = certain()
    one = asked_by(parties, 1, "one")
    take_out(
        monkeypatch,
        dppp.protocol.shared_batch.read_parts,
        "len(set(split_query_ids(named))) < len(named) // HASH_BYTES",
        "False",
    )
    monkeypatch.setattr("dppp.protocol.teacher.read_parts", dppp.protocol.shared_batch.read_parts)
    asked = sent_to(parties, shared(one, garbage(one)), 1)
    assert parties.teachers[1].handle(encode(asked), now=NOW) is not None
    assert answered(parties, 1) == 1


def retry_with_more(federation: Federation) -> list[int]:
    """Queries that each teacher casts votes on in attempt 2, of which it charged one in attempt 1.

    The aggregator and a querier make a shared batch of which one part cannot be read, and have it
    withdrawn. Then they send the rows of both parts as those of one querier: the query ids are the
    same, and so is the batch.
    """
    task, signer = federation.task, federation.setting.aggregator_signer
    one, more = seal_table(task, [[0.0]]), seal_table(task, [[float(n)] for n in range(1, 10)])
    roster = federation.take_keys()
    first = BatchRequest(deadline=federation.now + 900, queries=one, others=(garbage(more),))
    whole = BatchRequest(
        deadline=federation.now + 900, queries=seal_table(task, [[float(n)] for n in range(10)])
    )
    assert whole.batch_id == first.batch_id
    withdrawals = []
    for index, teacher in federation.teachers.items():
        asked = decode(federation.cast_request(roster, request=whole, teacher=index), CastRequest)
        shared_request = encode(sign(shared_ballot_request(first, index), signer))
        asked = replace(asked, request=shared_request)
        assert teacher.handle(encode(asked), now=federation.now) is not None
        given_up = WithdrawalRequest(task_id=task.task_id, batch_id=first.batch_id, attempt=1)
        withdrawn = teacher.handle(federation.sign(given_up), now=federation.now)
        assert withdrawn is not None
        withdrawals.append(withdrawn)
    for index, teacher in federation.teachers.items():
        asked_again = federation.cast_request(
            roster, attempt=2, withdrawals=withdrawals, request=whole, teacher=index
        )
        teacher.handle(asked_again, now=federation.now)
    assert [federation.charged(each) for each in federation.teachers] == [1] * 5
    return [
        len(federation.entries[each, first.batch_id, 2]) // len(task.class_names)
        for each in federation.teachers
    ]


def test_no_more_queries_are_voted_on_in_a_later_attempt_than_were_charged() -> None:
    federation = Federation(set_up())
    with pytest.raises(BatchChanged, match="was not charged"):
        retry_with_more(federation)
    assert all(attempt == 1 for _, _, attempt in federation.entries)


def test_without_that_a_part_that_nobody_could_read_would_be_answered_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_out(monkeypatch, dppp.privacy.ledger.book.Book.require_charged, "if free:", "if False:")
    assert retry_with_more(Federation(set_up())) == [10] * 5
