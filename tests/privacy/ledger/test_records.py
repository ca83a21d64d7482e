"""What a ledger's records refuse to be, when made and when read from a store."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.privacy.ledger.ledgers import TEACHER, make_id, make_ids

from dppp.errors import InputError, LedgerDamaged
from dppp.privacy.ledger.budget import Budget
from dppp.privacy.ledger.chain import BEGINNING, Entry, Head, entry_hash
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.records import (
    Cap,
    Charge,
    Digest,
    LedgerStart,
    ReservedTask,
    canonical_json,
    decode_record,
    encode_record,
)
from dppp.privacy.ledger.store import MemoryStore

SOME = Budget(epsilon_units=1, delta_units=1)

_DIGEST = {"size": 1, "sha256": "00" * 32}
OF_A_LIST = {"batch_id": "00", "list_hash": "00", "endorsement": _DIGEST, "answer": _DIGEST}
OF_A_BATCH = {
    "batch_id": "00",
    "attempt": 2,
    "message": _DIGEST,
    "ballot": _DIGEST,
    "evidence": "00" * 32,
}
"""All that any record of a list, or of an attempt's end, has."""


def reserved(**changes: Any) -> ReservedTask:
    fields = {"task_id": make_id("task"), "queries": 1, "classes": 2, "noise": "{}"}
    return ReservedTask(**{**fields, **changes})


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: LedgerStart(teacher=""), "1 to 200 characters"),
        (lambda: LedgerStart(teacher="x" * 201), "1 to 200 characters"),
        (lambda: LedgerStart(teacher=7), "1 to 200 characters"),  # type: ignore[arg-type]
        (lambda: Cap(data_id="", budget=SOME), "1 to 200 characters"),
        (
            lambda: Cap(data_id="data", budget=Budget(epsilon_units=0, delta_units=1)),
            "allows nothing",
        ),
        (
            lambda: Cap(data_id="data", budget=Budget(epsilon_units=1, delta_units=0)),
            "allows nothing",
        ),
        (lambda: Budget(epsilon_units=-1, delta_units=1), "epsilon_units must be"),
        (lambda: Budget(epsilon_units=1, delta_units=1.5), "delta_units must be"),  # type: ignore[arg-type]
        (lambda: Budget(epsilon_units=True, delta_units=1), "epsilon_units must be"),
        (lambda: Head(index=-2, hash=bytes(32)), "index of a head"),
        (lambda: Head(index=True, hash=bytes(32)), "index of a head"),
        (lambda: Head(index="1", hash=bytes(32)), "index of a head"),  # type: ignore[arg-type]
        (lambda: Head(index=1, hash=bytes(31)), "32 bytes"),
        (lambda: Head(index=1, hash="0" * 32), "32 bytes"),  # type: ignore[arg-type]
        (lambda: reserved(task_id=b""), "1 to 64 bytes"),
        (lambda: reserved(queries=0), "queries must be a whole number"),
        (lambda: reserved(queries=True), "queries must be a whole number"),
        (lambda: reserved(queries=1.0), "queries must be a whole number"),
        (lambda: reserved(classes=0), "classes must be a whole number"),
        (lambda: reserved(classes="2"), "classes must be a whole number"),
    ],
)
def test_a_record_that_cannot_be_meant_cannot_be_made(
    make: Callable[[], object], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        make()


@pytest.mark.parametrize(
    ("kind", "payload", "reason"),
    [
        ("gift", b"{}", "kind 'gift' is unknown"),
        ("opening", canonical_json({"format": 2, "teacher": "x"}), "format 2 is not 1"),
        ("opening", b"[" * 100_000, "nested without end"),
        ("endorsement", canonical_json({**OF_A_LIST, "attempt": 1}), "names the first attempt"),
        ("answer", canonical_json({**OF_A_LIST, "attempt": True}), "names the first attempt"),
    ],
)
def test_a_payload_of_no_known_kind_is_not_guessed_at(
    kind: str, payload: bytes, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_record(kind, payload)


def ledger_of(*records: tuple[str, bytes]) -> MemoryStore:
    """A store whose chain of hashes is right, whatever the records say."""
    store, head = MemoryStore(), BEGINNING
    with store.transaction() as transaction:
        for kind, payload in records:
            digest = entry_hash(head.hash, head.index + 1, kind, payload)
            entry = Entry(index=head.index + 1, kind=kind, payload=payload, hash=digest)
            transaction.append(entry, None)
            head = entry.head
    return store


OPENING = encode_record(LedgerStart(teacher=TEACHER))
CAP = encode_record(Cap(data_id="data", budget=SOME))


def spoilt(record: tuple[str, bytes], **changes: object) -> tuple[str, bytes]:
    kind, payload = record
    return kind, canonical_json({**json.loads(payload), **changes})


def test_a_chain_made_by_hand_is_a_ledger() -> None:
    assert Ledger.open(ledger_of(OPENING, CAP)).head.index == 1


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([CAP], "must begin with the name of its teacher"),
        ([OPENING, ("gift", b"{}")], "kind 'gift' is unknown"),
        ([spoilt(OPENING, format=2)], "format 2 is not 1"),
        ([OPENING, spoilt(CAP, epsilon_units=0)], "allows nothing"),
        ([OPENING, spoilt(CAP, delta_units=-1)], "delta_units must be"),
        ([OPENING, ("cap", b"[" * 100_000)], "nested without end"),
        ([OPENING, ("endorsement", b"[]")], "breaks the rules"),
        ([OPENING, ("answer", canonical_json({**OF_A_LIST, "attempt": None}))], "attempt must be"),
        ([OPENING, ("withdrawal", canonical_json({**OF_A_BATCH, "attempt": 0}))], "attempt must"),
        ([OPENING, ("withdrawal", canonical_json({**OF_A_BATCH, "attempt": 1.0}))], "attempt must"),
        ([OPENING, ("refund", canonical_json({**OF_A_BATCH, "evidence": "00"}))], "32 bytes"),
        ([OPENING, ("retry", canonical_json({**OF_A_BATCH, "evidence": "00" * 31}))], "32 bytes"),
        (
            [OPENING, ("retry", canonical_json({**OF_A_BATCH, "attempt": 1}))],
            "attempt 2 or",
        ),
        ([OPENING, CAP, CAP], "repeats an earlier entry"),
        ([OPENING, OPENING], "repeats an earlier entry"),
    ],
)
def test_a_chain_that_breaks_the_rules_is_damaged_though_its_hashes_are_right(
    records: list[tuple[str, bytes]], reason: str
) -> None:
    with pytest.raises(LedgerDamaged, match=reason):
        Ledger.open(ledger_of(*records))


