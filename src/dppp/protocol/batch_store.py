"""What an aggregator keeps: each thing is written once and then stays.

`BatchStore` is what a store must do with bytes (service/stores has two). `StoredBatches` reads and
writes what the bytes mean: requests, closed lists and outcomes. What was put first counts, also
where several aggregators share a store.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import ClassVar, Protocol

from dppp.errors import InputError
from dppp.hashing import hash_parts
from dppp.protocol.events import Abort, Outcome
from dppp.protocol.messages import BallotList, BatchId, BatchRequest
from dppp.protocol.receipt import Receipt
from dppp.protocol.transcript import Transcript
from dppp.protocol.wire import decode, encode, kind_of

_WHOLE_STORE = bytes(32)
"""The key of what is about the whole store; the ids of batches and jobs are hashes."""


class Kind(StrEnum):
    """What is kept under a key."""

    TASK = "task"
    JOB = "job"
    REQUEST = "request"
    LIST = "list"
    OUTCOME = "outcome"
    ATTEMPT = "attempt"
    ROSTER = "roster"
    PLACE = "place"
    CULPRIT = "culprit"
    LET_IN = "let in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A teacher that was at fault in a batch by what it signed, and how."""

    KIND: ClassVar[str] = "culprit"
    SIZE_LIMIT: ClassVar[int] = 2**20
    teacher: int
    batch_id: BatchId
    reason: str


class BatchStore(Protocol):
    """Durable when `put_once` returns; safe to share between workers."""

    def put_once(self, key: bytes, kind: Kind, data: bytes) -> bytes:
        """Keep the first bytes ever put for this key and kind, and return those."""

    def get(self, key: bytes, kind: Kind) -> bytes | None:
        """What was put, or None."""

    def having(self, kind: Kind) -> tuple[bytes, ...]:
        """All keys under which something of this kind was put, in the order of putting."""

    def put_since(self, kind: Kind, position: int) -> tuple[tuple[int, bytes], ...]:
        """Position and key of what was put of this kind, from this position on, in order.

        Where several put at the same moment, one may appear before others that were seen already.
        """


class StoredBatches:
    """The requests, lists and outcomes in a store."""

    def __init__(self, store: BatchStore) -> None:
        self._store = store

    def requested(self) -> tuple[BatchId, ...]:
        """Every batch that was ever asked for, in order."""
        return tuple(map(BatchId, self._store.having(Kind.REQUEST)))

    def put_request(self, batch: BatchId, request: BatchRequest) -> None:
        """Keep a request, unless there is one."""
        self._store.put_once(batch, Kind.REQUEST, encode(request))

    def request(self, batch: BatchId) -> BatchRequest | None:
        """The request of a batch."""
        stored = self._store.get(batch, Kind.REQUEST)
        return None if stored is None else decode(stored, BatchRequest)

    def has_request(self, batch: BatchId) -> bool:
        """Whether a batch was asked for, without reading its rows."""
        return self._store.get(batch, Kind.REQUEST) is not None

    def put_list(self, batch: BatchId, ballot_list: BallotList, *, attempt: int = 1) -> BallotList:
        """Keep a closed list, and return the one that counts: the first."""
        data = encode(ballot_list)
        stored = self._store.put_once(_key(batch, attempt), Kind.LIST, data)
        return ballot_list if stored == data else decode(stored, BallotList)

    def ballot_list(self, batch: BatchId, *, attempt: int = 1) -> BallotList | None:
        """The closed list of a batch."""
        stored = self._store.get(_key(batch, attempt), Kind.LIST)
        return None if stored is None else decode(stored, BallotList)

    def put_attempt(self, batch: BatchId, attempt: int, data: bytes) -> bytes:
        """Keep how an attempt at a batch begins, and return what counts: the first."""
        return self._store.put_once(_key(batch, attempt), Kind.ATTEMPT, data)

    def attempt(self, batch: BatchId, attempt: int) -> bytes | None:
        """How an attempt at a batch begins."""
        return self._store.get(_key(batch, attempt), Kind.ATTEMPT)

    def put_culprit(self, culprit: Culprit) -> None:
        """Remember who was at fault in a batch, until an operator lets it in."""
        key = hash_parts(
            "dppp culprit key 1", (culprit.batch_id, culprit.teacher.to_bytes(8, "big"))
        )
        self._store.put_once(key, Kind.CULPRIT, encode(culprit))

    def culprits(self) -> tuple[Culprit, ...]:
        """Who was at fault and was not let in since, in the order of the faults."""
        return tuple(culprit for _, culprit in self._culprits())

    def let_in(self, teacher: int) -> tuple[Culprit, ...]:
        """Forget a teacher's faults up to now; which they were. For an operator."""
        found = [(key, each) for key, each in self._culprits() if each.teacher == teacher]
        for key, _ in found:
            self._store.put_once(key, Kind.LET_IN, b"")
        return tuple(culprit for _, culprit in found)

    def _culprits(self) -> Iterator[tuple[bytes, Culprit]]:
        for key in self._store.having(Kind.CULPRIT):
            stored = self._store.get(key, Kind.CULPRIT)
            if stored is not None and self._store.get(key, Kind.LET_IN) is None:
                yield key, decode(stored, Culprit)

    def put_roster(self, roster_hash: bytes, data: bytes) -> None:
        """Keep a roster."""
        self._store.put_once(roster_hash, Kind.ROSTER, data)

    def roster(self, roster_hash: bytes) -> bytes | None:
        """The roster of this hash."""
        return self._store.get(roster_hash, Kind.ROSTER)

    def has_list(self, batch: BatchId) -> bool:
        """Whether voting was closed, without reading the ballots."""
        return self._store.get(batch, Kind.LIST) is not None

    def put_outcome(self, batch: BatchId, outcome: Outcome) -> Outcome:
        """Keep an outcome, and return the one that counts: the first."""
        data = encode(outcome)
        stored = self._store.put_once(batch, Kind.OUTCOME, data)
        return outcome if stored == data else _read_outcome(stored)

    def outcome(self, batch: BatchId) -> Outcome | None:
        """What a batch came to; None until the store has it."""
        stored = self._store.get(batch, Kind.OUTCOME)
        return None if stored is None else _read_outcome(stored)

    def receipt_or_abort(self, batch: BatchId) -> bytes | Abort | None:
        """The same, but a receipt as its bytes: it may be long, and not everybody reads it."""
        stored = self._store.get(batch, Kind.OUTCOME)
        if stored is None or kind_of(stored) == Receipt.KIND:
            return stored
        return decode(stored, Abort)

    def transcript(self, batch: BatchId) -> Transcript | None:
        """The transcript of a released batch: its receipt with the list, neither of them read."""
        receipt = self.receipt_or_abort(batch)
        if not isinstance(receipt, bytes):
            return None
        attempt = 1
        while self._store.get(_key(batch, attempt + 1), Kind.LIST) is not None:
            attempt += 1  # what was released is the last attempt
        ballot_list = self._store.get(_key(batch, attempt), Kind.LIST)
        if ballot_list is None:
            return None
        return Transcript(receipt=receipt, ballot_list=ballot_list)


