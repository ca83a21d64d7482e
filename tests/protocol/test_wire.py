import math
import tracemalloc
from dataclasses import replace

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.small import small

from dppp.errors import WireError
from dppp.protocol.messages import (
    MOST_QUERIES,
    Ballot,
    BallotList,
    BatchId,
    BatchRequest,
    SealedQueries,
    TaskId,
)
from dppp.protocol.task import Task
from dppp.protocol.wire import MOST_ELEMENTS, VERSION, decode, encode, kind_of

QUERIES = SealedQueries(
    task_id=TaskId(bytes(32)), query_ids=bytes(32), sealed=b"abc", wrapped_keys=bytes(80)
)
REQUEST = BatchRequest(deadline=7, queries=QUERIES)


def plain(**changes: object) -> dict[str, object]:
    """The request as the map that goes on the wire, changed."""
    fields = msgpack.unpackb(encode(REQUEST))
    fields.update(changes)
    return {name: value for name, value in fields.items() if value != "LEFT OUT"}


def asked(**changes: object) -> dict[str, object]:
    """The sealed queries in it, changed."""
    found: dict[str, object] = msgpack.unpackb(encode(REQUEST))["queries"]
    return found | changes


def packed(fields: object) -> bytes:
    return msgpack.packb(fields, use_bin_type=True)


def test_a_message_comes_back_as_it_went() -> None:
    assert decode(encode(REQUEST), BatchRequest) == REQUEST
    assert kind_of(encode(REQUEST)) == "batch request"


@given(st.binary(max_size=50), st.integers(1, 5))
def test_any_request_comes_back_as_it_went(sealed: bytes, count: int) -> None:
    queries = replace(QUERIES, sealed=sealed, query_ids=bytes(32) * count)
    request = BatchRequest(deadline=0, queries=queries)
    assert decode(encode(request), BatchRequest) == request


@pytest.mark.parametrize("sealed", [0, 2**16 - 1, 2**16, 2**16 + 1, 300_000])
@pytest.mark.parametrize("others", [(), (QUERIES, replace(QUERIES, sealed=bytes(70_000)))])
def test_long_bytes_go_on_the_wire_as_msgpack_writes_them(
    sealed: int, others: tuple[SealedQueries, ...]
) -> None:
    queries = replace(QUERIES, sealed=bytes(sealed))
    data = encode(BatchRequest(deadline=7, queries=queries, others=others))
    assert packed(msgpack.unpackb(data)) == data
    assert decode(data, BatchRequest) == BatchRequest(deadline=7, queries=queries, others=others)
    with pytest.raises(WireError):
        decode(data[:-1] + b"\x00\x00", BatchRequest)


def test_a_list_of_long_and_short_ballots_is_written_as_msgpack_would() -> None:
    ballots = (b"short", bytes(2**16), b"", bytes(2**16 - 1))
    made = BallotList(task_id=TaskId(bytes(32)), batch_id=BatchId(bytes(32)), ballots=ballots)
    data = encode(made)
    assert packed(msgpack.unpackb(data)) == data
    assert decode(data, BallotList) == made
    longer = data.replace(packed(b"short"), b"\xc5\x00\x05short")
    with pytest.raises(WireError, match="canonical"):
        decode(longer, BallotList)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a batch request"),
        (b"\xc1", "not a batch request"),
        (b"\x93\x01\x02\x03", "not a batch request"),
        (encode(REQUEST)[:-1], "not a batch request"),
        (encode(REQUEST) + b"\x00", "after its end"),
        (packed(plain(extra=1)), "fields"),
        (packed(plain(deadline="LEFT OUT")), "fields"),
        (packed(plain(version=VERSION + 1)), "version"),
        (packed(plain(kind="ballot")), "not a batch request"),
        (packed(plain(deadline="7")), "expected int"),
        (packed(plain(deadline=True)), "expected int"),
        (packed(plain(deadline=7.0)), "expected int"),
        (packed(plain(deadline=2**63)), "out of range"),
        (packed(plain(signature="x" * 64)), "expected bytes"),
        (packed(plain(signature=bytes(63))), "64"),
        (packed(plain(queries=asked(task_id="x" * 32))), "expected bytes"),
        (packed(plain(queries=asked(task_id=bytes(31)))), "32"),
        (packed(plain(queries=asked(query_ids=b""))), "1 to"),
        (packed(plain(queries=[])), "expected the fields"),
        (packed(plain(queries={})), "has 0 fields"),
        (packed(plain(queries=7)), "expected the fields"),
        (packed(dict(reversed(plain().items()))), "version"),
        (
            packed(plain(queries=dict(reversed(asked().items())))),
            "has a field 'wrapped_keys', expected 'task_id'",
        ),
        (packed(plain(deadline=7)).replace(b"\x07", b"\xcc\x07", 1), "canonical"),
        (b"\x81" * 600, "not a batch request"),
        (b"\x91" * 5000 + b"\x00", "not a batch request"),
        (b"\xdf\xff\xff\xff\xff", "not a batch request"),
        (packed({1: 2}), "not a batch request"),
    ],
)
def test_what_is_not_a_canonical_message_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        decode(data, BatchRequest)


def test_the_size_is_checked_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msgpack, "Unpacker", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(WireError, match="nothing was parsed"):
        decode(bytes(Ballot.SIZE_LIMIT + 1), Ballot)


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x80", packed({"kind": "x"}), packed([1, 2])])
def test_bytes_without_a_kind_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        kind_of(data)


def test_a_batch_holds_so_many_queries_and_no_more() -> None:
    replace(QUERIES, query_ids=bytes(32) * MOST_QUERIES)
    for count in (0, MOST_QUERIES + 1):
        with pytest.raises(WireError, match="a batch holds 1 to 20,000 queries"):
            replace(QUERIES, query_ids=bytes(32) * count)
    for length in (31, 33):
        with pytest.raises(WireError, match="32 bytes each"):
            replace(QUERIES, query_ids=bytes(length))
    for length in (0, 79):
        with pytest.raises(WireError, match="80 bytes each"):
            replace(QUERIES, wrapped_keys=bytes(length))


def test_a_list_that_is_too_long_is_refused_before_it_is_built() -> None:
    """Two bytes for each of many empty ballots would take thirty times their size."""
    empty = BallotList(
        task_id=TaskId(bytes(32)), batch_id=BatchId(bytes(32)), ballots=(b"",) * MOST_ELEMENTS
    )
    assert decode(encode(empty), BallotList) == empty
    more = encode(replace(empty, ballots=(b"",) * (MOST_ELEMENTS + 1)))
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="elements"):
            decode(more, BallotList)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(more)
    finally:
        tracemalloc.stop()


def test_what_is_too_long_for_others_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(encode(REQUEST))
    monkeypatch.setattr(BatchRequest, "SIZE_LIMIT", size)
    assert len(encode(REQUEST)) == size
    monkeypatch.setattr(BatchRequest, "SIZE_LIMIT", size - 1)
    with pytest.raises(WireError, match="fewer queries"):
        encode(REQUEST)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused(value: float) -> None:
    fields = msgpack.unpackb(encode(small().task))
    assert isinstance(fields["epsilon"], float)
    with pytest.raises(WireError, match="epsilon is not a finite number"):
        decode(packed({**fields, "epsilon": value}), Task)
