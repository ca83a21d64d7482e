"""A pool that makes blindings in the background, so that encryption is one multiplication.

Run by teachers, away from the vote. A process that was forked has a copy of the pool, and of its
blindings, but not of its thread. Two ciphertexts under one blinding show the difference of their
plaintexts, so the copy hands out none of these: it makes each blinding when it is asked for one.
"""

import os
import threading
from collections import deque
from types import TracebackType
from typing import Self

from dppp.errors import InputError
from dppp.paillier.blinding import Blinding, BlindingTable
from dppp.randomness import RandomSource, system_randomness


class BlindingPool:
    """Keeps up to `capacity` blindings ready; a thread of its own makes them.

    Use it in a ``with`` block, or call `close`: both end the thread. An empty pool is not an error:
    the blinding is then made while the caller waits.
    """

    def __init__(
        self, table: BlindingTable, *, capacity: int, randomness: RandomSource = system_randomness
    ) -> None:
        if capacity < 1:
            raise InputError(
                f"a pool for {capacity} blindings is too small", hint="give it room for one"
            )
        self._table = table
        self._capacity = capacity
        self._randomness = randomness
        self._ready: deque[Blinding] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._fill, name="blindings", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return 0 if self._is_forked else len(self._ready)

    @property
    def _is_forked(self) -> bool:
        """Whether this is a copy. Nothing of it is used then, its lock least: it may be held."""
        return os.getpid() != self._process

    def take(self) -> Blinding:
        """A blinding that nobody else gets."""
        if self._is_closed:
            raise InputError("the pool of blindings is closed", hint="open a new one")
        if self._is_forked:
            return self._table.draw(self._randomness)
        with self._changed:
            if self._ready:
                self._changed.notify_all()
                return self._ready.popleft()
        return self._table.draw(self._randomness)

    def wait_until_full(self) -> None:
        """Wait for the background thread to fill the pool."""
        if self._is_forked:
            return
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._ready) >= self._capacity)

    def close(self) -> None:
        """End the background thread and forget the blindings."""
        if self._is_forked:
            self._is_closed = True
            return
        with self._changed:
            self._is_closed = True
            self._ready.clear()
            self._changed.notify_all()
        self._thread.join()

    def _fill(self) -> None:
        try:
            self._fill_until_closed()
        finally:
            # Also when the source of randomness failed: nobody must wait for a dead thread.
            with self._changed:
                self._is_closed = True
                self._changed.notify_all()

    def _fill_until_closed(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or len(self._ready) < self._capacity)
                if self._is_closed:
                    return
            blinding = self._table.draw(self._randomness)
            with self._changed:
                if not self._is_closed:
                    self._ready.append(blinding)
                self._changed.notify_all()
