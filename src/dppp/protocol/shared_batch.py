"""A batch that several queriers share: each seals its own rows, and one list answers them all.

The aggregator puts the parts one after the other, and their query ids make the batch id. Every part
has its own content key, so no querier can read another's rows.

No querier can spoil a batch for the others. A part that does not open for a teacher, whose ids are
not those of its rows, or that names a query which was asked before, gets this teacher's noise and
no vote, as where its models fail. It is not charged for it either, since such noise tells nothing
of its data. The parts that it can read are answered as ever. So whoever sends garbage gets garbage,
in the same batch, and nobody has to find out who it was and ask again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dppp.errors import InputError, RowsChanged, RowsUnreadable
from dppp.hashing import HASH_BYTES
from dppp.protocol.messages import (
    BallotRequest,
    BatchRequest,
    QueryId,
    SharedPart,
    batch_id,
    split_query_ids,
)
from dppp.protocol.rows import (
    OpenedRows,
    ballot_request,
    open_rows,
    require_for_all,
    wrapped_key_of,
)
from dppp.protocol.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRows:
    """What a teacher has of one querier's part: its rows; None where it casts no vote on them."""

    queries: int
    opened: OpenedRows | None = field(repr=False)


def require_distinct(task: Task, request: BatchRequest) -> None:
    """Refuse what teachers would: a part not sealed to all, or a query twice. The aggregator."""
    for each in request.parts:
        require_for_all(task, each)
    if len(set(request.query_ids)) < len(request.query_ids):
        raise InputError("two parts of a batch name the same query", hint="ask about it once")


def shared_ballot_request(request: BatchRequest, teacher: int) -> BallotRequest:
    """What one teacher is sent of a request with several parts; unsigned."""
    return replace(
        ballot_request(request),
        queries=len(request.query_ids),
        sealed=b"",
        shared=tuple(
            SharedPart(
                query_ids=each.query_ids,
                sealed=each.sealed,
                wrapped_key=wrapped_key_of(each, teacher),
            )
            for each in request.parts
        ),
    )


def read_parts(
    task: Task,
    index: int,
    private_key: X25519PrivateKey,
    request: BallotRequest,
    *,
    is_fresh: Callable[[tuple[QueryId, ...]], bool],
    note: Callable[[str], None] = lambda _: None,
) -> tuple[PartRows, ...]:
    """Every part of what teacher `index` was sent; one at least has rows to vote on.

    `is_fresh` is the ledger's word that queries may be voted on in this batch.
    """
    if not request.shared:
        opened = open_rows(task, index, private_key, request)
        return (PartRows(queries=request.queries, opened=opened),)
    named = b"".join(each.query_ids for each in request.shared)
    if batch_id(task.task_id, named) != request.batch_id:
        raise RowsChanged("the query ids are not those of the batch; nothing was charged")
    if len(set(split_query_ids(named))) < len(named) // HASH_BYTES:
        # Else a part that is made readable in a later attempt gets a second vote for one charge.
        raise RowsChanged("two parts of the batch name the same query; nothing was charged")
    found = []
    for place, part in enumerate(request.shared):
        rows = _read_part(task, index, private_key, request, part)
        if rows.opened is None or not is_fresh(rows.opened.query_ids):
            note(f"part {place} of a shared batch cannot be read or was asked before: no vote")
            rows = replace(rows, opened=None)
        found.append(rows)
    if all(each.opened is None for each in found):
        raise RowsUnreadable(
            f"no part of a shared batch can be answered by teacher {index}; nothing was charged",
            hint="have the queriers seal their rows again, under new keys",
        )
    return tuple(found)


def _read_part(
    task: Task,
    index: int,
    private_key: X25519PrivateKey,
    request: BallotRequest,
    part: SharedPart,
) -> PartRows:
    """A part is read as if it were a batch of its own."""
    queries = len(part.query_ids) // HASH_BYTES
    alone = replace(
        request,
        batch_id=batch_id(task.task_id, part.query_ids),
        queries=queries,
        sealed=part.sealed,
        wrapped_key=part.wrapped_key,
        shared=(),
    )
    try:
        opened = open_rows(task, index, private_key, alone)
    except (RowsUnreadable, RowsChanged):
        return PartRows(queries=queries, opened=None)
    return PartRows(queries=queries, opened=opened)
