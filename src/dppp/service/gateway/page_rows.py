"""Rows in the clear, as the page sends them: the gateway seals them for the teachers itself.

Used by jobs.py. The secret of a querier's rows is derived from the aggregator's own key, so every
gateway of a federation has the same and none stores it. Each job has its own row key: a query id is
answered once by the teachers, and a batch may be aborted. By its digest under the querier's key a
row is known again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dppp.hashing import hash_parts
from dppp.protocol.messages import SealedQueries, TaskId, split_query_ids
from dppp.protocol.rows import query_ids_of, row_key_of, seal_rows
from dppp.protocol.task import Task
from dppp.service.gateway.job import KNOWN, Job, JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRows:
    """The rows of one job, and the secret of the querier who typed them."""

    task_id: TaskId
    secret: bytes = field(repr=False)
    rows: Sequence[bytes] = field(repr=False)

    @property
    def digests(self) -> bytes:
        """By which the same rows are known again, in any job of this querier."""
        return query_ids_of(row_key_of(self.secret, self.task_id), self.task_id, self.rows)

    def query_ids(self, job: JobId, known: Mapping[bytes, bytes]) -> bytes:
        """The id of each row: the one under which it was released, or one of this job."""
        new = split_query_ids(query_ids_of(self._key_of(job), self.task_id, self.rows))
        digests = split_query_ids(self.digests)
        return b"".join(known.get(digest, own) for digest, own in zip(digests, new, strict=True))

    def seal(self, task: Task, identifier: JobId, job: Job) -> SealedQueries:
        """The rows of a job that are new, in the order of its batch."""
        places = zip(job.positions, self.rows, strict=True)
        new = {position: row for position, row in places if position != KNOWN}
        return seal_rows(task, self._key_of(identifier), [new[place] for place in sorted(new)])

    def _key_of(self, job: JobId) -> bytes:
        return row_key_of(hash_parts("dppp page rows 1", (self.secret, job)), self.task_id)
