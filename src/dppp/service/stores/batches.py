"""An aggregator's store of batches, in a file or in PostgreSQL; made where none is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from dppp.protocol.batch_store import BatchStore
from dppp.service.stores.locations import Location, require_url
from dppp.service.stores.sqlite.batches import SqliteBatchStore


@contextmanager
def open_batch_store(location: Location) -> Iterator[BatchStore]:
    """The store at a location, for any number of threads."""
    store = _open(location)
    try:
        yield store
    finally:
        store.close()


class _ClosableBatchStore(BatchStore, Protocol):
    def close(self) -> None: ...


def _open(location: Location) -> _ClosableBatchStore:
    if isinstance(location, Path):
        return SqliteBatchStore(location)
    require_url(location)
    from dppp.service.stores.postgres.batches import PostgresBatchStore  # noqa: PLC0415

    return PostgresBatchStore(location)
