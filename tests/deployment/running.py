"""A real federation of processes for tests: broker with TLS, aggregator, teachers, on loopback."""

import csv
import functools
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from sklearn.linear_model import LogisticRegression

from dppp.paillier.dealer import DealtKey, deal
from dppp.privacy.trust import Trust
from dppp.service.ceremony.terms import make_terms
from dppp.service.local.federation import LocalFederation, cryptosystem_of, make_local
from dppp.service.local.processes import (
    Started,
    commands_of,
    free_ports,
    read_processes,
    start_all,
    start_process,
    stop_all,
    wait_until_ready,
    write_processes,
)
from dppp.service.process.config import AggregatorConfig, read_config
from dppp.service.stores.ledgers import inspect_ledger
from dppp.service.stores.locations import Location

TEACHERS, COLLUDERS, DROPOUTS = 5, 1, 1
CLASS_NAMES = ("no", "yes", "perhaps")
FEATURES = ("first", "second")
EPSILON, QUERIES = 60.0, 40
"""So little noise that a label is wrong once in sixty times, with five teachers who agree."""
CRYPTOSYSTEMS = ("masks", "paillier")
READY_SECONDS = 120
WAIT_SECONDS = 90


@functools.cache
def short_key() -> DealtKey:
    """A key with the fewest bits that anything deployed takes, and s = 1."""
    trust = Trust(teachers=TEACHERS, colluders=COLLUDERS, dropouts=DROPOUTS)
    return deal(teachers=TEACHERS, threshold=trust.threshold, modulus_bits=2048, s=1)


def first_feature() -> LogisticRegression:
    """A model: the class is the first feature."""
    rows = np.array([[place, other] for place in range(3) for other in range(-3, 4)])
    return LogisticRegression(C=100).fit(rows, np.array(CLASS_NAMES)[rows[:, 0]])


def make_federation(
    folder: Path,
    *,
    deadline_seconds: int = 60,
    epsilon: float = EPSILON,
    queries: int = QUERIES,
    cryptosystem: str = "masks",
) -> LocalFederation:
    """Five teachers who agree, and a budget that leaves little noise unless told otherwise."""
    is_dealt = cryptosystem == "paillier"
    broker_port, gateway_port = free_ports(2)
    terms = make_terms(
        name="deployed",
        data_id="records",
        class_names=CLASS_NAMES,
        features=FEATURES,
        epsilon=epsilon,
        delta=1e-4,
        queries=queries,
        colluders=COLLUDERS,
        dropouts=DROPOUTS,
        cryptosystem=cryptosystem,
        modulus_bits=2048 if is_dealt else None,
        s=1 if is_dealt else None,
    )
    local = make_local(
        folder,
        terms=terms,
        models=[first_feature()] * TEACHERS,
        broker_port=broker_port,
        gateway_port=gateway_port,
        key=short_key() if is_dealt else None,
    )
    text = local.aggregator_config.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^log_level.*$", f"\\g<0>\ndeadline_seconds = {deadline_seconds}", text)
    local.aggregator_config.write_text(text, encoding="utf-8")
    return local


