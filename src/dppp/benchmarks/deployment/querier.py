"""A querier that asks a deployment as fast as it answers, and takes the time."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import numpy as np

from dppp.errors import LocalFailure
from dppp.protocol.transcript import verify_transcript
from dppp.service.local.federation import LocalFederation

_BATCH_SECONDS = 1_800


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Batches that were released, with how long each took and all of them together."""

    labels: int
    latencies: tuple[float, ...]
    seconds: float

    def figures(self) -> dict[str, float]:
        """For a report."""
        return {
            "batches": len(self.latencies),
            "labels": self.labels,
            "seconds": self.seconds,
            "labels_per_second": self.labels / self.seconds,
            "latency_p50_seconds": float(np.median(self.latencies)),
            "latency_p95_seconds": float(np.quantile(self.latencies, 0.95)),
            "latency_most_seconds": max(self.latencies),
        }


class Querier:
    """The only querier of a local federation. Use it in a ``with`` block."""

    def __init__(self, local: LocalFederation, *, classes: int, first: int = 0) -> None:
        """Rows are numbered from the first on: each is asked once."""
        token = local.token_file.read_text(encoding="utf-8").strip()
        self._client = httpx.Client(
            base_url=local.gateway,
            headers={"Authorization": f"Bearer {token}"},
            timeout=_BATCH_SECONDS,
        )
        self._classes = classes
        self._numbers = itertools.count(first)

    def __enter__(self) -> "Querier":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask_singles(self, batches: int, *, at_once: int) -> Asked:
        """Batches of one query, up to `at_once` of them under way at a time."""
        rows = [self._row() for _ in range(batches)]
        started = time.perf_counter()
        with ThreadPoolExecutor(at_once) as threads:
            latencies = tuple(threads.map(lambda row: self._ask([row]), rows))
        return Asked(labels=batches, latencies=latencies, seconds=time.perf_counter() - started)

    def ask_large(self, labels: int) -> Asked:
        """One batch of many queries; its transcript is verified afterwards."""
        seconds = self._ask([self._row() for _ in range(labels)], is_verified=True)
        return Asked(labels=labels, latencies=(seconds,), seconds=seconds)

    def _row(self) -> list[float]:
        number = next(self._numbers)
        return [float(number % self._classes), float(number)]

    def _ask(self, rows: list[list[float]], *, is_verified: bool = False) -> float:
        """The seconds from the rows to their labels."""
        started = time.perf_counter()
        posted = self._client.post("/api/batches", json={"rows": rows})
        _require(posted, 202)
        batch = f"/api/batches/{posted.json()['id']}"
        with self._client.stream("GET", f"{batch}/events") as events:
            for _ in events.iter_lines():
                pass  # the last one is the end of the batch
        found = self._client.get(f"{batch}/labels")
        _require(found, 200)
        seconds = time.perf_counter() - started
        labels = found.json()["labels"]
        if len(labels) != len(rows) or not all(is_best(**each) for each in labels):
            raise LocalFailure("a label is missing, flagged, or not the class with the most counts")
        if is_verified:
            verify_transcript(self._client.get(f"{batch}/transcript").content)
        return seconds


def is_best(*, label: str, counts: list[int], flagged: bool, **_: object) -> bool:
    """Whether a label is what its counts say."""
    return counts[int(label.removeprefix("class "))] == max(counts) and not flagged


def _require(answer: httpx.Response, code: int) -> None:
    if answer.status_code != code:
        raise LocalFailure(f"the gateway answered {answer.status_code}: {answer.text[:300]}")
