"""When the last batches reached each stage: for a page that is opened later.

Kept in memory by the hub of events, and for so many batches only.
"""

from collections import OrderedDict

MOST_BATCHES = 256


class StageTimes:
    """The first time of each stage of a batch, as it was told."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, dict[str, float]] = OrderedDict()

    def note(self, batch: str, stage: str, at: float) -> None:
        """A batch is at a stage."""
        self._times.setdefault(batch, {}).setdefault(stage, at)
        if len(self._times) > MOST_BATCHES:
            self._times.popitem(last=False)

    def of(self, batch: str) -> dict[str, float]:
        """What is known of a batch, in the order of its stages."""
        return dict(self._times.get(batch, {}))
