"""One batch through the real roles, with each party's processor time and every byte on the way.

The loop is that of `Federation`; what is added is a clock around every call of a role. Keys of an
epoch are counted apart from batches: they are made once, and many batches use them.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dppp.benchmarks.load import BatchLoad
from dppp.errors import BatchAborted, DpppError
from dppp.experiments.costs.processor_time import time_once
from dppp.federation import Parties
from dppp.protocol.events import Aborted, Event, Output, Released, Send
from dppp.protocol.inputs import encode_rows
from dppp.protocol.messages import BatchId, BatchRequest
from dppp.protocol.rows import ballot_request, make_row_secret, seal_rows
from dppp.protocol.wire import encode, kind_of
from dppp.protocol.with_masks.messages import KeyRequest, PublishedKey, Roster

_EPOCH_KINDS = frozenset({KeyRequest.KIND, PublishedKey.KIND, Roster.KIND})
_DEADLINE_SECONDS = 86_400


@dataclass(slots=True)
class PartyCosts:
    """Processor seconds and bytes of one batch, or of one epoch, by party."""

    aggregator: float = 0.0
    teachers: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    sent: Counter[int] = field(default_factory=Counter)
    received: Counter[int] = field(default_factory=Counter)
    by_step: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Teachers' seconds by the kind of message that they dealt with."""

    @property
    def everyone(self) -> float:
        """All parties' processor seconds."""
        return self.aggregator + sum(self.teachers.values())

    def one_teacher(self) -> float:
        """The median teacher's processor seconds."""
        return statistics.median(self.teachers.values())

    def mean_sent(self) -> float:
        """Bytes that a teacher sends."""
        return sum(self.sent.values()) / len(self.received)

    def mean_received(self) -> float:
        """Bytes that a teacher receives."""
        return sum(self.received.values()) / len(self.received)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCosts:
    """What one batch cost, what its epoch's keys cost if they were made for it, and its id."""

    batch: PartyCosts
    epoch: PartyCosts
    identifier: BatchId
    request_bytes: int
    """The queries as every teacher gets them; any cryptosystem has to send these."""


def make_request(load: BatchLoad, parties: Parties, first: int, labels: int) -> BatchRequest:
    """The querier: rows under a key that was not used before, sealed to the teachers."""
    rows = encode_rows([[float(row)] for row in range(first, first + labels)], 1)
    return BatchRequest(
        deadline=load.now + _DEADLINE_SECONDS,
        queries=seal_rows(parties.task, make_row_secret(), rows),
    )


class MeteredBatch:
    """Runs one batch and adds up what each party spends on it."""

    def __init__(self, parties: Parties, *, now: int) -> None:
        self._parties = parties
        self._now = now
        self._batch, self._epoch = PartyCosts(), PartyCosts()

    def run(self, request: BatchRequest) -> BatchCosts:
        """From the request to the receipt; raise where anybody refused or the batch aborted."""
        aggregator = self._parties.aggregator
        output = self._timed(lambda: aggregator.start(request, now=self._now))
        output += self._timed(lambda: aggregator.tick(self._now))
        while (end := _end_of(output)) is None:
            if not output.sends:
                raise DpppError("the benchmark's batch stands still; do not trust it")
            output = self._exchange(output.sends)
        if isinstance(end, Aborted):
            abort = end.abort
            raise BatchAborted(abort.reason, missing=abort.missing, culprits=abort.culprits)
        return BatchCosts(
            batch=self._batch,
            epoch=self._epoch,
            identifier=end.batch,
            request_bytes=len(encode(ballot_request(request))),
        )

    def _timed(self, work: Callable[[], Output]) -> Output:
        output, seconds = time_once(work)
        self._batch.aggregator += seconds
        return output

    def _exchange(self, sends: Sequence[Send]) -> Output:
        """Every message to its teacher, and every answer to the aggregator."""
        answers = [(each.teacher, self._ask(each)) for each in sends]
        sends_after: list[Send] = []
        events: list[Event] = []
        for teacher, data in answers:
            if data is not None:
                output = self._receive(teacher, data)
                sends_after += output.sends
                events += output.events
        return Output(sends=tuple(sends_after), events=tuple(events))

    def _ask(self, send: Send) -> bytes | None:
        kind = kind_of(send.data)
        costs = self._costs_of(kind)
        teacher = self._parties.teachers[send.teacher]
        answer, seconds = time_once(lambda: teacher.handle(send.data, now=self._now))
        costs.teachers[send.teacher] += seconds
        costs.by_step[kind] += seconds
        costs.received[send.teacher] += len(send.data)
        costs.sent[send.teacher] += len(answer or b"")
        return answer

    def _receive(self, teacher: int, data: bytes) -> Output:
        """What follows from the last key of an epoch is counted with the keys."""
        aggregator = self._parties.aggregator
        output, seconds = time_once(lambda: aggregator.receive(teacher, data, now=self._now))
        self._costs_of(kind_of(data)).aggregator += seconds
        return output

    def _costs_of(self, kind: str) -> PartyCosts:
        return self._epoch if kind in _EPOCH_KINDS else self._batch


def _end_of(output: Output) -> Released | Aborted | None:
    return next((each for each in output.events if isinstance(each, Released | Aborted)), None)
