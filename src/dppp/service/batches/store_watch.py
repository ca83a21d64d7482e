"""Whether an aggregator's store is in reach: seen by whatever uses it, and said once.

`WatchedStore` stands between the aggregator and its store, so every use counts and nobody has to
look. Whoever tries again and again asks `pause` how long to wait. The reason goes to the operator's
log, and to nobody else: it may name the database and its host.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dppp.errors import BatchStoreUnavailable
from dppp.protocol.batch_store import BatchStore, Kind

log = logging.getLogger("dppp.aggregator")

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 8.0
_SAY_AGAIN_SECONDS = 60.0


class StoreWatch:
    """What is known of a store: usable or not, and since when."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._is_usable = True
        self._since = 0.0
        self._said_at = 0.0
        self._pause = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether the last use of the store went well."""
        return self._is_usable

    @property
    def pause_seconds(self) -> float:
        """How long to wait before it is tried again; 0 while it is usable."""
        return self._pause

    @contextmanager
    def using(self) -> Iterator[None]:
        """One use of the store."""
        try:
            yield
        except BatchStoreUnavailable as error:
            self._note_failure(error)
            raise
        self._note_success()

    def _note_failure(self, error: BatchStoreUnavailable) -> None:
        with self._lock:
            now = self._clock()
            was_usable, self._is_usable = self._is_usable, False
            if was_usable:
                self._since, self._pause = now, 0.0
            self._pause = min(_LONGEST_PAUSE_SECONDS, max(_FIRST_PAUSE_SECONDS, 2 * self._pause))
            is_time = was_usable or now >= self._said_at + _SAY_AGAIN_SECONDS
            if is_time:
                self._said_at = now
        if is_time:
            seconds = round(now - self._since)
            extra = {"reason": error.one_line, "seconds": seconds}
            log.error("the store cannot be used", extra=extra)

    def _note_success(self) -> None:
        if self._is_usable:
            return
        with self._lock:
            was_usable, self._is_usable = self._is_usable, True
            self._pause = 0.0
            seconds = round(self._clock() - self._since)
        if not was_usable:
            log.info("the store can be used again", extra={"seconds": seconds})


class WatchedStore:
    """A store of which it is known whether it can be used."""

    def __init__(self, store: BatchStore, watch: StoreWatch) -> None:
        self._store = store
        self._watch = watch

    def put_once(self, key: bytes, kind: Kind, data: bytes) -> bytes:
        """Keep the first bytes ever put for this key and kind, and return those."""
        with self._watch.using():
            return self._store.put_once(key, kind, data)

    def get(self, key: bytes, kind: Kind) -> bytes | None:
        """What was put, or None."""
        with self._watch.using():
            return self._store.get(key, kind)

    def having(self, kind: Kind) -> tuple[bytes, ...]:
        """All keys under which something of this kind was put, in the order of putting."""
        with self._watch.using():
            return self._store.having(kind)

    def put_since(self, kind: Kind, position: int) -> tuple[tuple[int, bytes], ...]:
        """Position and key of what was put of this kind, from this position on, in order."""
        with self._watch.using():
            return self._store.put_since(kind, position)
