"""The alert rules and the dashboard that docs/deploy has: they fire, and their metrics exist."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.left_out import need_program
from tests.protocol.small import small

from dppp import errors
from dppp.federation import Parties
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.service.aggregator.metrics import AggregatorMetrics
from dppp.service.batches.hub import EventHub
from dppp.service.batches.runner import BatchRunner
from dppp.service.gateway.embedded import EmbeddedChannel
from dppp.service.gateway.jobs import Jobs
from dppp.service.process.monitoring import make_monitor
from dppp.service.teacher.metrics import OF_THE_LEDGER, SUSPICIOUS, TeacherMetrics
from dppp.service.teacher.station import KINDS

HERE = Path(__file__).parent
DEPLOY = HERE.parent / "docs" / "deploy"
NOT_OURS = {"up", "dppp_certificate_seconds"}
"""Of Prometheus itself, and of the TLS certificate (tests/deployment/test_end_to_end.py)."""


def test_each_alert_fires_when_it_should_and_the_first_time_too(tmp_path: Path) -> None:
    promtool = need_program("promtool", package="prometheus")
    shutil.copy(DEPLOY / "alerts.yaml", tmp_path)
    shutil.copy(HERE / "alert_rules_test.yaml", tmp_path)
    tried = subprocess.run(  # noqa: S603 - our own command
        [promtool, "test", "rules", "alert_rules_test.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr


@pytest.fixture(scope="module")
def registries() -> tuple[CollectorRegistry, CollectorRegistry]:
    """Of a teacher and of an aggregator to which nothing has happened."""
    parties: Parties = small()
    store = MemoryBatchStore()
    aggregator = Aggregator(
        task=parties.task,
        public=None if parties.key is None else parties.key.public,
        signer=parties.aggregator_signer,
        store=store,
    )
    channel = EmbeddedChannel(parties.teachers)
    runner = BatchRunner(aggregator=aggregator, channel=channel, hub=EventHub())
    metrics = AggregatorMetrics(runner, Jobs(runner=runner, store=store, allowances={}), 900)
    teacher = TeacherMetrics(KINDS, 40)
    for each in (metrics, teacher):
        make_monitor(each.registry, {"teacher": lambda: True})
    return teacher.registry, metrics.registry


def names_of(registry: CollectorRegistry) -> set[str]:
    return {sample.name for metric in registry.collect() for sample in metric.samples}


@pytest.mark.parametrize("name", ["alerts.yaml", "dashboard.json"])
def test_every_metric_that_is_looked_at_is_there_before_anything_happened(
    registries: tuple[CollectorRegistry, CollectorRegistry], name: str
) -> None:
    text = (DEPLOY / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        text = " ".join(
            target["expr"] for panel in json.loads(text)["panels"] for target in panel["targets"]
        )
    asked = set(re.findall(r"\b(?:dppp|process)_[a-z_]+", text)) - {"dppp_"}
    there = set().union(*map(names_of, registries))
    lazily = {"dppp_answer_seconds_bucket", "dppp_refusals_total"}  # with their first message
    assert len(asked) > 8
    assert asked - NOT_OURS - there <= lazily


def test_labelled_counters_start_at_zero(
    registries: tuple[CollectorRegistry, CollectorRegistry],
) -> None:
    teacher, aggregator = registries
    for rule in SUSPICIOUS:
        assert teacher.get_sample_value("dppp_suspicious_refusals_total", {"rule": rule}) == 0
    for rule in OF_THE_LEDGER:
        assert teacher.get_sample_value("dppp_ledger_refusals_total", {"rule": rule}) == 0
    for outcome in ("released", "aborted"):
        for name in ("dppp_batches_total", "dppp_queries_total"):
            assert aggregator.get_sample_value(name, {"outcome": outcome}) == 0
    assert teacher.get_sample_value("dppp_answers_total", {"message": "cast request"}) == 0


def test_times_can_be_told_apart_up_to_the_deadline(
    registries: tuple[CollectorRegistry, CollectorRegistry],
) -> None:
    edges = {
        float(sample.labels["le"])
        for metric in registries[1].collect()
        for sample in metric.samples
        if sample.name == "dppp_batch_seconds_bucket"
    }
    assert {300.0, 900.0, 1_800.0} <= edges


def test_each_process_says_its_version_and_what_it_uses(
    registries: tuple[CollectorRegistry, CollectorRegistry],
) -> None:
    for registry in registries:
        names = names_of(registry)
        assert {"dppp_build_info", "process_resident_memory_bytes", "process_open_fds"} <= names


def test_a_refusal_that_may_be_cheating_is_counted_by_its_rule() -> None:
    metrics = TeacherMetrics()
    metrics.refused("delivered list", "SecondList")
    metrics.refused("cast request", "RequestExpired")
    found = metrics.registry.get_sample_value
    assert found("dppp_suspicious_refusals_total", {"rule": "SecondList"}) == 1
    assert found("dppp_suspicious_refusals_total", {"rule": "RequestExpired"}) is None


def test_a_refusal_for_want_of_the_ledger_is_counted_apart() -> None:
    metrics = TeacherMetrics(KINDS, 40)
    metrics.refused("cast request", "LedgerDamaged")
    metrics.refused("cast request", "QueriesExhausted")
    found = {
        rule: metrics.registry.get_sample_value("dppp_ledger_refusals_total", {"rule": rule})
        for rule in OF_THE_LEDGER
    }
    assert found == dict.fromkeys(OF_THE_LEDGER, 0) | {"LedgerDamaged": 1}
    assert {name for name in vars(errors) if name in OF_THE_LEDGER} == OF_THE_LEDGER
