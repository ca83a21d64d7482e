"""What happens to batches and teachers, for whoever watches: progress bars, the page, metrics.

An event holds a stage, numbers of ballots, who is online: never an input, a vote, a ballot or a
key. The hub of a process tells of all batches, and is for its operator's metrics and for other
aggregator processes; a querier watches its own batches only (own_views.py). A watcher who reads too
slowly loses the oldest events, so that nobody who watches can hold up the aggregator.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import ClassVar

from dppp.protocol.events import Stage

_MOST_WAITING = 1_000
MOST_BATCHES = 256
"""Whose times are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEvent:
    """A batch got further: `done` of `of` ballots, endorsements or decryption shares are in.

    `size_bytes` is of the ballot that came, sealed and signed; all of a batch are about as large.
    `flagged` are answers of a release whose counts votes and noise hardly ever give. `worker` is
    the aggregator process that said so, if it was another than this one.
    """

    batch: str
    stage: Stage
    at: float
    queries: int
    done: int = 0
    of: int = 0
    teacher: int | None = None
    reason: str | None = None
    flagged: int = 0
    size_bytes: int = 0
    worker: str | None = None

    @property
    def is_last(self) -> bool:
        """Whether it is the end of the batch."""
        return self.stage.is_last

    def to_json(self) -> dict[str, object]:
        """For the wire and the page."""
        return {"kind": "batch", **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherEvent:
    """A teacher was heard of, or was not for too long."""

    teacher: int
    is_online: bool
    at: float
    is_last: ClassVar[bool] = False

    def to_json(self) -> dict[str, object]:
        """For the wire and the page."""
        return {"kind": "teacher", **asdict(self)}


HubEvent = BatchEvent | TeacherEvent


class StageTimes:
    """When the last batches reached each stage, as it was told: for a page that is opened later."""

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


class EventHub:
    """Passes events to everybody who watches now. Lives in one event loop."""

    def __init__(self) -> None:
        self.stage_times = StageTimes()
        self._watchers: set[_Watcher] = set()

    def tell(self, event: HubEvent) -> None:
        """Pass an event on; never waits."""
        if isinstance(event, BatchEvent):
            self.stage_times.note(event.batch, event.stage, event.at)
        for watcher in self._watchers:
            watcher.take(event)

    def end(self) -> None:
        """Nothing more will happen here: whoever watches gets to the end."""
        for watcher in self._watchers:
            watcher.end()

    @contextmanager
    def watch(self) -> Iterator[AsyncIterator[HubEvent]]:
        """All events from now on, until the block ends."""
        watcher = _Watcher()
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)


class _Watcher:
    def __init__(self) -> None:
        self._waiting: deque[HubEvent] = deque(maxlen=_MOST_WAITING)
        self._news = asyncio.Event()
        self._is_over = False

    def end(self) -> None:
        self._is_over = True
        self._news.set()

    def take(self, event: HubEvent) -> None:
        self._waiting.append(event)
        self._news.set()

    def __aiter__(self) -> "_Watcher":
        return self

    async def __anext__(self) -> HubEvent:
        while not self._waiting:
            if self._is_over:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()