@given(st.lists(st.binary(min_size=1, max_size=64), min_size=1, max_size=40))
@example([bytes(32), bytes(range(32)), b"\xff" * 32])
def test_a_charge_is_written_as_json_would_write_it(query_ids: list[bytes]) -> None:
    charge = Charge(
        task_id=make_id("task"),
        batch_id=make_id("batch"),
        query_ids=tuple(query_ids),
        ballot=Digest.of(b"ballot"),
    )
    kind, payload = encode_record(charge)
    expected = {
        "task_id": charge.task_id.hex(),
        "batch_id": charge.batch_id.hex(),
        "query_ids": [each.hex() for each in query_ids],
        "ballot": {"size": 6, "sha256": charge.ballot.sha256.hex()},
    }
    assert (kind, payload) == ("charge", canonical_json(expected))
    assert decode_record(kind, payload) == charge


@pytest.mark.parametrize("wrong", [b"", bytes(65), "00", None, 7])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_wrong_query_id_among_many_is_refused(wrong: Any, place: int) -> None:
    query_ids: list[Any] = make_ids("batch", 2)
    query_ids.insert(place, wrong)
    with pytest.raises(InputError, match="query id must be 1 to 64 bytes"):
        Charge(
            task_id=make_id("task"),
            batch_id=make_id("batch"),
            query_ids=tuple(query_ids),
            ballot=Digest.of(b"ballot"),
        )
