"""What an aggregator's operator is told of ended batches."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import generate_latest
from tests.service.gateway.test_application import ALICE, ask, serve_embedded

from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.events import Stage
from dppp.protocol.messages import Ballot
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_paillier.teacher import PaillierSide
from dppp.service.aggregator.metrics import AggregatorMetrics
from dppp.service.batches.hub import BatchEvent
from dppp.service.gateway.jobs import Jobs


def test_who_is_left_out_of_a_released_batch_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With four of five ballots a batch is released all the same."""
    cast = PaillierSide.cast

    def spoil(self: PaillierSide, *arguments: Any) -> bytes:
        ballot = cast(self, *arguments)
        if self._desk.index != 5:
            return ballot
        return encode(sign(replace(decode(ballot, Ballot), proof=b""), self._desk.signer))

    monkeypatch.setattr(PaillierSide, "cast", spoil)
    with serve_embedded() as served, caplog.at_level(logging.WARNING, "dppp"):
        assert ask(served.client(ALICE), [[1.0, 0.0]])["stage"] == "released"
    (said,) = [each for each in caplog.records if each.message == "teacher at fault"]
    assert vars(said)["teacher"] == 5


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
