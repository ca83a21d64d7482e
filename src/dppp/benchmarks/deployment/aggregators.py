"""One aggregator process and two, on one PostgreSQL and one queue group, in one run.

The same federation answers batches of one query, first through the gateway of the first aggregator,
then through the gateways of both. Used by `dppp bench --deployment --store`.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dppp.benchmarks.deployment.measurement import START_SECONDS, Load, make_deployment
from dppp.benchmarks.deployment.meter import Meter
from dppp.benchmarks.deployment.querier import Asked, Querier
from dppp.service.local.federation import LocalFederation
from dppp.service.local.processes import (
    commands_of,
    free_ports,
    read_processes,
    start_all,
    start_process,
    stop_all,
    wait_until_ready,
    write_processes,
)

_WARMING_UP = 10
_OTHER_ROWS = 10**6
"""Where the second gateway's rows begin: a row that was released before would be free."""


def compare_aggregators(
    folder: Path, load: Load, cryptosystem: str, store_url: str
) -> dict[str, Any]:
    """Labels per second and processor time by role with one aggregator, and with two."""
    local = make_deployment(folder, load, cryptosystem)
    _keep_in(local, store_url)
    meter = Meter(local)
    found: dict[str, Any] = {"load": asdict(load)}
    try:
        start_all(local)
        wait_until_ready(local, load.teachers, START_SECONDS)
        with Querier(local, classes=load.classes) as querier:
            querier.ask_singles(_WARMING_UP, at_once=1)
            found["one"] = meter.measure(
                lambda: querier.ask_singles(load.singles // 2, at_once=load.at_once)
            )
            second = _start_second(local, load.teachers)
            with Querier(second, classes=load.classes, first=_OTHER_ROWS) as other:
                other.ask_singles(_WARMING_UP, at_once=1)
                found["two"] = meter.measure(lambda: _ask_both(querier, other, load))
    finally:
        stop_all(local.folder)
    one, two = found["one"], found["two"]
    ratio = two["labels_per_second"] / one["labels_per_second"]
    return found | {"ratios": {"two_over_one_labels_per_second": ratio}}


def _keep_in(local: LocalFederation, store_url: str) -> None:
    place = local.aggregator_config.with_name("store.url")
    place.write_text(store_url, encoding="utf-8")
    place.chmod(0o600)
    text = local.aggregator_config.read_text(encoding="utf-8")
    text = re.sub(r'(?m)(^\[store\]\n)path = ".*"$', rf'\1url = "file:{place.name}"', text)
    local.aggregator_config.write_text(text, encoding="utf-8")


def _start_second(local: LocalFederation, teachers: int) -> LocalFederation:
    """Beside the first, with a gateway of its own."""
    (port,) = free_ports(1)
    config = local.aggregator_config.with_name("second.toml")
    text = local.aggregator_config.read_text(encoding="utf-8")
    config.write_text(text.replace(f":{local.gateway_port}", f":{port}"), encoding="utf-8")
    command = [*commands_of(local)["aggregator"][:-1], str(config)]
    started = start_process(local.folder, "aggregator-2", command)
    write_processes(local.folder, [*read_processes(local.folder), started])
    second = replace(local, gateway_port=port)
    wait_until_ready(second, teachers, START_SECONDS)
    return second


def _ask_both(one: Querier, other: Querier, load: Load) -> Asked:
    """Half of the queries through each gateway, as many under way in all as with one."""

    def ask(querier: Querier) -> Asked:
        return querier.ask_singles(load.singles // 4, at_once=load.at_once // 2)

    with ThreadPoolExecutor(2) as threads:
        halves = list(threads.map(ask, (one, other)))
    return Asked(
        labels=sum(each.labels for each in halves),
        latencies=tuple(latency for each in halves for latency in each.latencies),
        seconds=max(each.seconds for each in halves),
    )
