"""What an aggregator keeps: each thing is written once and then stays."""

import threading
from itertools import islice
from typing import Protocol

from dppp.errors import InputError

_WHOLE_STORE = bytes(32)
"""The key of what is about the whole store; the ids of batches and jobs are hashes."""


class BatchStore(Protocol):
    """Durable when `put_once` returns; safe to share between workers."""

    def put_once(self, key: bytes, kind: str, data: bytes) -> bytes:
        """Keep the first bytes ever put for this key and kind, and return those."""

    def get(self, key: bytes, kind: str) -> bytes | None:
        """What was put, or None."""

    def having(self, kind: str) -> tuple[bytes, ...]:
        """All keys under which something of this kind was put, in the order of putting."""

    def put_since(self, kind: str, position: int) -> tuple[tuple[int, bytes], ...]:
        """Position and key of what was put of this kind, from this position on, in order.

        Where several put at the same moment, one may appear before others that were seen already.
        """


def claim_store(store: BatchStore, task_id: bytes) -> None:
    """Make a store this task's own; refuse one that another task or a version before 0.2.0 used.

    Its answers would be given to queriers of this task, and its jobs counted against theirs.
    """
    # Before the mark is looked for: others may put it, and then something else.
    is_used = any(store.having(kind) for kind in ("request", "job"))
    if is_used and store.get(_WHOLE_STORE, "task") is None:
        raise InputError(
            "this batch store was written before 0.2.0, whose keys are unsafe; give [store] a new "
            "place, and delete this one: CHANGELOG.md, Security, says why"
        )
    if store.put_once(_WHOLE_STORE, "task", task_id) != task_id:
        raise InputError("this batch store belongs to another task; give [store] a new place")


class MemoryBatchStore:
    """For one process that may forget."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[bytes, bytes]] = {}
        self._lock = threading.Lock()

    def put_once(self, key: bytes, kind: str, data: bytes) -> bytes:
        """Keep the first bytes ever put for this key and kind, and return those."""
        with self._lock:
            return self._kept.setdefault(kind, {}).setdefault(key, data)

    def get(self, key: bytes, kind: str) -> bytes | None:
        """What was put, or None."""
        return self._kept.get(kind, {}).get(key)

    def having(self, kind: str) -> tuple[bytes, ...]:
        """All keys under which something of this kind was put, in the order of putting."""
        with self._lock:
            return tuple(self._kept.get(kind, {}))

    def put_since(self, kind: str, position: int) -> tuple[tuple[int, bytes], ...]:
        """Position and key of what was put of this kind, from this position on, in order."""
        with self._lock:
            return tuple(islice(enumerate(self._kept.get(kind, {})), position, None))
