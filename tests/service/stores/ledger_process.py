"""A teacher's process, as far as its ledger is concerned; the tests race and kill it.

Says what was sent only after `record_ballot`, `record_endorsement` or `record_answer` returned. Run
as `python ledger_process.py LEDGER HEAD NAME FIRST COUNT SIZE`: COUNT batches of two queries with
numbers from FIRST on, each ballot of SIZE bytes and marked with NAME.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from dppp.privacy.ledger.ledger import Ledger
from dppp.service.stores.ledgers import open_ledger
from dppp.service.stores.locations import Location

TASK = hashlib.sha256(b"task").digest()


def batch_id(number: int) -> bytes:
    return hashlib.sha256(f"batch {number}".encode()).digest()


def list_hash(number: int) -> bytes:
    return hashlib.sha256(f"list {number}".encode()).digest()


def query_ids(number: int) -> list[bytes]:
    return [hashlib.sha256(f"query {number} {each}".encode()).digest() for each in range(2)]


def answer(ledger: Ledger, number: int, ballot: bytes) -> Iterator[str]:
    """Cast a ballot, endorse a list and help to open it; what was sent, as soon as it may be."""
    sent = ledger.record_ballot(TASK, batch_id(number), query_ids(number), ballot)
    yield describe("ballot", number, sent)
    ids, mark = (batch_id(number), list_hash(number)), ballot[:64]
    yield describe("endorsement", number, ledger.record_endorsement(*ids, b"endorsement " + mark))
    yield describe("answer", number, ledger.record_answer(*ids, b"answer " + mark))


def find(ledger: Ledger, what: str, number: int) -> bytes | None:
    """What the ledger has of what was said."""
    if what == "ballot":
        return ledger.find_ballot(batch_id(number))
    look = {"endorsement": ledger.find_endorsement, "answer": ledger.find_answer}[what]
    return look(batch_id(number), list_hash(number))


def describe(what: str, number: int, sent: bytes) -> str:
    return f"{what} {number} {hashlib.sha256(sent).hexdigest()}"


def read_location(text: str) -> Location:
    return text if text.startswith("postgresql://") else Path(text)


def main(location: str, head_path: str, name: str, *numbers: str) -> None:
    first, count, size = map(int, numbers)
    with open_ledger(read_location(location), head_path=Path(head_path)) as ledger:
        for number in range(first, first + count):
            ballot = f"{name} {number} ".encode().ljust(size)
            for sent in answer(ledger, number, ballot):
                sys.stdout.write(sent + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
