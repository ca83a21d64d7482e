"""What a ledger asks of its storage, and the storage for one process that may forget.

A store keeps entries and, beside some of them, bytes. It knows no rules: the ledger reads each new
entry once, checks it against the chain, and keeps its own indexes, so that there is no second index
on disk that could disagree with the chain.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from dppp.privacy.ledger.chain import Entry, Head


class Transaction(Protocol):
    """What one holder of the store may do; all appends of it are kept, or none."""

    def read_entries(self, start: int) -> Iterator[Entry]:
        """The entries from this index on, in order."""

    def read_content(self, index: int) -> bytes | None:
        """The bytes beside an entry."""

    def append(self, entry: Entry, content: bytes | None) -> None:
        """Add an entry and the bytes beside it."""


class LedgerStore(Protocol):
    """Storage of one ledger."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Hold the store alone among all threads and processes.

        Leaving it without an exception returns only when the appends are durable; leaving it with
        one discards them.
        """


class HeadMemory(Protocol):
    """Where the head is remembered, apart from the store."""

    def recall(self) -> Head | None:
        """The newest head that was remembered."""

    def remember(self, head: Head) -> None:
        """Keep this head durably, unless a later one is kept already."""


class MemoryStore:
    """A store in memory: for embedded use and simulations, gone when the process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._contents: dict[int, bytes] = {}

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Hold the store alone."""
        with self._lock:
            held = _MemoryTransaction(self._entries, self._contents)
            yield held
            for entry, content in held.appended:
                self._entries.append(entry)
                if content is not None:
                    self._contents[entry.index] = content


class _MemoryTransaction:
    def __init__(self, entries: Sequence[Entry], contents: dict[int, bytes]) -> None:
        self._entries = entries
        self._contents = contents
        self.appended: list[tuple[Entry, bytes | None]] = []

    def read_entries(self, start: int) -> Iterator[Entry]:
        return iter(self._entries[start:])

    def read_content(self, index: int) -> bytes | None:
        return self._contents.get(index)

    def append(self, entry: Entry, content: bytes | None) -> None:
        self.appended.append((entry, content))
