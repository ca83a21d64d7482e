"""Stores that outlive their role, and kill it at a chosen write."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tests.protocol.parties import RememberedHead
from tests.simulation.operations import CrashAtWrite

from dppp.privacy.ledger.chain import Entry, Head
from dppp.privacy.ledger.store import MemoryStore, Transaction
from dppp.protocol.batch_store import Kind, MemoryBatchStore


class Crashed(BaseException):
    """The role is dead: no `except Exception` may keep it alive."""

    def __init__(self, down_seconds: int) -> None:
        super().__init__(f"down for {down_seconds} s")
        self.down_seconds = down_seconds


class Fuse:
    """Counts the writes of one role, in all its lives, and kills it at those planned."""

    def __init__(self) -> None:
        self._planned: dict[int, CrashAtWrite] = {}
        self._writes = 0

    def light(self, planned: Iterable[CrashAtWrite]) -> None:
        """Count from now on."""
        self._planned = {each.write: each for each in planned}
        self._writes = 0

    @property
    def writes(self) -> int:
        """How many there were."""
        return self._writes

    def write(self, act: Callable[[], object]) -> None:
        """Do a write, and die before or after it if that is the plan."""
        self._writes += 1
        crash = self._planned.get(self._writes)
        if crash is None or crash.is_durable:
            act()
        if crash is not None:
            raise Crashed(crash.down_seconds)


class FusedLedgerStore:
    """A ledger store; a commit that appends something is a write."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self._kept = MemoryStore()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._kept.transaction() as held:
            watched = _Watched(held)
            yield watched
            if not watched.appended:
                return

        def commit() -> None:
            with self._kept.transaction() as again:
                for entry, content in watched.appended:
                    again.append(entry, content)

        self.fuse.write(commit)

    def holds(self, content: bytes) -> bool:
        """Whether these bytes were committed beside some entry."""
        with self._kept.transaction() as held:
            return any(held.read_content(entry.index) == content for entry in held.read_entries(0))


class _Watched:
    """Keeps what is appended until the commit."""

    def __init__(self, held: Transaction) -> None:
        self._held = held
        self.appended: list[tuple[Entry, bytes | None]] = []

    def read_entries(self, start: int) -> Iterator[Entry]:
        return self._held.read_entries(start)

    def read_content(self, index: int) -> bytes | None:
        return self._held.read_content(index)

    def append(self, entry: Entry, content: bytes | None) -> None:
        self.appended.append((entry, content))


class FusedHead:
    """A head memory; remembering is a write."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse
        self._kept = RememberedHead()

    def recall(self) -> Head | None:
        return self._kept.recall()

    def remember(self, head: Head) -> None:
        self._fuse.write(lambda: self._kept.remember(head))


class FusedBatchStore:
    """The aggregator's store; putting something new is a write."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self._kept = MemoryBatchStore()

    def put_once(self, key: bytes, kind: Kind, data: bytes) -> bytes:
        if self._kept.get(key, kind) is None:
            self.fuse.write(lambda: self._kept.put_once(key, kind, data))
        return self._kept.put_once(key, kind, data)

    def get(self, key: bytes, kind: Kind) -> bytes | None:
        return self._kept.get(key, kind)

    def having(self, kind: Kind) -> tuple[bytes, ...]:
        return self._kept.having(kind)

    def put_since(self, kind: Kind, position: int) -> tuple[tuple[int, bytes], ...]:
        return self._kept.put_since(kind, position)