def _key(batch: BatchId, attempt: int) -> bytes:
    """Under what an attempt at a batch is kept; the first one under the batch itself."""
    if attempt == 1:
        return batch
    return hash_parts("dppp attempt key 1", (batch, attempt.to_bytes(8, "big")))


def _read_outcome(stored: bytes) -> Outcome:
    return decode(stored, Abort) if kind_of(stored) == Abort.KIND else decode(stored, Receipt)


def claim_store(store: BatchStore, task_id: bytes) -> None:
    """Make a store this task's own; refuse one that another task or a version before 0.2.0 used.

    Its answers would be given to queriers of this task, and its jobs counted against theirs.
    """
    # Before the mark is looked for: others may put it, and then something else.
    is_used = any(store.having(kind) for kind in (Kind.REQUEST, Kind.JOB))
    if is_used and store.get(_WHOLE_STORE, Kind.TASK) is None:
        raise InputError(
            "this batch store was written before 0.2.0, whose keys are unsafe",
            hint="give [store] a new place, and delete this one: CHANGELOG.md, Security, says why",
        )
    if store.put_once(_WHOLE_STORE, Kind.TASK, task_id) != task_id:
        raise InputError(
            "this batch store belongs to another task", hint="give [store] a new place"
        )


class MemoryBatchStore:
    """For one process that may forget."""

    def __init__(self) -> None:
        self._kept: dict[Kind, dict[bytes, bytes]] = {}
        self._lock = threading.Lock()

    def put_once(self, key: bytes, kind: Kind, data: bytes) -> bytes:
        """Keep the first bytes ever put for this key and kind, and return those."""
        with self._lock:
            return self._kept.setdefault(kind, {}).setdefault(key, data)

    def get(self, key: bytes, kind: Kind) -> bytes | None:
        """What was put, or None."""
        return self._kept.get(kind, {}).get(key)

    def having(self, kind: Kind) -> tuple[bytes, ...]:
        """All keys under which something of this kind was put, in the order of putting."""
        with self._lock:
            return tuple(self._kept.get(kind, {}))

    def put_since(self, kind: Kind, position: int) -> tuple[tuple[int, bytes], ...]:
        """Position and key of what was put of this kind, from this position on, in order."""
        with self._lock:
            return tuple(islice(enumerate(self._kept.get(kind, {})), position, None))
