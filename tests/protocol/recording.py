"""An aggregator that remembers whom it blamed, for tests that look only at the end."""

from collections import defaultdict
from typing import Any

from tests.crash.masked_setting import MaskedSetting
from tests.small_federation import Setting

from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import BatchStore
from dppp.protocol.events import Output, TeacherBlamed
from dppp.protocol.messages import BatchId


class RecordingAggregator(Aggregator):
    """Keeps the events of every step."""

    def __init__(self, setting: Setting | MaskedSetting, store: BatchStore) -> None:
        super().__init__(
            task=setting.task, public=setting.public, signer=setting.aggregator_signer, store=store
        )
        self._blamed: defaultdict[BatchId, dict[int, str]] = defaultdict(dict)

    def faults(self, batch: BatchId) -> dict[int, str]:
        """Who was blamed in a batch, and why."""
        return dict(self._blamed[batch])

    def adopt(self, *arguments: Any, **named: Any) -> Output:
        return self._record(super().adopt(*arguments, **named))

    def receive(self, *arguments: Any, **named: Any) -> Output:
        return self._record(super().receive(*arguments, **named))

    def tick(self, now: int) -> Output:
        return self._record(super().tick(now))

    def _record(self, output: Output) -> Output:
        for event in output.events:
            if isinstance(event, TeacherBlamed):
                self._blamed[event.batch].setdefault(event.teacher, event.reason)
        return output
