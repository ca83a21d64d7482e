"""A ledger that version 0.1.0 wrote: what it spent stays spent, and what it opened stays closed.

The vector holds the entries that 0.1.0 wrote for the calls of `fill`: two batches of three queries,
and a list (kind "list") that was opened for batch "a", without any endorsement.
"""

import json
from pathlib import Path

import pytest
from tests.privacy.ledger.ledgers import DATA, TEACHER, agree, answer, make_id, make_ids

from dppp.errors import AnswerGiven, LedgerDamaged, QueriesExhausted, QueryReused, SecondList
from dppp.privacy.ledger.chain import Entry, chain_record
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.records import Digest, EndorsedList, decode_record, encode_record
from dppp.privacy.ledger.store import LedgerStore, MemoryStore

VECTOR = Path(__file__).parents[2] / "vectors" / "ledger_0_1_0.json"
OPENED, UNOPENED = make_id("batch", "a"), make_id("batch", "b")
LIST, SECOND = make_id("list"), make_id("second list")


def read_entries() -> list[tuple[Entry, bytes | None]]:
    found = []
    for index, each in enumerate(json.loads(VECTOR.read_text())):
        content = None if each["content"] is None else each["content"].encode()
        entry = Entry(
            index=index,
            kind=each["kind"],
            payload=each["payload"].encode(),
            hash=bytes.fromhex(each["hash"]),
        )
        found.append((entry, content))
    return found


OLD = read_entries()


def write(store: LedgerStore) -> None:
    with store.transaction() as transaction:
        for entry, content in OLD:
            transaction.append(entry, content)


@pytest.fixture
def old(store: LedgerStore) -> Ledger:
    write(store)
    return Ledger.open(store, teacher=TEACHER)


def test_the_vector_holds_a_list_with_a_share() -> None:
    kinds = [entry.kind for entry, _ in OLD]
    assert kinds == ["opening", "cap", "reservation", "charge", "charge", "list"]
    for entry, _ in OLD:
        assert encode_record(decode_record(entry.kind, entry.payload)) == (
            entry.kind,
            entry.payload,
        )


def test_it_opens_and_every_entry_and_all_stored_bytes_are_checked(old: Ledger) -> None:
    assert old.check() == old.head == OLD[-1][0].head
    for entry, _ in OLD:
        old.require_contains(entry.head)


def test_a_share_that_was_changed_since_is_found() -> None:
    store = MemoryStore()
    with store.transaction() as transaction:
        for entry, content in OLD:
            transaction.append(entry, b"another share" if entry.kind == "list" else content)
    with pytest.raises(LedgerDamaged, match="entry 5 "):
        Ledger.open(store).check()


def test_its_charges_count(old: Ledger) -> None:
    (data,) = old.summary().data
    assert (data.tasks[0].answered, data.tasks[0].left) == (6, 4)
    assert answer(old, "a", ballot=b"fresh noise") == b"ballot of a"
    with pytest.raises(QueryReused):
        old.record_ballot(make_id("task", "first"), make_id("x"), make_ids("a", 1), b"x")
    with pytest.raises(QueriesExhausted):
        answer(old, "c", queries=5)
    old.accept(DATA, agree("first"))
    assert old.head == OLD[-1][0].head


@pytest.mark.parametrize("listed", [LIST, SECOND], ids=["the same list", "another list"])
def test_a_batch_that_it_opened_is_never_endorsed_or_answered_again(
    old: Ledger, store: LedgerStore, listed: bytes
) -> None:
    """Its shares left, and no endorsement stands for them: to answer again would be a second."""
    for ledger in (old, Ledger.open(store)):
        for record in (ledger.record_endorsement, ledger.record_answer):
            with pytest.raises(SecondList):
                record(OPENED, listed, b"x")
        for find in (ledger.find_endorsement, ledger.find_answer):
            with pytest.raises(SecondList):
                find(OPENED, listed)
        assert ledger.head == OLD[-1][0].head


def test_a_batch_that_it_opened_is_not_withdrawn_redone_or_refunded(
    old: Ledger, store: LedgerStore
) -> None:
    """Its shares left, so what it cost is spent."""
    for ledger in (old, Ledger.open(store)):
        with pytest.raises(AnswerGiven):
            ledger.record_withdrawal(OPENED, 1, b"never")
        with pytest.raises(AnswerGiven):
            ledger.record_retry(OPENED, 2, b"x", evidence=LIST)
        with pytest.raises(AnswerGiven):
            ledger.record_refund(OPENED, evidence=LIST)
        assert ledger.head == OLD[-1][0].head


def test_a_batch_that_it_did_not_open_can_be_refunded(old: Ledger) -> None:
    old.record_refund(UNOPENED, evidence=LIST)
    assert old.summary().data[0].tasks[0].answered == 3


def test_the_refusal_does_not_call_the_same_list_another_one(old: Ledger) -> None:
    with pytest.raises(SecondList, match="an earlier version") as caught:
        old.record_endorsement(OPENED, LIST, b"x")
    assert "another" not in str(caught.value)


def test_it_goes_on_as_a_ledger_of_this_version(old: Ledger, store: LedgerStore) -> None:
    old.record_endorsement(UNOPENED, LIST, b"endorsement of b")
    old.record_answer(UNOPENED, LIST, b"answer of b")
    again = Ledger.open(store)
    assert again.check().index == 7
    assert again.find_answer(UNOPENED, LIST) == b"answer of b"


def test_a_list_of_the_old_kind_beside_an_endorsement_is_damage() -> None:
    store = MemoryStore()
    record = EndorsedList(batch_id=OPENED, list_hash=LIST, endorsement=Digest.of(b"x"))
    before, served = OLD[:-1], decode_record(OLD[-1][0].kind, OLD[-1][0].payload)
    endorsed = chain_record(before[-1][0].head, record)
    with store.transaction() as transaction:
        for entry, content in before:
            transaction.append(entry, content)
        transaction.append(endorsed, b"x")
        transaction.append(chain_record(endorsed.head, served), b"share of a")
    with pytest.raises(LedgerDamaged, match="entry 6 "):
        Ledger.open(store)
