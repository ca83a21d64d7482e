"""What a real deployment costs: broker with TLS, aggregator and teachers in processes of their own.

Under one cryptosystem or under both, one after the other. Each is set against the same batches with
every role in one process (bare crypto) and against messages of the same lengths through the same
broker with nobody computing (bare broker), all in one run.
"""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB

from dppp.benchmarks.deployment.bare_broker import BareRounds, measure_broker
from dppp.benchmarks.deployment.bare_crypto import BareBatch, measure_bare
from dppp.benchmarks.deployment.hosted import commands_of_hosts
from dppp.benchmarks.deployment.meter import Meter
from dppp.benchmarks.deployment.querier import Querier
from dppp.errors import LocalFailure
from dppp.federation import Parties, create_federation
from dppp.learning.models import as_predict
from dppp.paillier.dealer import DealtKey, deal
from dppp.privacy.trust import Trust
from dppp.service.ceremony.federation_file import read_federation
from dppp.service.ceremony.terms import Terms
from dppp.service.local.federation import LocalFederation, make_local
from dppp.service.local.processes import (
    Started,
    free_ports,
    read_processes,
    start_all,
    stop_all,
    wait_until_ready,
)

_WARMING_UP = 10
_BARE_SINGLES = 30
_BARE_ROUNDS = 100
START_SECONDS = 600
_STOP_SECONDS = 30
_EPSILON = 30.0
"""Noise for this many queries drowns 20 teachers' votes: only speed is measured here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked of how many teachers: batches of one query, then one batch of many.

    `alone` of the single ones are sent one after the other, for their latency; the others with
    `at_once` under way together, for their throughput. `modulus_bits` and `s` are paillier's.
    Each teacher has a process, unless all of them share a number of `hosts`.
    """

    teachers: int = 20
    classes: int = 10
    modulus_bits: int = 2048
    s: int = 1
    singles: int = 1_000
    alone: int = 100
    at_once: int = 8
    labels: int = 10_000
    hosts: int | None = None


def compare_deployments(
    folder: Path, load: Load, cryptosystems: Sequence[str]
) -> dict[str, object]:
    """A federation under each of these cryptosystems in turn, with the ratios of the two."""
    found = {each: _measure(folder / each, load, each) for each in cryptosystems}
    result: dict[str, object] = {"load": asdict(load), **found}
    if {"masks", "paillier"} <= set(found):
        result["masks_over_paillier"] = _over(found["masks"], found["paillier"])
    return result


