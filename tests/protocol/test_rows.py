"""Sealed rows: only teachers read them, all of them the same, and nobody crashes over them."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from tests.protocol.attacker import take_out
from tests.protocol.small import DEADLINE, NOW, federation, rows, sent_to, small
from tests.small_federation import SmallFederation

from dppp.errors import BatchAborted, InputError, RowsChanged, RowsUnreadable, WireError
from dppp.federation import Federation, in_process
from dppp.hashing import HASH_BYTES
from dppp.protocol.batch_store import Kind
from dppp.protocol.columns import as_columns
from dppp.protocol.events import Abort, Send
from dppp.protocol.inputs import encode_rows
from dppp.protocol.messages import (
    WRAPPED_KEY_BYTES,
    BallotRequest,
    BatchRequest,
    SealedQueries,
    TaskId,
    split_query_ids,
)
from dppp.protocol.rows import (
    ballot_request,
    make_row_secret,
    open_rows,
    query_ids_of,
    row_key_of,
    seal_rows,
    wrapped_key_of,
)
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode

pytestmark = pytest.mark.attack

ROWS = encode_rows(rows(1, 2), 2)
VECTORS = json.loads(Path(__file__).parents[1].joinpath("vectors/rows.json").read_text())


def request_of(parties: SmallFederation, sealed: SealedQueries) -> BatchRequest:
    return BatchRequest(deadline=DEADLINE, queries=sealed)


def asked(parties: SmallFederation, sealed: SealedQueries, teacher: int = 1) -> BallotRequest:
    return decode(sent_to(parties, request_of(parties, sealed), teacher), BallotRequest)


def charged(parties: SmallFederation, teacher: int) -> int:
    return parties.ledgers[teacher].summary().data[0].tasks[0].answered


def test_a_teacher_reads_the_rows_and_gives_them_the_queriers_ids() -> None:
    parties, key = small(), make_row_secret()
    sealed = seal_rows(parties.task, key, ROWS)
    opened = open_rows(parties.task, 3, parties.row_keys[2], asked(parties, sealed, 3))
    assert opened.inputs.tolist() == rows(1, 2).tolist()
    assert b"".join(opened.query_ids) == sealed.query_ids
    assert sealed.query_ids == query_ids_of(key, parties.task.task_id, ROWS)


def test_a_key_names_a_row_the_same_each_time_and_in_its_own_task_only() -> None:
    task, other = small().task, small().task
    secret = make_row_secret()
    key = row_key_of(secret, task.task_id)
    assert query_ids_of(key, task.task_id, ROWS) == query_ids_of(key, task.task_id, ROWS)
    assert len({key, row_key_of(secret, other.task_id), row_key_of(bytes(32), task.task_id)}) == 3
    assert query_ids_of(key, task.task_id, ROWS) != query_ids_of(key, other.task_id, ROWS)


def test_a_row_twice_in_a_batch_is_refused_by_querier_and_aggregator() -> None:
    parties = small()
    with pytest.raises(InputError, match="a row occurs twice"):
        seal_rows(parties.task, make_row_secret(), [ROWS[0], ROWS[0]])
    sealed = seal_rows(parties.task, make_row_secret(), ROWS)
    twice = replace(sealed, query_ids=sealed.query_ids[:HASH_BYTES] * 2)
    with pytest.raises(InputError, match="a query id occurs twice"):
        parties.aggregator.start(request_of(parties, twice), now=NOW)


# Who reads what.


def seen_by_others(parties: SmallFederation) -> bytes:
    """All that broker and aggregator have of a batch: the store, and every message."""
    seen: list[bytes] = []
    deliver = in_process(parties.teachers)

    def wiretap(sends: Any, now: int) -> Any:
        replies = deliver(sends, now)
        seen.extend([send.data for send in sends] + [data for _, data in replies])
        return replies

    outcome = Federation(aggregator=parties.aggregator, deliver=wiretap).ask(rows(1, 2))
    assert outcome.transcript is not None
    store = parties.aggregator._stored._store
    batch = parties.aggregator._stored.requested()[0]
    seen += [data for kind in Kind if (data := store.get(batch, kind)) is not None]
    return b"".join([*seen, encode(outcome.transcript)])


def test_nothing_that_broker_and_aggregator_have_holds_a_row() -> None:
    assert not any(row in seen_by_others(small()) for row in ROWS)


def test_rows_that_were_not_sealed_would_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same search finds them."""
    plain = "AESGCM(content_key).encrypt(_NONCE, plaintext, task.task_id)"
    take_out(monkeypatch, seal_rows, plain, "plaintext")
    opened = "AESGCM(content_key).decrypt(_NONCE, request.sealed, task.task_id)"
    import dppp.protocol.rows

    take_out(monkeypatch, dppp.protocol.rows._decrypt, opened, "request.sealed")
    seen = seen_by_others(small())
    assert all(row in seen for row in ROWS)


