"""One job of a querier: which rows, and which of them are new."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NewType

from dppp.errors import WireError
from dppp.hashing import hash_parts
from dppp.protocol.messages import BatchId, BatchRequest, Query, TaskId

JobId = NewType("JobId", bytes)

KNOWN = -1
"""The position of a row that was answered from the store and is in no batch."""

MOST_RECENT = 50
"""Jobs of each querier that are listed; the others are found by their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Which rows, by their digests, and where in the batch each new one is."""

    KIND: ClassVar[str] = "job"
    SIZE_LIMIT: ClassVar[int] = 16 * 2**20
    querier: str
    digests: tuple[bytes, ...] = field(repr=False)
    positions: tuple[int, ...] = field(repr=False)
    nonces: tuple[bytes, ...] = field(repr=False)
    deadline: int
    batch: BatchId

    def __post_init__(self) -> None:
        if len(self.digests) != len(self.positions) or not self.digests:
            raise WireError("a job has a position for each of its rows, and one row at least")
        if set(self.positions) - {KNOWN} != set(range(len(self.nonces))):
            raise WireError("a job's rows and the places of its batch do not belong together")

    @property
    def charged(self) -> int:
        """How many queries it spends."""
        return len(self.nonces)

    def request(self, inputs: Sequence[bytes], task_id: TaskId) -> BatchRequest:
        """The batch of this job, made anew from its rows."""
        by_position = dict(zip(self.positions, inputs, strict=True))
        return BatchRequest(
            task_id=task_id,
            deadline=self.deadline,
            queries=tuple(
                Query(nonce=nonce, input=by_position[position])
                for position, nonce in enumerate(self.nonces)
            ),
        )


def job_id(querier: str, key: str) -> JobId:
    """The id of a querier's job under its key."""
    return JobId(hash_parts("dppp job 1", (querier.encode(), key.encode())))
