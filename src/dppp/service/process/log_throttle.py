"""Whether to say again what happens again and again: no sender can fill a log.

Ten times of each kind in ten seconds are told, then only how often it was, later.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable

MOST_TOLD = 10
WINDOW_SECONDS = 10.0


class LogThrottle:
    """Counts what happens, by kind; there must be no end of times, but few kinds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[Hashable, float] = {}
        self._told: Counter[Hashable] = Counter()
        self._untold: Counter[Hashable] = Counter()

    def times(self, kind: Hashable) -> int:
        """It happened once more: how often since it was last told, 0 if it is not to be told."""
        now = self._clock()
        if kind not in self._since or now >= self._since[kind] + WINDOW_SECONDS:
            self._since[kind], self._told[kind] = now, 0
        self._untold[kind] += 1
        if self._told[kind] >= MOST_TOLD:
            return 0
        self._told[kind] += 1
        return self._untold.pop(kind)
