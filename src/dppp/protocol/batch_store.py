"""What an aggregator keeps of its batches: each thing is written once and then stays."""

import threading
from typing import Protocol

from dppp.protocol.messages import BatchId


class BatchStore(Protocol):
    """Durable when `put_once` returns; safe to share between workers."""

    def put_once(self, batch: BatchId, kind: str, data: bytes) -> bytes:
        """Keep the first bytes ever put for this batch and kind, and return those."""

    def get(self, batch: BatchId, kind: str) -> bytes | None:
        """What was put, or None."""

    def batches(self) -> tuple[BatchId, ...]:
        """All batches, in the order in which they were first put."""


class MemoryBatchStore:
    """For one process that may forget."""

    def __init__(self) -> None:
        self._kept: dict[BatchId, dict[str, bytes]] = {}
        self._lock = threading.Lock()

    def put_once(self, batch: BatchId, kind: str, data: bytes) -> bytes:
        """Keep the first bytes ever put for this batch and kind, and return those."""
        with self._lock:
            return self._kept.setdefault(batch, {}).setdefault(kind, data)

    def get(self, batch: BatchId, kind: str) -> bytes | None:
        """What was put, or None."""
        return self._kept.get(batch, {}).get(kind)

    def batches(self) -> tuple[BatchId, ...]:
        """All batches, in the order in which they were first put."""
        return tuple(self._kept)
