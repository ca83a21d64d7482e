"""Withdrawals, retries and refunds in a chain: forged, repeated or out of order is damage."""

from collections.abc import Callable, Sequence

import pytest
from tests.privacy.ledger.ledgers import DATA, agree, make_id, make_ids

from dppp.errors import LedgerDamaged
from dppp.privacy.ledger.budget import Budget
from dppp.privacy.ledger.chain import BEGINNING, Entry, chain_record
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.records import (
    Cap,
    Charge,
    Digest,
    EndorsedList,
    GivenAnswer,
    LedgerStart,
    Record,
    Refund,
    Retry,
    ServedList,
    Withdrawal,
    content_digest,
    decode_record,
    encode_record,
)
from dppp.privacy.ledger.store import MemoryStore

BATCH, TASK = make_id("batch"), make_id("task", "first")
LISTS = {attempt: make_id("list", attempt) for attempt in range(4)}
SHOWN = make_id("withdrawals of t teachers")

CONTENTS: tuple[bytes, ...] = (
    b"charge",
    b"endorse 1",
    b"endorse 2",
    b"answer 1",
    b"answer 2",
    b"withdraw 1",
)
CONTENTS += (b"withdraw 1", b"withdraw 2", b"withdraw 3", b"retry 2", b"retry 3", b"served")
BESIDE = {Digest.of(content): content for content in CONTENTS}


def endorse(attempt: int = 1) -> EndorsedList:
    said = Digest.of(f"endorse {attempt}".encode())
    return EndorsedList(batch_id=BATCH, list_hash=LISTS[attempt], endorsement=said, attempt=attempt)


def answer(attempt: int = 1) -> GivenAnswer:
    said = Digest.of(f"answer {attempt}".encode())
    return GivenAnswer(batch_id=BATCH, list_hash=LISTS[attempt], answer=said, attempt=attempt)


def withdraw(attempt: int = 1) -> Withdrawal:
    said = Digest.of(f"withdraw {attempt}".encode())
    return Withdrawal(batch_id=BATCH, attempt=attempt, message=said)


def retry(attempt: int = 2, ballot: bytes | None = None) -> Retry:
    new = Digest.of(f"retry {attempt}".encode() if ballot is None else ballot)
    return Retry(batch_id=BATCH, attempt=attempt, ballot=new, evidence=SHOWN)


def refund(attempt: int = 1) -> Refund:
    return Refund(batch_id=BATCH, attempt=attempt, evidence=SHOWN)


SERVED = ServedList(batch_id=BATCH, list_hash=LISTS[1], share=Digest.of(b"served"))
CHARGE = Charge(
    task_id=TASK, batch_id=BATCH, query_ids=tuple(make_ids(1, 3)), ballot=Digest.of(b"charge")
)
UNCHARGED: list[Record] = [
    LedgerStart(teacher="hospital-7"),
    Cap(data_id=DATA, budget=Budget.cap(epsilon=2, delta=1e-5)),
    agree("first").reservation(DATA),
]


def entries_of(*records: Record) -> list[Entry]:
    entries, head = [], BEGINNING
    for record in records:
        entries.append(chain_record(head, record))
        head = entries[-1].head
    return entries


def store_of(*records: Record) -> MemoryStore:
    """A store whose hashes are right, with the bytes beside each record, whatever they say."""
    store = MemoryStore()
    with store.transaction() as transaction:
        for entry, record in zip(entries_of(*records), records, strict=True):
            digest = content_digest(record)
            transaction.append(entry, None if digest is None else BESIDE[digest])
    return store


GOOD: list[list[Record]] = [
    [endorse(), withdraw()],
    [withdraw(), retry(), endorse(2), answer(2)],
    [endorse(), retry(), withdraw(2), retry(3), withdraw(3)],
    [endorse(), withdraw(), refund()],
    [retry(), endorse(2), refund(2), withdraw(2)],
]
"""After a charge, any of these may follow."""


@pytest.mark.parametrize("records", GOOD)
def test_what_keeps_the_rules_is_read_and_checked(records: Sequence[Record]) -> None:
    ledger = Ledger.open(store_of(*UNCHARGED, CHARGE, *records))
    assert ledger.check().index == 3 + len(records)
    is_refunded = any(isinstance(record, Refund) for record in records)
    assert ledger.summary().data[0].tasks[0].answered == (0 if is_refunded else 3)


