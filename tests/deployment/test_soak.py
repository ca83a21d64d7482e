"""Minutes of batches while processes are killed and put to sleep at random; part of `make soak`.

DPPP_SOAK_BATCHES and DPPP_SOAK_SECONDS bound it, DPPP_SOAK_SEED repeats the same troubles (though
not the same moments: these are real processes).
"""

import os
import random
import secrets
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from tests.deployment.running import DROPOUTS, TEACHERS, Running, make_federation, rows, run
from tests.left_out import need_program, only_in_soak

from dppp.benchmarks.deployment.process_use import resident_megabytes
from dppp.privacy.ledger.records import Charge, decode_record
from dppp.protocol.messages import Ballot, BallotList
from dppp.protocol.transcript import Transcript, verify_transcript
from dppp.protocol.wire import decode
from dppp.service.local.processes import read_processes

BATCHES = int(os.environ.get("DPPP_SOAK_BATCHES", "3000"))
SECONDS = float(os.environ.get("DPPP_SOAK_SECONDS", "900"))
PROCESSES = ["broker", "aggregator"]
MOST_ROWS = 3
AT_ONCE = 6
DEADLINE_SECONDS = 15
END_SECONDS = 240
SETTLED_SECONDS = 30
"""Memory counts from so long after a process started: until then it loads its model and tables."""
GROWTH_MEGABYTES = 24
"""How much a process may grow after that. An aggregator remembers each answer: some 2 MB a thousand
queries; all of them hold a few messages."""

pytestmark = only_in_soak
Say = Callable[[str, object], None]


class Trouble:
    """Kills, restarts and puts to sleep, one after the other, from a thread of its own."""

    def __init__(self, running: Running, seed: int) -> None:
        self.done: Counter[str] = Counter()
        self.memory: defaultdict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
        self._running = running
        self._random = random.Random(seed)  # noqa: S311 - trouble, not secrets
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._make, daemon=True)

    def __enter__(self) -> "Trouble":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the trouble did not stop"

    def note_memory(self) -> None:
        for each in read_processes(self._running.local.folder):
            if each.is_running:
                found = self.memory[each.name, each.pid]
                found.append((time.monotonic(), resident_megabytes(each.pid)))

    def _make(self) -> None:
        teachers = [config.parent.name for config in self._running.local.teacher_configs]
        while not self._stop.wait(self._random.uniform(3, 12)):
            self.note_memory()
            chance, name = self._random.random(), self._random.choice(PROCESSES + teachers)
            if chance < 0.45:
                self._running.kill(name)
                self._stop.wait(self._random.uniform(0, 3))
                self._running.restart(name)
                self.done[f"{name.partition('-')[0]} killed"] += 1
            elif chance < 0.9:
                self._sleep([name], self._random.uniform(0.5, 6))
                self.done[f"{name.partition('-')[0]} put to sleep"] += 1
            else:  # one more than may vanish, for longer than batches wait
                self._sleep(self._random.sample(teachers, DROPOUTS + 1), DEADLINE_SECONDS + 2)
                self.done["too many teachers put to sleep"] += 1

    def _sleep(self, names: list[str], seconds: float) -> None:
        self._running.pause(*names)
        self._stop.wait(seconds)
        self._running.go_on(*names)

    def growth(self) -> dict[str, float]:
        """The most that a process of each kind grew once it was settled, in megabytes."""
        most: dict[str, float] = {}
        for (name, _), found in self.memory.items():
            settled = [size for at, size in found if at > found[0][0] + SETTLED_SECONDS]
            if len(settled) > 1:
                kind = name.partition("-")[0]
                most[kind] = max(most.get(kind, 0.0), settled[-1] - settled[0])
        return most


