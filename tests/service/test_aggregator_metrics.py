"""What an aggregator's operator is told of ended batches."""

from prometheus_client import generate_latest
from tests.service.test_gateway import serve_embedded

from dppp.protocol.batch_store import MemoryBatchStore
from dppp.service.aggregator_metrics import AggregatorMetrics
from dppp.service.events import BatchEvent, Stage
from dppp.service.jobs import Jobs


def test_flagged_answers_are_counted_from_zero() -> None:
    with serve_embedded() as served:
        runner = served.embedded.runner
        jobs = Jobs(runner=runner, store=MemoryBatchStore(), allowances={})
        metrics = AggregatorMetrics(runner, jobs)
        assert b"dppp_flagged_answers_total 0.0" in generate_latest(metrics.registry)
        for flagged in (0, 2, 1):
            event = BatchEvent(batch="ab", stage=Stage.RELEASED, at=1.0, queries=3, flagged=flagged)
            metrics._take(event)
        assert b"dppp_flagged_answers_total 3.0" in generate_latest(metrics.registry)
