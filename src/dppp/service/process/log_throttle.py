"""Whether to log again what happens again and again, so that no sender can fill a log.

Ten times of each kind in ten seconds are logged, if nothing else is said; after that only how often
it was. Used by whatever logs what others cause.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable

MOST_LOGGED = 10
WINDOW_SECONDS = 10.0


class LogThrottle:
    """Counts what happens, by kind; the times may be without end, the kinds must be few."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        most: int = MOST_LOGGED,
        window_seconds: float = WINDOW_SECONDS,
    ) -> None:
        self._clock = clock
        self._most = most
        self._window_seconds = window_seconds
        self._since: dict[Hashable, float] = {}
        self._logged: Counter[Hashable] = Counter()
        self._unlogged: Counter[Hashable] = Counter()

    def times(self, kind: Hashable) -> int:
        """It happened once more: how often since it was last logged, or 0 to log nothing now."""
        now = self._clock()
        if kind not in self._since or now >= self._since[kind] + self._window_seconds:
            self._since[kind], self._logged[kind] = now, 0
        self._unlogged[kind] += 1
        if self._logged[kind] >= self._most:
            return 0
        self._logged[kind] += 1
        return self._unlogged.pop(kind)
