"""What a teacher's operator can watch: numbers and times, never inputs or votes.

Used by the teacher's process and its station.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class TeacherMetrics:
    """Counters of one teacher process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.answers = Counter(
            "dppp_answers", "Messages answered", ["message"], registry=self.registry
        )
        self.refusals = Counter(
            "dppp_refusals", "Messages refused", ["message", "rule"], registry=self.registry
        )
        self.dropped = Counter(
            "dppp_messages_dropped", "Messages that could not be read", registry=self.registry
        )
        self.seconds = Histogram(
            "dppp_answer_seconds", "Time to answer", ["message"], registry=self.registry
        )
        self.model_failures = Counter(
            "dppp_model_failures",
            "Votes that were not cast since a model failed",
            registry=self.registry,
        )
        self.queries_left = Gauge(
            "dppp_queries_left", "Queries of the task left in the ledger", registry=self.registry
        )
