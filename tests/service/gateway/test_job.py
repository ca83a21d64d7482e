"""A job that exists says of each row where its answer is."""

import pytest

from dppp.errors import WireError
from dppp.protocol.messages import BatchId
from dppp.protocol.wire import decode, encode
from dppp.service.gateway.job import KNOWN, Job


def make_job(positions: tuple[int, ...], *, rows: int, digests: int = 0) -> Job:
    return Job(
        querier="alice",
        query_ids=b"".join(bytes([row]) * 32 for row in range(rows)),
        positions=positions,
        row_digests=bytes(32 * digests),
        deadline=1,
        batch=BatchId(bytes(32)),
    )


def test_rows_may_be_new_known_or_the_same_again() -> None:
    job = make_job((0, KNOWN, 1, 0), rows=4, digests=4)
    assert job.charged == 2
    assert decode(encode(job), Job) == job


@pytest.mark.parametrize(
    ("positions", "rows", "digests"), [((), 0, 0), ((0,), 2, 0), ((0, 0), 1, 0), ((0,), 1, 2)]
)
def test_a_job_without_rows_or_with_a_row_too_many_is_refused(
    positions: tuple[int, ...], rows: int, digests: int
) -> None:
    with pytest.raises(WireError, match="a position for each of its rows, one at least"):
        make_job(positions, rows=rows, digests=digests)


@pytest.mark.parametrize("positions", [(0, 2), (0, -2), (-2, -2), (1, KNOWN)])
def test_a_row_at_no_place_and_a_place_without_a_row_are_refused(
    positions: tuple[int, ...],
) -> None:
    with pytest.raises(WireError, match="do not belong together"):
        make_job(positions, rows=2)
