"""The chain: a changed, missing, added or reordered entry is found and named."""

import contextlib
import itertools
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.privacy.ledger.ledgers import TEACHER, answer, fill, make_id, make_ids

from dppp.errors import LedgerDamaged, LedgerRolledBack, QueryReused
from dppp.privacy.ledger.chain import BEGINNING, Entry, Head, chain_record, entry_hash
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.records import (
    Charge,
    Digest,
    EndorsedList,
    GivenAnswer,
    Record,
    ServedList,
    decode_record,
    encode_record,
)
from dppp.privacy.ledger.store import MemoryStore


def filled() -> tuple[list[Entry], dict[int, bytes]]:
    store = MemoryStore()
    fill(Ledger.create(store, teacher=TEACHER))
    with store.transaction() as transaction:
        entries = list(transaction.read_entries(0))
        contents = {entry.index: transaction.read_content(entry.index) for entry in entries}
    return entries, {index: content for index, content in contents.items() if content is not None}


def stored(entries: list[Entry], contents: dict[int, bytes]) -> MemoryStore:
    store = MemoryStore()
    with store.transaction() as transaction:
        for entry in entries:
            transaction.append(entry, contents.get(entry.index))
    return store


ENTRIES, CONTENTS = filled()


def flip(content: bytes, bit: int) -> bytes:
    position = bit // 8 % len(content)
    return content[:position] + bytes([content[position] ^ 1 << bit % 8]) + content[position + 1 :]


@pytest.mark.parametrize("index", range(len(ENTRIES)))
def test_any_flipped_bit_of_an_entry_is_found_and_named(index: int) -> None:
    entry = ENTRIES[index]
    bad = [
        replace(entry, payload=flip(entry.payload, bit)) for bit in range(8 * len(entry.payload))
    ]
    bad += [replace(entry, hash=flip(entry.hash, bit)) for bit in range(256)]
    bad += [replace(entry, kind=entry.kind + "x"), replace(entry, index=index + 100)]
    for each in bad:
        store = stored([*ENTRIES[:index], each, *ENTRIES[index + 1 :]], CONTENTS)
        with pytest.raises(LedgerDamaged, match=f"entry {index} "):
            Ledger.open(store)


@pytest.mark.parametrize("index", CONTENTS)
def test_any_flipped_bit_of_stored_bytes_is_found_and_named(index: int) -> None:
    for bit in range(8 * len(CONTENTS[index])):
        ledger = Ledger.open(stored(ENTRIES, {**CONTENTS, index: flip(CONTENTS[index], bit)}))
        with pytest.raises(LedgerDamaged, match=f"entry {index} "):
            ledger.check()


def test_changed_or_lost_bytes_are_never_sent() -> None:
    without = {index: content for index, content in CONTENTS.items() if index != 3}
    for contents in (without, {**CONTENTS, 3: b"another ballot"}):
        with pytest.raises(LedgerDamaged, match="entry 3 "):
            Ledger.open(stored(ENTRIES, contents)).find_ballot(make_id("batch", "a"))
    ids = make_id("batch", "a"), make_id("list")
    for index, find in ((5, Ledger.find_endorsement), (6, Ledger.find_answer)):
        without = {each: content for each, content in CONTENTS.items() if each != index}
        for contents in (without, {**CONTENTS, index: b"something else"}):
            with pytest.raises(LedgerDamaged, match=f"entry {index} "):
                find(Ledger.open(stored(ENTRIES, contents)), *ids)


def test_an_entry_left_out_swapped_or_doubled_is_found() -> None:
    for left_out in range(len(ENTRIES) - 1):
        with pytest.raises(LedgerDamaged, match=f"entry {left_out} "):
            Ledger.open(stored([e for e in ENTRIES if e.index != left_out], CONTENTS))
    for one, other in itertools.combinations(range(len(ENTRIES)), 2):
        swapped = list(ENTRIES)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        with pytest.raises(LedgerDamaged, match=f"entry {one} "):
            Ledger.open(stored(swapped, CONTENTS))
    with pytest.raises(LedgerDamaged, match=f"entry {len(ENTRIES)} "):
        Ledger.open(stored([*ENTRIES, ENTRIES[-1]], CONTENTS))


def records_about(batch: str, listed: str) -> list[Record]:
    """All records of a list, in this version and the one before."""
    batch_id, list_hash = make_id("batch", batch), make_id(listed)
    return [
        EndorsedList(batch_id=batch_id, list_hash=list_hash, endorsement=Digest.of(b"")),
        GivenAnswer(batch_id=batch_id, list_hash=list_hash, answer=Digest.of(b"")),
        ServedList(batch_id=batch_id, list_hash=list_hash, share=Digest.of(b"")),
    ]


