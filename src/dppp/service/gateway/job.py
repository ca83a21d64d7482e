"""One job of a querier: which rows, by their query ids, and which of them are new."""

from dataclasses import dataclass, field
from typing import ClassVar, NewType

from dppp.errors import WireError
from dppp.hashing import HASH_BYTES, hash_parts
from dppp.protocol.messages import BatchId, QueryId, split_query_ids

JobId = NewType("JobId", bytes)

KNOWN = -1
"""The position of a row that was answered from the store and is in no batch."""

MOST_RECENT = 50
"""Jobs of each querier that are listed; the others are found by their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The query id of each row, and where in the batch each new one is.

    `row_digests` are there if the gateway sealed the rows itself: keyed digests by which it knows
    a row again. Of rows that the querier sealed it has none. `batch` is the batch that the job
    makes by itself; where it shares one with others, `Place` says which.
    """

    KIND: ClassVar[str] = "job"
    SIZE_LIMIT: ClassVar[int] = 16 * 2**20
    querier: str
    query_ids: bytes = field(repr=False)
    positions: tuple[int, ...] = field(repr=False)
    row_digests: bytes = field(default=b"", repr=False)
    deadline: int
    batch: BatchId

    def __post_init__(self) -> None:
        length = len(self.positions) * HASH_BYTES
        if not length or len(self.query_ids) != length or len(self.row_digests) not in {0, length}:
            raise WireError("a job has an id and a position for each of its rows, one at least")
        if set(self.positions) - {KNOWN} != set(range(self.charged)):
            raise WireError("a job's rows and the places of its batch do not belong together")

    @property
    def charged(self) -> int:
        """How many queries it spends."""
        return max(self.positions) + 1

    @property
    def rows(self) -> tuple[QueryId, ...]:
        """The query id of each row."""
        return split_query_ids(self.query_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the answers to a job are: in which batch, and from which position of it on."""

    KIND: ClassVar[str] = "place"
    SIZE_LIMIT: ClassVar[int] = 2**10
    batch: BatchId
    first: int


def job_id(querier: str, key: str) -> JobId:
    """The id of a querier's job under its key."""
    return JobId(hash_parts("dppp job 1", (querier.encode(), key.encode())))