def test_batches_end_and_are_charged_once_through_minutes_of_trouble(
    tmp_path: Path, record_property: Say
) -> None:
    need_program("nats-server", package="nats-server")
    seed = int(os.environ.get("DPPP_SOAK_SEED", secrets.randbelow(2**32)))
    record_property("say", f"deployment soak: DPPP_SOAK_SEED={seed}")
    local = make_federation(
        tmp_path / "local",
        deadline_seconds=DEADLINE_SECONDS,
        epsilon=30.0,
        queries=MOST_ROWS * BATCHES,
    )
    with run(local) as running:
        started = time.monotonic()
        with Trouble(running, seed) as trouble, ThreadPoolExecutor(AT_ONCE) as threads:
            until = started + SECONDS
            asked = list(threads.map(lambda n: _ask(running, n, until), range(BATCHES)))
        running.wait_for_teachers(TEACHERS)
        trouble.note_memory()
        ended = [state for state in asked if state is not None]
        stages = Counter(state["stage"] for state in ended)
        growth = trouble.growth()
        record_property(
            "say",
            f"deployment soak: {len(ended)} batches in {time.monotonic() - started:.0f} s, "
            f"{dict(stages)}, {dict(trouble.done)}, growth in MB {growth}",
        )
        assert stages.keys() <= {"released", "aborted"}
        assert stages["released"] > 0
        assert all(_is_named(state) for state in ended if _is_aborted(state))
        voters = {
            state["batch"]: _voters(running, state["id"])
            for state in ended
            if not _is_aborted(state)
        }
        for index, config in enumerate(local.teacher_configs, start=1):
            charged = _charges(config.parent / "ledger.db")
            sizes = {state["batch"]: state["charged"] for state in ended}
            assert len(charged) == len(set(charged)), "a batch was charged twice"
            assert set(charged) <= sizes.keys(), "a batch was charged that nobody asked for"
            assert {batch for batch, who in voters.items() if index in who} <= set(charged)
            assert running.charged()[index - 1] == sum(sizes[batch] for batch in charged)
        assert growth.keys() >= {"aggregator", "teacher"}
        assert max(growth.values()) < GROWTH_MEGABYTES, growth


def _ask(running: Running, number: int, until: float) -> dict[str, Any] | None:
    """One batch, sent under its key until it is taken, to its end; None when time was up before."""
    if time.monotonic() > until:
        return None
    body = {"rows": rows([number % 3] * (1 + number % MOST_ROWS))}
    give_up = time.monotonic() + END_SECONDS
    key = f"soak-{number}"
    while time.monotonic() < give_up:
        try:
            answer = running.client.post(
                "/api/batches", json=body, headers={"Idempotency-Key": key}
            )
            assert answer.status_code in (202, 503), answer.text
            if answer.status_code == 202 and answer.json()["stage"] in ("released", "aborted"):
                found: dict[str, Any] = answer.json()
                return found
        except httpx.HTTPError:
            pass  # the aggregator is away
        time.sleep(0.2)
    raise AssertionError(f"batch {number} did not end within {END_SECONDS} s")


def _is_aborted(state: dict[str, Any]) -> bool:
    return bool(state["stage"] == "aborted")


def _is_named(state: dict[str, Any]) -> bool:
    """Whether an abort says who was missing, or that nobody was asked in time."""
    return bool(state["missing"]) or "not started before its deadline" in state["reason"]


def _voters(running: Running, batch: str) -> frozenset[int]:
    data = running.client.get(f"/api/batches/{batch}/transcript").content
    verify_transcript(data)
    ballots = decode(decode(data, Transcript).ballot_list, BallotList).ballots
    return frozenset(decode(ballot, Ballot).teacher for ballot in ballots)


def _charges(ledger: Path) -> list[str]:
    """The batches that a ledger was charged for, in their order."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
        found = connection.execute("SELECT kind, payload FROM entries ORDER BY position").fetchall()
    connection.close()
    records = [decode_record(kind, payload) for kind, payload in found]
    return [record.batch_id.hex() for record in records if isinstance(record, Charge)]