def guess(parties: SmallFederation, query_ids: bytes, key: bytes) -> int:
    """How many rows somebody with this key finds by trying all that there can be."""
    table = [[float(label), float(place)] for label, place in itertools.product(range(3), range(4))]
    guesses = split_query_ids(query_ids_of(key, parties.task.task_id, encode_rows(table, 2)))
    return len(set(guesses) & set(split_query_ids(query_ids)))


def test_ids_do_not_tell_which_of_a_few_rows_were_asked_about_unless_one_has_the_key() -> None:
    parties, key = small(), make_row_secret()
    sealed = seal_rows(parties.task, key, ROWS)
    for other in (bytes(32), make_row_secret()):
        assert guess(parties, sealed.query_ids, other) == 0
    assert guess(parties, sealed.query_ids, key) == len(ROWS)


# What a teacher is sent that is not right.


def forged(parties: SmallFederation, case: str) -> BallotRequest:  # noqa: C901, PLR0911 - a table
    task = parties.task
    sealed = seal_rows(task, make_row_secret(), ROWS)
    good = asked(parties, sealed)
    other = seal_rows(task, make_row_secret(), encode_rows(rows(0, 1), 2))
    match case:
        case "another teacher's key":
            return replace(good, wrapped_key=wrapped_key_of(sealed, 2))
        case "another payload's key":
            return replace(good, wrapped_key=wrapped_key_of(other, 1))
        case "no key":
            return replace(good, wrapped_key=bytes(WRAPPED_KEY_BYTES))
        case "truncated":
            return replace(good, sealed=good.sealed[:-1])
        case "empty":
            return replace(good, sealed=b"")
        case "too few":
            return replace(good, queries=1)
        case "too many":
            return replace(good, queries=3)
        case "other rows":
            return replace(asked(parties, other), batch_id=good.batch_id)
        case "another key for the same rows":
            again = seal_rows(task, make_row_secret(), ROWS)
            return replace(asked(parties, again), batch_id=good.batch_id)
        case "another order":
            again = seal_rows(task, make_row_secret(), ROWS[::-1])
            return replace(asked(parties, again), batch_id=good.batch_id)
        case "not a number":
            return asked(parties, seal_rows(task, make_row_secret(), [b"\xff" * 16]))
        case "no rows":
            return asked(parties, seal_rows(task, make_row_secret(), [b""]))
    return replace(good, sealed=good.sealed[:-1] + bytes([good.sealed[-1] ^ 1]))


UNREADABLE = (
    "another teacher's key",
    "another payload's key",
    "no key",
    "truncated",
    "empty",
    "too few",
    "too many",
    "not a number",
    "no rows",
    "one bit",
)
CHANGED = ("other rows", "another key for the same rows", "another order")


@pytest.mark.parametrize("case", UNREADABLE + CHANGED)
def test_what_is_not_the_rows_of_the_batch_is_refused_by_name_and_not_charged(case: str) -> None:
    parties = small()
    signed = sign(forged(parties, case), parties.aggregator_signer)
    with pytest.raises(RowsUnreadable if case in UNREADABLE else RowsChanged):
        parties.teachers[1].handle(encode(signed), now=NOW)
    assert charged(parties, 1) == 0


def test_rows_sealed_for_another_task_do_not_open_in_this_one() -> None:
    """Not even by the same teacher's key: the task is in the key, in the payload and in the ids."""
    parties = small()
    sealed = seal_rows(parties.task, make_row_secret(), ROWS)
    twin = replace(parties.task, name="another task of the same teachers")
    taken = replace(ballot_request(request_of(parties, sealed)), task_id=twin.task_id)
    taken = replace(taken, wrapped_key=wrapped_key_of(sealed, 1))
    with pytest.raises(RowsUnreadable):
        open_rows(twin, 1, parties.row_keys[0], taken)
    with pytest.raises(InputError, match="another task"):
        parties.aggregator.start(
            request_of(parties, replace(sealed, task_id=TaskId(bytes(32)))), now=NOW
        )


def test_payloads_that_a_gateway_exchanged_are_refused_and_not_charged() -> None:
    """It has the sealed rows of two queriers, and asks in the name of whichever it likes."""
    parties = small()
    one, other = (
        seal_rows(parties.task, make_row_secret(), encode_rows(table, 2))
        for table in (rows(1, 2), rows(0, 1))
    )
    backwards = one.query_ids[HASH_BYTES:] + one.query_ids[:HASH_BYTES]
    mixed = one.query_ids[:HASH_BYTES] + other.query_ids[HASH_BYTES:]
    offered = [
        (replace(one, sealed=other.sealed, wrapped_keys=other.wrapped_keys), RowsChanged),
        (replace(one, query_ids=backwards), RowsChanged),
        (replace(one, query_ids=mixed), RowsChanged),
        (replace(one, query_ids=one.query_ids[:HASH_BYTES]), RowsUnreadable),
        (replace(one, query_ids=one.query_ids + other.query_ids), RowsUnreadable),
        (replace(one, sealed=other.sealed), RowsUnreadable),
        (replace(one, wrapped_keys=other.wrapped_keys), RowsUnreadable),
    ]
    for queries, refusal in offered:
        for teacher in range(1, 6):
            with pytest.raises(refusal):
                parties.teachers[teacher].handle(
                    sent_to(parties, request_of(parties, queries), teacher), now=NOW
                )
    assert [charged(parties, each) for each in range(1, 6)] == [0] * 5


