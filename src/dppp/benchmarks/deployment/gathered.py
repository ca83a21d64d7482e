"""Queriers with single queries: each query in a batch of its own, and gathered into shared ones.

Both against the same running processes, one after the other: a query that says `share: false` has a
batch of its own. Every querier has a token of its own, and a number of queries under way at a time;
it looks for its answer as often as `dppp query` does.
"""

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from dppp.benchmarks.deployment.measurement import START_SECONDS, Load, make_deployment
from dppp.benchmarks.deployment.process_use import cpu_seconds
from dppp.benchmarks.deployment.querier import is_best
from dppp.errors import LocalFailure
from dppp.service.gateway.queriers import make_token
from dppp.service.local.federation import LocalFederation
from dppp.service.local.processes import read_processes, start_all, stop_all, wait_until_ready

_FIRST_POLL_SECONDS = 0.05
_POLL_SECONDS = 0.5
_WARMING_UP = 10
_UNDER_WAY = (1, 7)
"""Queries that each querier has under way at a time, in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredLoad:
    """How many queriers ask how many single queries.

    Half of `singles` in batches of their own, twice as many gathered: both take about as long.
    """

    queriers: int = 8
    singles: int = 96
    gather_milliseconds: int = 50


def compare_gathering(
    folder: Path, load: Load, gathered: GatheredLoad, cryptosystem: str
) -> dict[str, Any]:
    """Labels per second with a batch for each query and with shared batches, in one run."""
    local = make_deployment(folder, load, cryptosystem)
    tokens = _add_queriers(local, gathered)
    found: dict[str, Any] = {"load": asdict(gathered) | {"teachers": load.teachers}}
    try:
        start_all(local)
        wait_until_ready(local, load.teachers, START_SECONDS)
        with ExitStack() as clients:
            asking = _Queriers(local, [clients.enter_context(_client(local, t)) for t in tokens])
            asking.ask(_WARMING_UP, each=1, share=False)
            found["one_after_the_other"] = asking.ask(
                gathered.singles // 4, each=1, share=False, queriers=1
            )
            for each in _UNDER_WAY:
                for share, name in ((False, "own_batches"), (True, "gathered")):
                    part = f"{name}_{each}_under_way"
                    singles = 2 * gathered.singles if share else gathered.singles // 2
                    found[part] = asking.ask(singles, each=each, share=share)
    finally:
        stop_all(local.folder)
    return found | {"ratios": _ratios(found)}


def _ratios(found: dict[str, Any]) -> dict[str, float]:
    speed = {name: part["labels_per_second"] for name, part in found.items() if name != "load"}
    ratios = {}
    for each in _UNDER_WAY:
        fast = speed[f"gathered_{each}_under_way"]
        ratios[f"gathered_over_own_batches_{each}"] = fast / speed[f"own_batches_{each}_under_way"]
        ratios[f"gathered_{each}_over_one_after_the_other"] = fast / speed["one_after_the_other"]
    return ratios


def _add_queriers(local: LocalFederation, gathered: GatheredLoad) -> list[str]:
    """Tokens of as many queriers as the load has, and the setting that gathers."""
    text = local.aggregator_config.read_text(encoding="utf-8")
    wait = f"gather_milliseconds = {gathered.gather_milliseconds}"
    text = text.replace("[gateway]\n", f"[gateway]\n{wait}\n")
    if wait not in text:
        raise LocalFailure("the aggregator's configuration has no table [gateway]")
    tokens = []
    for number in range(gathered.queriers):
        token, digest = make_token()
        tokens.append(token)
        text += f'\n[[queriers]]\nname = "querier {number}"\ntoken_sha256 = "{digest}"\n'
        text += "queries = 1000000\n"
    local.aggregator_config.write_text(text, encoding="utf-8")
    return tokens


def _client(local: LocalFederation, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=local.gateway, headers=headers, timeout=600)


class _Queriers:
    """Several queriers at once, each on a connection of its own."""

    def __init__(self, local: LocalFederation, clients: list[httpx.Client]) -> None:
        self._processes = read_processes(local.folder)
        self._clients = clients
        self._numbers = itertools.count()

    def ask(
        self, singles: int, *, each: int, share: bool, queriers: int | None = None
    ) -> dict[str, float]:
        """All these queries, `each` under way at a time for each querier."""
        asking = self._clients[:queriers]
        rows = [[float(number % 10), float(number)] for number in self._next(singles)]
        before = cpu_seconds([process.pid for process in self._processes])
        started = time.perf_counter()
        with ThreadPoolExecutor(each * len(asking)) as threads:
            asked: list[Callable[[], float]] = [
                lambda row=row, client=client: _ask(client, row, share=share)  # type: ignore[misc]
                for row, client in zip(rows, itertools.cycle(asking), strict=False)
            ]
            latencies = list(threads.map(lambda one: one(), asked))
        seconds = time.perf_counter() - started
        spent = cpu_seconds([process.pid for process in self._processes]) - before
        return {
            "labels": singles,
            "seconds": seconds,
            "labels_per_second": singles / seconds,
            "latency_p50_seconds": float(np.median(latencies)),
            "latency_p95_seconds": float(np.quantile(latencies, 0.95)),
            "cpu_ms_per_label": 1000 * spent / singles,
        }

    def _next(self, count: int) -> list[int]:
        return list(itertools.islice(self._numbers, count))


def _ask(client: httpx.Client, row: list[float], *, share: bool) -> float:
    """The seconds from a row to its label."""
    started = time.perf_counter()
    posted = client.post("/api/batches", json={"rows": [row], "share": share})
    job = _read(posted, 202)["id"]
    pause = _FIRST_POLL_SECONDS
    while True:
        stage = _read(client.get(f"/api/batches/{job}"), 200)["stage"]
        if stage == "released":
            break
        if stage == "aborted":
            raise LocalFailure("a batch was aborted")
        time.sleep(pause)
        pause = min(2 * pause, _POLL_SECONDS)
    (label,) = _read(client.get(f"/api/batches/{job}/labels"), 200)["labels"]
    if not is_best(**label):
        raise LocalFailure("a label is flagged, or not the class with the most counts")
    return time.perf_counter() - started


def _read(answer: httpx.Response, code: int) -> Any:
    if answer.status_code != code:
        raise LocalFailure(f"the gateway answered {answer.status_code}: {answer.text[:300]}")
    return answer.json()
