"""A teacher's process, as far as its ledger is concerned; the tests race and kill it.

Says what was sent only after `record_ballot`, `record_endorsement` or `record_answer` returned. Run
as `python ledger_process.py LEDGER HEAD NAME FIRST COUNT SIZE`: COUNT batches of two queries with
numbers from FIRST on, each ballot of SIZE bytes and marked with NAME. One that is named WITHDRAWER
begins with the last batch and gives withdrawals instead of answers.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from dppp.errors import AnswerGiven, Withdrawn
from dppp.privacy.ledger.ledger import Ledger
from dppp.service.stores.ledgers import open_ledger
from dppp.service.stores.locations import Location

TASK = hashlib.sha256(b"task").digest()
WITHDRAWER = "withdrawer"


def batch_id(number: int) -> bytes:
    return hashlib.sha256(f"batch {number}".encode()).digest()


def list_hash(number: int) -> bytes:
    return hashlib.sha256(f"list {number}".encode()).digest()


def query_ids(number: int) -> list[bytes]:
    return [hashlib.sha256(f"query {number} {each}".encode()).digest() for each in range(2)]


def answer(ledger: Ledger, number: int, ballot: bytes) -> Iterator[str]:
    """Cast a ballot, endorse a list and help to open it; what was sent, as soon as it may be."""
    yield from endorse(ledger, number, ballot)
    ids, said = (batch_id(number), list_hash(number)), b"answer " + ballot[:64]
    try:
        yield describe("answer", number, ledger.record_answer(*ids, said))
    except Withdrawn:
        yield f"refused-answer {number} -"


def withdraw(ledger: Ledger, number: int, ballot: bytes) -> Iterator[str]:
    """Cast a ballot, endorse a list and withdraw."""
    yield from endorse(ledger, number, ballot)
    said = b"withdrawal " + ballot[:64]
    try:
        yield describe("withdrawal", number, ledger.record_withdrawal(batch_id(number), 1, said))
    except AnswerGiven:
        yield f"refused-withdrawal {number} -"


def endorse(ledger: Ledger, number: int, ballot: bytes) -> Iterator[str]:
    sent = ledger.record_ballot(TASK, batch_id(number), query_ids(number), ballot)
    yield describe("ballot", number, sent)
    ids, said = (batch_id(number), list_hash(number)), b"endorsement " + ballot[:64]
    yield describe("endorsement", number, ledger.record_endorsement(*ids, said))


def find(ledger: Ledger, what: str, number: int) -> bytes | None:
    """What the ledger has of what was said."""
    if what == "ballot":
        return ledger.find_ballot(batch_id(number))
    if what == "withdrawal":
        return ledger.find_withdrawal(batch_id(number), 1)
    look = {"endorsement": ledger.find_endorsement, "answer": ledger.find_answer}[what]
    return look(batch_id(number), list_hash(number))


def describe(what: str, number: int, sent: bytes) -> str:
    return f"{what} {number} {hashlib.sha256(sent).hexdigest()}"


def read_location(text: str) -> Location:
    return text if text.startswith("postgresql://") else Path(text)


def main(location: str, head_path: str, name: str, *numbers: str) -> None:
    first, count, size = map(int, numbers)
    batches = range(first, first + count)
    is_withdrawer = name == WITHDRAWER
    give = withdraw if is_withdrawer else answer
    with open_ledger(read_location(location), head_path=Path(head_path)) as ledger:
        for number in reversed(batches) if is_withdrawer else batches:
            ballot = f"{name} {number} ".encode().ljust(size)
            for sent in give(ledger, number, ballot):
                sys.stdout.write(sent + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
