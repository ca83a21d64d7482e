"""Which queries a ledger was charged for, in a quarter of the memory that a set of ids would take.

A mark is the first eight bytes of an id. Where an id's mark is not among the marks of all queries
that were asked, the id was not asked. Where it is, which is rare unless the query was asked, the
ids themselves are compared. So what is said is exact, whatever ids somebody chooses.
"""

import itertools
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Marks = NDArray[np.uint64]

_MARK_BYTES = 8
_MOST_RECENT = 4096
"""Marks that wait: to sort them in costs as much as there are marks in all."""


class QueryIds:
    """The ids of a batch in one piece; each has at most 255 bytes, and mostly all are as long."""

    __slots__ = ("_joined", "_lengths")

    def __init__(self, ids: Collection[bytes]) -> None:
        self._joined = b"".join(ids)
        self._lengths = bytes(map(len, ids))

    def __len__(self) -> int:
        return len(self._lengths)

    def are(self, ids: Collection[bytes]) -> bool:
        """Whether it is made of these, in this order."""
        other = QueryIds(ids)
        return (self._joined, self._lengths) == (other._joined, other._lengths)

    def holds(self, query_id: bytes) -> bool:
        """Whether this is one of them."""
        return query_id in self._joined and query_id in self.as_tuple()

    def as_tuple(self) -> tuple[bytes, ...]:
        """Each by itself, in order."""
        ends = itertools.accumulate(self._lengths, initial=0)
        return tuple(self._joined[start:end] for start, end in itertools.pairwise(ends))


class AskedQueries:
    """All queries that were charged to any batch."""

    def __init__(self) -> None:
        self._batches: list[QueryIds] = []
        self._sorted: Marks = np.empty(0, dtype=np.uint64)
        self._recent: set[int] = set()

    def add(self, ids: Sequence[bytes]) -> QueryIds:
        """Remember the queries of one more batch."""
        batch = QueryIds(ids)
        self._batches.append(batch)
        marks = _marks_of(ids)
        if len(self._recent) + len(marks) > _MOST_RECENT:
            recent = np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent))
            # The sort finds what is sorted already, so this is a merge.
            self._sorted = np.sort(np.concatenate([self._sorted, marks, recent]), kind="stable")
            self._recent.clear()
        else:
            self._recent.update(marks.tolist())
        return batch

    def find(self, ids: Sequence[bytes]) -> bytes | None:
        """The first of these queries that was asked before; None where all are new."""
        marks = _marks_of(ids)
        is_known = np.zeros(len(marks), dtype=np.bool_)
        if len(self._sorted):
            places = np.minimum(np.searchsorted(self._sorted, marks), len(self._sorted) - 1)
            is_known = self._sorted[places] == marks
        recent = self._recent.intersection(marks.tolist()) if self._recent else ()
        if recent:
            is_known |= np.isin(marks, np.array(list(recent), dtype=np.uint64))
        named = (ids[place] for place in np.flatnonzero(is_known))
        return next((each for each in named if any(one.holds(each) for one in self._batches)), None)


def has_repeated(ids: Sequence[bytes]) -> bool:
    """Whether an id occurs twice among these."""
    marks = np.sort(_marks_of(ids))
    return bool((marks[1:] == marks[:-1]).any()) and len(set(ids)) < len(ids)


def _marks_of(ids: Sequence[bytes]) -> Marks:
    """The mark of each; shorter ids are filled up with zeros."""
    length = len(ids[0])
    if length >= _MARK_BYTES and set(map(len, ids)) == {length}:
        table = np.frombuffer(b"".join(ids), dtype=np.uint8).reshape(len(ids), length)
        joined = table[:, :_MARK_BYTES].tobytes()
    else:
        joined = b"".join(each[:_MARK_BYTES].ljust(_MARK_BYTES, b"\0") for each in ids)
    return np.frombuffer(joined, dtype="<u8")