def test_a_well_chained_entry_that_breaks_a_rule_is_found() -> None:
    repeated = [decode_record(entry.kind, entry.payload) for entry in ENTRIES[-2:]]
    unendorsed = records_about("b", "list")[1]
    for record in (
        *records_about("a", "second list"),
        *records_about("a", "list"),
        *records_about("c", "list"),
        *repeated,
        unendorsed,
    ):
        forged = chain_record(ENTRIES[-1].head, record)
        with pytest.raises(LedgerDamaged, match=f"entry {forged.index} "):
            Ledger.open(stored([*ENTRIES, forged], CONTENTS))


def test_an_answer_whose_endorsement_is_missing_is_found() -> None:
    answer = decode_record(ENTRIES[-1].kind, ENTRIES[-1].payload)
    assert isinstance(answer, GivenAnswer)
    forged = chain_record(ENTRIES[-3].head, answer)
    with pytest.raises(LedgerDamaged, match="was not endorsed"):
        Ledger.open(stored([*ENTRIES[:-2], forged], CONTENTS))


def test_a_head_from_before_is_contained_and_any_other_is_not() -> None:
    ledger = Ledger.open(stored(ENTRIES[:4], CONTENTS))
    for entry in ENTRIES[:4]:
        ledger.require_contains(entry.head)
    with pytest.raises(LedgerRolledBack, match="older copy"):
        ledger.require_contains(ENTRIES[5].head)
    with pytest.raises(LedgerRolledBack, match="another ledger"):
        ledger.require_contains(Head(index=2, hash=make_id("fork")))


def test_a_store_that_goes_back_while_open_is_noticed() -> None:
    store = stored(ENTRIES, CONTENTS)
    ledger = Ledger.open(store)
    for kept in (ENTRIES[:3], []):
        store._entries[:] = kept
        with pytest.raises(LedgerRolledBack, match="while in use"):
            ledger.find_ballot(make_id("batch", "a"))


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: replace(entry, payload=flip(entry.payload, 7)),
        lambda entry: replace(entry, hash=flip(entry.hash, 7)),
    ],
)
def test_an_own_entry_that_changes_before_it_is_read_back_is_noticed(
    change: Callable[[Entry], Entry],
) -> None:
    store = MemoryStore()
    ledger = Ledger.create(store, teacher=TEACHER)
    fill(ledger)
    last = store._entries[-1]
    store._entries[-1] = change(last)
    with pytest.raises(LedgerDamaged, match=f"entry {last.index} "):
        ledger.find_ballot(make_id("batch", "a"))


def test_an_own_entry_that_was_not_kept_is_not_believed() -> None:
    store = stored(ENTRIES, CONTENTS)
    ledger = Ledger.open(store)
    with contextlib.suppress(OSError), ledger._turn() as turn:
        turn.append_once(charge_of("c"), b"ballot of c")
        raise OSError("disk full")
    assert ledger.find_ballot(make_id("batch", "c")) is None
    assert answer(ledger, "c", ballot=b"another ballot of c") == b"another ballot of c"
    assert ledger.find_ballot(make_id("batch", "c")) == b"another ballot of c"


def charge_of(batch: str) -> Charge:
    return Charge(
        task_id=make_id("task", "first"),
        batch_id=make_id("batch", batch),
        query_ids=tuple(make_ids(batch, 3)),
        ballot=Digest.of(f"ballot of {batch}".encode()),
    )


def test_queries_found_fresh_are_refused_once_another_process_has_used_them() -> None:
    store = MemoryStore()
    ledger = Ledger.create(store, teacher=TEACHER)
    fill(ledger, queries=20)
    other = Ledger.open(store)
    query_ids = tuple(make_ids("c", 3))
    ledger.check_can_answer(make_id("task", "first"), make_id("batch", "d"), query_ids)
    answer(other, "c")
    with pytest.raises(QueryReused, match="is part of batch"):
        ledger.record_ballot(make_id("task", "first"), make_id("batch", "d"), query_ids, b"ballot")


def test_records_survive_their_encoding() -> None:
    for entry in ENTRIES:
        assert encode_record(decode_record(entry.kind, entry.payload)) == (
            entry.kind,
            entry.payload,
        )


def test_the_first_hash_is_a_fixed_vector() -> None:
    assert ENTRIES[0].payload == b'{"format":1,"teacher":"hospital-7"}'
    assert entry_hash(BEGINNING.hash, 0, "opening", ENTRIES[0].payload).hex() == (
        "128e16599baa670905f34bb485931408355f3188193c5cf524df113cf3fb76ae"
    )


def test_the_first_attempt_has_the_bytes_that_it_had_when_there_was_only_one() -> None:
    """Calculated before there were attempts: such ledgers still open."""
    endorsement, answer = (json.loads(entry.payload) for entry in ENTRIES[-2:])
    assert sorted(endorsement) == ["batch_id", "endorsement", "list_hash"]
    assert sorted(answer) == ["answer", "batch_id", "list_hash"]
    assert ENTRIES[-1].hash.hex() == (
        "4496387c509b444be3bd746b60108af3305217445aa8862d63c86adbddae64a3"
    )
