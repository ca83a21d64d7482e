"""What a teacher's operator can watch: numbers and times, never inputs or votes.

Used by the teacher's process and its station.
"""

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from dppp.service.process.metrics import (
    DEFAULT_DEADLINE_SECONDS,
    buckets_to,
    make_registry,
    start_at_zero,
)

SUSPICIOUS = frozenset(
    {
        "BatchChanged",
        "ListFault",
        "ListNotCertified",
        "ListNotEndorsed",
        "NotFromAggregator",
        "OwnBallotMissing",
        "QueryReused",
        "SecondList",
    }
)
"""Rules that an honest aggregator on a broker that nobody else uses does not break."""

OF_THE_LEDGER = frozenset({"LedgerDamaged", "LedgerRolledBack", "LedgerUnavailable"})
"""Refusals that need the teacher's operator at once."""


class TeacherMetrics:
    """Counters of one teacher process, in a registry of their own."""

    def __init__(self, kinds: Iterable[str] = (), queries_of_task: int = 0) -> None:
        """`kinds` are the messages that it may answer."""
        self.registry = make_registry()
        self.answers = Counter(
            "dppp_answers", "Messages answered", ["message"], registry=self.registry
        )
        start_at_zero(self.answers, sorted(kinds))
        self._refusals = Counter(
            "dppp_refusals", "Messages refused", ["message", "rule"], registry=self.registry
        )
        self._suspicious = Counter(
            "dppp_suspicious_refusals",
            "Messages refused that an honest aggregator does not send",
            ["rule"],
            registry=self.registry,
        )
        start_at_zero(self._suspicious, sorted(SUSPICIOUS))
        self._of_the_ledger = Counter(
            "dppp_ledger_refusals",
            "Messages refused since the ledger could not be used",
            ["rule"],
            registry=self.registry,
        )
        start_at_zero(self._of_the_ledger, sorted(OF_THE_LEDGER))
        self.dropped = Counter(
            "dppp_messages_dropped", "Messages that could not be read", registry=self.registry
        )
        self.seconds = Histogram(
            "dppp_answer_seconds",
            "Time to answer",
            ["message"],
            registry=self.registry,
            buckets=buckets_to(DEFAULT_DEADLINE_SECONDS),
        )
        self.model_failures = Counter(
            "dppp_model_failures",
            "Votes that were not cast since a model failed",
            registry=self.registry,
        )
        self.queries_left = Gauge(
            "dppp_queries_left", "Queries of the task left in the ledger", registry=self.registry
        )
        of_task = Gauge("dppp_queries_of_task", "Queries of the task", registry=self.registry)
        of_task.set(queries_of_task)

    def refused(self, kind: str, rule: str) -> None:
        """A message was refused by a rule."""
        self._refusals.labels(kind, rule).inc()
        if rule in SUSPICIOUS:
            self._suspicious.labels(rule).inc()
        if rule in OF_THE_LEDGER:
            self._of_the_ledger.labels(rule).inc()