def _over(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """How the same figures of two deployments compare."""
    figures = {
        "single_cpu": ("alone", "cpu_ms_per_label"),
        "single_latency": ("alone", "latency_p50_seconds"),
        "singles_together_labels_per_second": ("together_second_half", "labels_per_second"),
        "large_cpu": ("large", "cpu_ms_per_label"),
        "large_labels_per_second": ("large", "labels_per_second"),
    }
    return {
        name: ours[part][figure] / theirs[part][figure] for name, (part, figure) in figures.items()
    }


def _measure(folder: Path, load: Load, cryptosystem: str) -> dict[str, Any]:
    """Run a federation in a new folder, stop it, and say what it took."""
    key = None if cryptosystem == "masks" else _deal(load)
    local = _make(folder, load, key)
    parties = _create_here(local, load, key)
    meter = Meter(local)
    try:
        started_at = time.monotonic()
        start_all(local, commands_of_hosts(local, load.hosts) if load.hosts else None)
        wait_until_ready(local, load.teachers, START_SECONDS)
        start_seconds = time.monotonic() - started_at
        running = _ask_deployment(local, load, meter)
        bare = {"single": _bare_singles(parties, load), "large": _bare_large(parties, load)}
        broker = _leave_only_the_broker(local)
        rounds = {
            "single": measure_broker(local, broker.pid, bare["single"], _BARE_ROUNDS),
            "large": measure_broker(local, broker.pid, bare["large"], 3),
        }
    finally:
        stop_all(local.folder)
    return {
        "start_seconds": start_seconds,
        **running,
        "bare_crypto": {name: asdict(each) for name, each in bare.items()},
        "bare_broker": {name: _of_rounds(each) for name, each in rounds.items()},
        "ratios": _ratios(running, bare, rounds, load),
    }


def _deal(load: Load) -> DealtKey:
    return deal(
        teachers=load.teachers,
        threshold=Trust.with_defaults(load.teachers).threshold,
        modulus_bits=load.modulus_bits,
        s=load.s,
    )


def make_deployment(folder: Path, load: Load, cryptosystem: str) -> LocalFederation:
    """A federation under this cryptosystem in a new folder; nothing of it runs yet."""
    return _make(folder, load, None if cryptosystem == "masks" else _deal(load))


def _make(folder: Path, load: Load, key: DealtKey | None) -> LocalFederation:
    broker_port, gateway_port = free_ports(2)
    terms = Terms(
        name="benchmark",
        data_id="benchmark",
        class_names=tuple(f"class {number}" for number in range(load.classes)),
        features=("input", "number"),
        epsilon=_EPSILON,
        delta=1e-5,
        queries=_WARMING_UP + load.singles + load.labels,
        noise="skellam",
        cryptosystem="masks" if key is None else "paillier",
        modulus_bits=None if key is None else load.modulus_bits,
        s=None if key is None else load.s,
    )
    return make_local(
        folder,
        terms=terms,
        models=[_model(load.classes)] * load.teachers,
        broker_port=broker_port,
        gateway_port=gateway_port,
        key=key,
    )


def _model(classes: int) -> GaussianNB:
    """The class is the first feature, whatever the second."""
    rows = np.array([[place, other] for place in range(classes) for other in (-1e5, 1e5)])
    return GaussianNB().fit(rows, [f"class {int(row[0])}" for row in rows])


def _create_here(local: LocalFederation, load: Load, key: DealtKey | None) -> Parties:
    """The same terms, key and noise in this process."""
    task = read_federation(local.aggregator_config.with_name("federation.json"), None).task
    predict = as_predict(_model(load.classes), task.class_names)
    return create_federation(
        name=task.name,
        class_names=task.class_names,
        features=task.features,
        certificate=task.certificate,
        models=[predict] * load.teachers,
        key=key,
    )


def _bare_singles(parties: Parties, load: Load) -> BareBatch:
    """The mean of several batches of one query, as far as the task allows."""
    batches = min(_BARE_SINGLES, load.singles)
    measure_bare(parties, [[0.0, -1.0]])  # under masks the first one exchanges keys
    measured = [measure_bare(parties, [[0.0, float(each)]]) for each in range(batches)]
    first = measured[0]
    return BareBatch(
        cpu_seconds=float(np.mean([each.cpu_seconds for each in measured])),
        seconds=float(np.mean([each.seconds for each in measured])),
        asked_bytes=first.asked_bytes,
        answer_bytes=first.answer_bytes,
        answers=first.answers,
    )


def _bare_large(parties: Parties, load: Load) -> BareBatch:
    return measure_bare(parties, [[1.0, float(each)] for each in range(load.labels)])


def _ask_deployment(local: LocalFederation, load: Load, meter: Meter) -> dict[str, Any]:
    """Latencies, throughput, processor time, bytes and memory while a querier asks."""
    memory = {}
    with Querier(local, classes=load.classes) as querier:
        querier.ask_singles(_WARMING_UP, at_once=1)
        memory["start"] = meter.memory()
        alone = meter.measure(lambda: querier.ask_singles(load.alone, at_once=1))
        rest = load.singles - load.alone
        first = meter.measure(lambda: querier.ask_singles(rest // 2, at_once=load.at_once))
        memory["middle"] = meter.memory()
        second = meter.measure(lambda: querier.ask_singles(rest - rest // 2, at_once=load.at_once))
        memory["after singles"] = meter.memory()
        large = meter.measure(lambda: querier.ask_large(load.labels))
        memory["end"] = meter.memory()
    return {
        "alone": alone,
        "together_first_half": first,
        "together_second_half": second,
        "large": large,
        "resident_megabytes": memory,
    }


def _leave_only_the_broker(local: LocalFederation) -> Started:
    processes = read_processes(local.folder)
    (broker,) = (each for each in processes if each.name == "broker")
    others = [each for each in processes if each != broker]
    for each in others:
        if each.is_running:
            os.kill(each.pid, signal.SIGTERM)
    until = time.monotonic() + _STOP_SECONDS
    while any(each.is_running for each in others):
        if time.monotonic() > until:
            raise LocalFailure(f"processes did not stop within {_STOP_SECONDS} s")
        time.sleep(0.1)
    return broker


def _of_rounds(rounds: BareRounds) -> dict[str, float]:
    return {
        "seconds_median": float(np.median(rounds.seconds)),
        "seconds_p95": float(np.quantile(rounds.seconds, 0.95)),
        "cpu_seconds": rounds.cpu_seconds / len(rounds.seconds),
    }


def _ratios(
    running: dict[str, Any], bare: dict[str, BareBatch], rounds: dict[str, BareRounds], load: Load
) -> dict[str, float]:
    """The deployment over the bare parts, of the same run."""
    together = running["together_second_half"]
    single_ms, large_ms = (
        1000 * bare["single"].cpu_seconds,
        1000 * bare["large"].cpu_seconds / load.labels,
    )
    broker_seconds = {name: float(np.median(each.seconds)) for name, each in rounds.items()}
    return {
        "single_cpu_over_bare_crypto": together["cpu_ms_per_label"] / single_ms,
        "large_cpu_over_bare_crypto": running["large"]["cpu_ms_per_label"] / large_ms,
        "single_latency_over_bare_crypto": (
            running["alone"]["latency_p50_seconds"] / bare["single"].seconds
        ),
        "single_latency_over_bare_broker": (
            running["alone"]["latency_p50_seconds"] / broker_seconds["single"]
        ),
        "large_seconds_over_bare_crypto": running["large"]["seconds"] / bare["large"].seconds,
        "large_seconds_over_bare_broker": running["large"]["seconds"] / broker_seconds["large"],
    }