def split_wraps(parties: SmallFederation) -> SealedQueries:
    """A querier whose wrapped keys are those of other rows for teachers 4 and 5."""
    one, other = (
        seal_rows(parties.task, make_row_secret(), encode_rows(table, 2))
        for table in (rows(1, 2), rows(0, 0))
    )
    cut = 3 * WRAPPED_KEY_BYTES
    return replace(one, wrapped_keys=one.wrapped_keys[:cut] + other.wrapped_keys[cut:])


def test_a_querier_that_wraps_other_keys_for_some_gets_no_release() -> None:
    parties = small()
    output = parties.aggregator.start(request_of(parties, split_wraps(parties)), now=NOW)
    refused: list[str] = []
    deliver = in_process(parties.teachers, note=refused.append)
    for teacher, data in deliver(output.sends, NOW):
        parties.aggregator.receive(teacher, data, now=NOW)
    end = parties.aggregator.tick(DEADLINE + 100)
    assert len(refused) == 2
    assert all("do not open with the row key" in each for each in refused)
    (batch,) = parties.aggregator._stored.requested()
    assert isinstance(parties.aggregator.outcome(batch), Abort), end
    assert [charged(parties, each) for each in range(1, 6)] == [2, 2, 2, 0, 0]


def test_if_ids_were_not_worked_out_anew_teachers_would_vote_on_different_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: an aggregator that helps the querier gets one list on two tables."""
    parties = small()
    take_out(
        monkeypatch,
        open_rows,
        'batch_id(task.task_id, b"".join(query_ids)) != request.batch_id',
        "False",
    )
    one, other = (
        seal_rows(parties.task, make_row_secret(), encode_rows(table, 2))
        for table in (rows(1, 2), rows(0, 0))
    )
    aggregator = parties.aggregator
    output = aggregator.start(request_of(parties, one), now=NOW)
    mixed = [
        send
        if send.teacher < 4
        else Send(
            teacher=send.teacher,
            data=encode(
                replace(
                    sign(
                        replace(
                            ballot_request(request_of(parties, other)),
                            batch_id=one.batch_id,
                        ),
                        parties.aggregator_signer,
                    ),
                    wrapped_key=wrapped_key_of(other, send.teacher),
                )
            ),
        )
        for send in output.sends
    ]
    replies = in_process(parties.teachers)(mixed, NOW)
    assert len(replies) == 5


def test_rows_asked_again_after_an_abort_have_new_ids() -> None:
    """A teacher answers an id once, so the same rows could never be asked about again."""
    parties = small()
    asking = federation(parties, without=(1, 2))
    for _ in range(2):
        with pytest.raises(BatchAborted):
            asking.ask(rows(1))
    assert len(parties.aggregator._stored.requested()) == 2


# Vectors.


@pytest.mark.parametrize("vector", VECTORS["query_ids"])
def test_query_ids_are_those_of_the_vectors(vector: dict[str, Any]) -> None:
    task_id = TaskId(bytes.fromhex(vector["task_id"]))
    key = row_key_of(bytes.fromhex(vector["secret"]), task_id)
    assert key.hex() == vector["row_key"]
    found = query_ids_of(key, task_id, [bytes.fromhex(row) for row in vector["rows"]])
    assert found.hex() == vector["query_ids"]


@pytest.mark.parametrize("vector", VECTORS["sealed"], ids=lambda vector: vector["name"])
def test_sealed_rows_open_or_are_refused_as_the_vectors_say(vector: dict[str, Any]) -> None:
    task = VectorTask(vector)
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(vector["private_key"]))
    request = decode(bytes.fromhex(vector["request"]), BallotRequest)
    if vector["refusal"] is None:
        opened = open_rows(task, vector["teacher"], private, request)  # type: ignore[arg-type]
        assert opened.inputs.tolist() == vector["rows"]
        return
    with pytest.raises((RowsUnreadable, RowsChanged, WireError)) as caught:
        open_rows(task, vector["teacher"], private, request)  # type: ignore[arg-type]
    assert type(caught.value).__name__ == vector["refusal"]


class VectorTask:
    """What of a task it takes to open rows; a whole task is not part of these vectors."""

    def __init__(self, vector: dict[str, Any]) -> None:
        self.task_id = TaskId(bytes.fromhex(vector["task_id"]))
        self.columns = as_columns(vector["features"])
