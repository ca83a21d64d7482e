"""When a batch's teachers are reminded: soon at first, then less and less often.

A message may get lost, so what is not answered is asked again. What is merely slow must not be:
over a slow link each repetition would come on top of what is still on its way. So the first
reminder waits until the longest message can have arrived at the least bandwidth, and each one that
helps nobody doubles the wait.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dppp.protocol.batch import slow_seconds
from dppp.protocol.messages import BatchId

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 60.0
"""Between two reminders, beside the time that the longest message takes."""


@dataclass(slots=True)
class _Waiting:
    longest: int = 0
    pause: float = FIRST_SECONDS
    due_at: float = 0.0


class Reminders:
    """Of the batches under way."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: dict[BatchId, _Waiting] = {}

    def note_sent(self, batch: BatchId, longest: int) -> None:
        """So many bytes went out to one teacher about a batch."""
        waiting = self._waiting.get(batch)
        if waiting is not None and longest > waiting.longest:
            waiting.longest = longest
            waiting.due_at = self._clock() + waiting.pause + slow_seconds(longest)

    def note_progress(self, batch: BatchId) -> None:
        """The batch began, or somebody answered: what is missing is asked for soon again."""
        waiting = self._waiting.setdefault(batch, _Waiting())
        waiting.pause = FIRST_SECONDS
        waiting.due_at = self._clock() + FIRST_SECONDS + slow_seconds(waiting.longest)

    def forget(self, batch: BatchId) -> None:
        """The batch has ended."""
        self._waiting.pop(batch, None)

    def due(self) -> frozenset[BatchId]:
        """The batches to remind of now; asked again, they are due later and later."""
        now = self._clock()
        found = frozenset(self._due(now, self._waiting.items()))
        for batch in found:
            waiting = self._waiting[batch]
            waiting.pause = min(2 * waiting.pause, LONGEST_SECONDS)
            waiting.due_at = now + waiting.pause + slow_seconds(waiting.longest)
        return found

    @staticmethod
    def _due(now: float, waiting: Iterable[tuple[BatchId, _Waiting]]) -> Iterable[BatchId]:
        for batch, each in waiting:
            each.due_at = min(each.due_at, now + each.pause + slow_seconds(each.longest))
            if now >= each.due_at:  # a clock may have been put back
                yield batch
