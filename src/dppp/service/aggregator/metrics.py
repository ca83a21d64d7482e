"""What an aggregator's operator can watch."""

import functools
from contextlib import suppress

from prometheus_client import Counter, Gauge, Histogram

from dppp.errors import BatchStoreUnavailable
from dppp.protocol.events import Stage
from dppp.service.batches.hub import BatchEvent
from dppp.service.batches.runner import BatchRunner, TeacherState
from dppp.service.gateway.jobs import Jobs
from dppp.service.process.metrics import (
    DEFAULT_DEADLINE_SECONDS,
    buckets_to,
    make_registry,
    start_at_zero,
)


class AggregatorMetrics:
    """Counters of one aggregator process, fed by its events."""

    def __init__(
        self,
        runner: BatchRunner,
        jobs: Jobs,
        deadline_seconds: int = DEFAULT_DEADLINE_SECONDS,
    ) -> None:
        self.registry = make_registry()
        self._runner = runner
        self._jobs = jobs
        self._started: dict[str, float] = {}
        online = Gauge("dppp_teachers_online", "Teachers heard of lately", registry=self.registry)
        online.set_function(lambda: sum(each.is_online for each in runner.teachers.values()))
        needed = Gauge(
            "dppp_teachers_needed", "Teachers that a batch needs", registry=self.registry
        )
        needed.set(runner.task.trust.ballots_needed)
        there = Gauge(
            "dppp_teacher_online", "1 if heard of lately", ["teacher"], registry=self.registry
        )
        for index, state in runner.teachers.items():
            there.labels(index).set_function(functools.partial(_one_if_online, state))
        under_way = Gauge("dppp_open_batches", "Batches under way", registry=self.registry)
        under_way.set_function(lambda: len(runner.open_batches))
        self._batches = Counter(
            "dppp_batches", "Batches that came to an end", ["outcome"], registry=self.registry
        )
        self._queries = Counter(
            "dppp_queries", "Queries in ended batches", ["outcome"], registry=self.registry
        )
        for counter in (self._batches, self._queries):
            start_at_zero(counter, (Stage.RELEASED.value, Stage.ABORTED.value))
        self._flagged = Counter(
            "dppp_flagged_answers",
            "Released answers with counts that votes and noise hardly ever give",
            registry=self.registry,
        )
        self._slow = Counter(
            "dppp_slow_links",
            "Reminders that were not sent, since the teacher was still receiving",
            ["teacher"],
            registry=self.registry,
        )
        start_at_zero(self._slow, map(str, runner.teachers))
        self._seconds = Histogram(
            "dppp_batch_seconds",
            "From request to release",
            registry=self.registry,
            buckets=buckets_to(deadline_seconds),
        )
        self._queries_left = Gauge(
            "dppp_queries_left", "Queries of the task not asked yet", registry=self.registry
        )

        of_task = Gauge("dppp_queries_of_task", "Queries of the task", registry=self.registry)
        of_task.set(runner.task.queries)

    async def count(self) -> None:
        """Count the events of this process until cancelled."""
        with self._runner.hub.watch() as events:
            async for event in events:
                if isinstance(event, BatchEvent):
                    if event.worker is None:
                        self._take(event)
                    if event.stage is Stage.VOTES or event.is_last:
                        await self.count_left()

    def note_slow(self, teacher: int) -> None:
        """A teacher was still receiving when it would have been reminded."""
        self._slow.labels(teacher).inc()

    async def count_left(self) -> None:
        """Count the queries of all workers' jobs; the teachers' ledgers have the last word."""
        with suppress(BatchStoreUnavailable):  # health and log say so
            left = self._jobs.task.queries - await self._jobs.charged()
            self._queries_left.set(max(0, left))

    def _take(self, event: BatchEvent) -> None:
        if event.stage is Stage.VOTES:
            self._started[event.batch] = event.at
        elif event.is_last:
            self._batches.labels(event.stage.value).inc()
            self._queries.labels(event.stage.value).inc(event.queries)
            self._flagged.inc(event.flagged)
            started = self._started.pop(event.batch, None)
            if started is not None and event.stage is Stage.RELEASED:
                self._seconds.observe(event.at - started)


def _one_if_online(state: TeacherState) -> float:
    return float(state.is_online)
