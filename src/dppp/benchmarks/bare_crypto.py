"""The same task as a deployment's with every role in one process: no broker, disk or gateway."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dppp.federation import Federation, Parties, Reply, in_process
from dppp.protocol.events import Send
from dppp.protocol.wire import kind_of

_ROUNDS = 3
"""Requests and ballots; lists and endorsements; certified lists and decryption shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BareBatch:
    """What one batch costs, and how long the messages of its three rounds are."""

    cpu_seconds: float
    seconds: float
    asked_bytes: tuple[int, ...]
    """One request, one ballot list, one certified list."""
    answer_bytes: tuple[int, ...]
    """One ballot, one endorsement, one teacher's decryption shares."""
    answers: tuple[int, ...]
    """How many of each came back."""


def measure_bare(parties: Parties, rows: Sequence[Sequence[float]]) -> BareBatch:
    """Run one batch of new rows, every role in turn."""
    here = in_process(parties.teachers)
    asked: defaultdict[str, list[int]] = defaultdict(list)
    answered: defaultdict[str, list[int]] = defaultdict(list)

    def deliver(sends: Sequence[Send], now: int) -> list[Reply]:
        replies = here(sends, now)
        for send in sends:
            asked[kind_of(send.data)].append(len(send.data))
        for _, data in replies:
            answered[kind_of(data)].append(len(data))
        return replies

    federation = Federation(aggregator=parties.aggregator, deliver=deliver)
    started, cpu_started = time.perf_counter(), time.process_time()
    outcome = federation.ask(np.asarray(rows, dtype=float))
    cpu, seconds = time.process_time() - cpu_started, time.perf_counter() - started
    assert outcome.transcript is not None, "every row is new"
    assert len(asked) == len(answered) == _ROUNDS, "every role keeps the rules"
    return BareBatch(
        cpu_seconds=cpu,
        seconds=seconds,
        asked_bytes=tuple(max(lengths) for lengths in asked.values()),
        answer_bytes=tuple(max(lengths) for lengths in answered.values()),
        answers=tuple(len(lengths) for lengths in answered.values()),
    )
