"""A pool that makes blindings in the background, so that encryption is one multiplication.

Run by teachers, away from the vote.
"""

import threading
from collections import deque
from types import TracebackType
from typing import Self

from dppp.errors import InputError
from dppp.paillier.blinding import Blinding, BlindingTable
from dppp.paillier.randomness import RandomBytes, system_random


class BlindingPool:
    """Keeps up to `capacity` blindings ready; a thread of its own makes them.

    Use it in a ``with`` block, or call `close`: both end the thread. An empty pool is no error;
    the caller then makes its blinding itself.
    """

    def __init__(
        self, table: BlindingTable, *, capacity: int, random_bytes: RandomBytes = system_random
    ) -> None:
        if capacity < 1:
            raise InputError(f"a pool of {capacity} blindings holds none; give it room for one")
        self._table = table
        self._capacity = capacity
        self._random_bytes = random_bytes
        self._ready: deque[Blinding] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
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
        return len(self._ready)

    def take(self) -> Blinding:
        """A blinding that nobody else gets."""
        with self._changed:
            if self._is_closed:
                raise InputError("the pool of blindings is closed; open a new one")
            if self._ready:
                self._changed.notify_all()
                return self._ready.popleft()
        return self._table.draw(self._random_bytes)

    def wait_until_full(self) -> None:
        """Wait for the background thread to fill the pool."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._ready) >= self._capacity)

    def close(self) -> None:
        """End the background thread and forget the blindings."""
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
            blinding = self._table.draw(self._random_bytes)
            with self._changed:
                if not self._is_closed:
                    self._ready.append(blinding)
                self._changed.notify_all()
