"""How teachers took part in one querier's batches, as the events of those batches tell it.

Kept in memory, since this process started. Over all queriers these numbers would say when others
ask, and how often.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dppp.protocol.events import Stage
from dppp.service.batches.hub import BatchEvent

MOST_UNDER_WAY = 256
"""Batches whose end is waited for; the oldest is forgotten, should its end never be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TookPart:
    """What one teacher did in these batches."""

    answered_at: float | None = None
    ballots: int = 0
    missed: int = 0
    has_missed_last: bool = False


class Attendance:
    """Counts ballots given and missed. Two processes may run one batch; it counts once."""

    def __init__(self, teachers: Iterable[int]) -> None:
        self._of = {index: TookPart() for index in teachers}
        self._voters: OrderedDict[str, set[int]] = OrderedDict()

    def of(self, teacher: int) -> TookPart:
        """What this teacher did."""
        return self._of[teacher]

    def note(self, event: BatchEvent) -> None:
        """A batch got further. One whose beginning was not told is left out."""
        if event.stage is Stage.VOTES:
            self._voters.setdefault(event.batch, set())
            if len(self._voters) > MOST_UNDER_WAY:
                self._voters.popitem(last=False)
        voters = self._voters.get(event.batch)
        if voters is None:
            return
        if event.stage is Stage.BALLOTS and event.teacher in self._of:
            self._note_ballot(event.teacher, voters, event.at)
        elif event.is_last:
            del self._voters[event.batch]
            self._note_end(voters)

    def _note_ballot(self, teacher: int, voters: set[int], at: float) -> None:
        if teacher not in voters:
            voters.add(teacher)
            seen = self._of[teacher]
            self._of[teacher] = replace(seen, ballots=seen.ballots + 1, answered_at=at)

    def _note_end(self, voters: set[int]) -> None:
        for teacher, seen in self._of.items():
            has_missed = teacher not in voters
            self._of[teacher] = replace(
                seen, missed=seen.missed + has_missed, has_missed_last=has_missed
            )