@dataclass(slots=True)
class Running:
    """The processes, and a querier."""

    local: LocalFederation
    client: httpx.Client

    @property
    def cryptosystem(self) -> str:
        return cryptosystem_of(self.local)

    def process(self, name: str) -> Started:
        (found,) = (each for each in read_processes(self.local.folder) if each.name == name)
        return found

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """kill -9 if nothing else is said, and wait until it is gone."""
        process = self.process(name)
        os.kill(process.pid, number)
        _reap(process.pid)
        wait_for(lambda: not process.is_running, f"{name} to die")

    def pause(self, *names: str) -> None:
        for name in names:
            os.kill(self.process(name).pid, signal.SIGSTOP)

    def go_on(self, *names: str) -> None:
        for name in names:
            os.kill(self.process(name).pid, signal.SIGCONT)

    def restart(self, name: str) -> None:
        """Start a process that was killed, again with the same command."""
        others = [each for each in read_processes(self.local.folder) if each.name != name]
        started = start_process(self.local.folder, name, commands_of(self.local)[name])
        write_processes(self.local.folder, [*others, started])

    def start_second_aggregator(self) -> Started:
        """Beside the first, on the same store, with a gateway of its own."""
        config = self.local.aggregator_config.with_name("second.toml")
        text = self.local.aggregator_config.read_text(encoding="utf-8")
        (port,) = free_ports(1)
        config.write_text(text.replace(f":{self.local.gateway_port}", f":{port}"), encoding="utf-8")
        command = [*commands_of(self.local)["aggregator"][:-1], str(config)]
        started = start_process(self.local.folder, "second", command)
        write_processes(self.local.folder, [*read_processes(self.local.folder), started])
        wait_for(lambda: "aggregator ready" in self.log_of("second"), "the second aggregator")
        return started

    @contextmanager
    def at_second_gateway(self) -> Iterator["Running"]:
        """The same federation, asked through the gateway of the second aggregator."""
        config = self.local.aggregator_config.with_name("second.toml")
        gateway = f"http://{read_config(config, AggregatorConfig).gateway.listen}"
        with httpx.Client(base_url=gateway, headers=self.client.headers, timeout=30) as client:
            yield Running(self.local, client)

    def wait_for_teachers(self, count: int) -> None:
        wait_until_ready(self.local, count, READY_SECONDS)

    def submit(self, *labels: int, key: str | None = None) -> str:
        headers = {} if key is None else {"Idempotency-Key": key}
        answer = self.client.post("/api/batches", json={"rows": rows(labels)}, headers=headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def state(self, batch: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/api/batches/{batch}").json()
        return found

    def wait_for_end(self, batch: str) -> dict[str, Any]:
        return wait_for(
            lambda: _if(
                self._state_or_none(batch), lambda s: s["stage"] in ("released", "aborted")
            ),
            "the batch to end",
        )

    def labels(self, batch: str) -> list[str]:
        found = self.client.get(f"/api/batches/{batch}/labels").json()["labels"]
        return [each["label"] for each in found]

    def charged(self) -> list[int]:
        """How many queries each teacher's ledger was charged."""
        return [charged_in(config.parent / "ledger.db") for config in self.local.teacher_configs]

    def settled_charges(self) -> list[int]:
        """The same, when everybody who was asked last has written it down."""

        def settled() -> list[int] | None:
            first = self.charged()
            time.sleep(0.5)
            return first if self.charged() == first else None

        found: list[int] = wait_for(settled, "the ledgers to settle")
        return found

    def log_of(self, name: str) -> str:
        return (self.local.folder / "logs" / f"{name}.log").read_text(encoding="utf-8")

    def _state_or_none(self, batch: str) -> dict[str, Any] | None:
        try:
            return self.state(batch)
        except (httpx.HTTPError, ValueError):
            return None  # the aggregator is away


@contextmanager
def run(local: LocalFederation) -> Iterator[Running]:
    token = local.token_file.read_text(encoding="utf-8").strip()
    headers = {"Authorization": f"Bearer {token}"}
    try:
        start_all(local)
        with httpx.Client(base_url=local.gateway, headers=headers, timeout=30) as client:
            running = Running(local, client)
            running.wait_for_teachers(TEACHERS)
            yield running
    finally:  # at once: stopping gently takes five seconds, and has tests of its own
        for each in read_processes(local.folder):
            if each.is_running:
                os.kill(each.pid, signal.SIGKILL)
        stop_all(local.folder)


def rows(labels: Sequence[int]) -> list[list[float]]:
    """Different rows each time, for which all models say these classes."""
    return [[float(label), float(np.random.default_rng().random())] for label in labels]


def write_rows(path: Path, labels: Sequence[int]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FEATURES)
        writer.writerows(rows(labels))


def charged_in(ledger: Location) -> int:
    with inspect_ledger(ledger) as (opened, _):
        return sum(task.answered for data in opened.summary().data for task in data.tasks)


def wait_for(condition: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")


def _if(value: Any, condition: Callable[[Any], bool]) -> Any:
    return value if value is not None and condition(value) else None


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