@pytest.mark.parametrize(
    ("before", "forged", "reason"),
    [
        ([endorse(), answer()], withdraw(), "has answered"),
        ([endorse(), answer()], retry(), "has answered"),
        ([endorse(), answer()], refund(), "has answered"),
        ([SERVED], withdraw(), "has answered"),
        ([SERVED], retry(), "has answered"),
        ([SERVED], refund(), "has answered"),
        ([retry(), endorse(2), answer(2)], withdraw(2), "has answered"),
        ([retry(), endorse(2), answer(2)], refund(2), "has answered"),
        ([withdraw()], endorse(), "never answer"),
        ([withdraw()], SERVED, "never answer"),
        ([endorse(), withdraw()], answer(), "never answer"),
        ([retry(), endorse(2), withdraw(2)], answer(2), "never answer attempt 2"),
        ([endorse(), retry()], answer(), "attempt 1 of batch .* is over"),
        ([retry()], endorse(), "attempt 1 of batch .* is over"),
        ([retry()], SERVED, "attempt 1 of batch .* is over"),
        ([retry()], withdraw(), "attempt 1 of batch .* is over"),
        ([retry()], refund(), "attempt 1 of batch .* is over"),
        ([retry(), retry(3)], retry(2), "attempt 2 of batch .* is over"),
        ([endorse()], answer(2), "no ballot in attempt 2"),
        ([], endorse(2), "no ballot in attempt 2"),
        ([], withdraw(2), "no ballot in attempt 2"),
        ([], refund(2), "no ballot in attempt 2"),
        ([], retry(3), "no ballot in attempt 2"),
        ([], retry(2, b"charge"), "a ballot of an earlier attempt"),
        ([retry()], retry(3, b"charge"), "a ballot of an earlier attempt"),
        ([retry()], retry(3, b"retry 2"), "a ballot of an earlier attempt"),
        ([endorse(), refund()], answer(), "was given back"),
        ([refund()], endorse(), "was given back"),
        ([refund()], SERVED, "was given back"),
        ([refund()], retry(), "was given back"),
        ([refund()], refund(), "was given back"),
        ([refund()], CHARGE, "was given back"),
        ([retry()], CHARGE, "attempt 1 of batch .* is over"),
        ([withdraw()], withdraw(), "repeats an earlier entry"),
        ([retry()], retry(), "repeats an earlier entry"),
        ([withdraw(), retry()], withdraw(), "repeats an earlier entry"),
        ([endorse(), withdraw()], endorse(), "repeats an earlier entry"),
    ],
)
def test_a_forged_entry_is_found_and_named_though_its_hash_is_right(
    before: Sequence[Record], forged: Record, reason: str
) -> None:
    good = [*UNCHARGED, CHARGE, *before]
    Ledger.open(store_of(*good)).check()
    with pytest.raises(LedgerDamaged, match=f"entry {len(good)} .*{reason}"):
        Ledger.open(store_of(*good, forged))


@pytest.mark.parametrize("forged", [withdraw(), retry(), refund()])
def test_an_end_of_a_batch_that_was_never_charged_is_damage(forged: Record) -> None:
    with pytest.raises(LedgerDamaged, match=r"entry 3 .*cast no ballot"):
        Ledger.open(store_of(*UNCHARGED, forged))


@pytest.mark.parametrize(
    ("find", "position"), [(Ledger.find_withdrawal, 4), (Ledger.find_ballot, 5)]
)
def test_changed_or_lost_bytes_of_a_withdrawal_or_retry_are_never_sent(
    find: Callable[[Ledger, bytes, int], bytes | None], position: int
) -> None:
    for content in (None, b"something else"):
        store = store_of(*UNCHARGED, CHARGE, withdraw(), retry())
        store._contents.pop(position)
        if content is not None:
            store._contents[position] = content
        ledger = Ledger.open(store)
        with pytest.raises(LedgerDamaged, match=f"entry {position} "):
            ledger.check()
        with pytest.raises(LedgerDamaged, match=f"entry {position} "):
            find(ledger, BATCH, position - 3)


def test_the_new_kinds_survive_their_encoding() -> None:
    for record in (withdraw(), withdraw(2), retry(), refund(), refund(2), endorse(2), answer(2)):
        assert decode_record(*encode_record(record)) == record


def test_the_payloads_of_the_new_kinds_are_fixed_vectors() -> None:
    batch, shown = BATCH.hex(), SHOWN.hex()

    def beside(content: bytes) -> str:
        return f'{{"sha256":"{Digest.of(content).sha256.hex()}","size":{len(content)}}}'

    said, ballot = beside(b"withdraw 1"), beside(b"retry 2")
    later = beside(b"endorse 2")
    expected: dict[Record, str] = {
        withdraw(): f'{{"attempt":1,"batch_id":"{batch}","message":{said}}}',
        retry(): f'{{"attempt":2,"ballot":{ballot},"batch_id":"{batch}","evidence":"{shown}"}}',
        refund(): f'{{"attempt":1,"batch_id":"{batch}","evidence":"{shown}"}}',
        endorse(2): f'{{"attempt":2,"batch_id":"{batch}","endorsement":{later},'
        f'"list_hash":"{LISTS[2].hex()}"}}',
    }
    kinds = ["withdrawal", "retry", "refund", "endorsement"]
    for kind, (record, payload) in zip(kinds, expected.items(), strict=True):
        assert encode_record(record) == (kind, payload.encode())
