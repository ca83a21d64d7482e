"""The same task as a deployment's with every role in one process: no broker, disk or gateway."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dppp.experiments.costs.processor_time import time_once
from dppp.experiments.costs.whole_federation import MessageMeter
from dppp.federation import Federation, Parties

_ROUNDS = 3
"""Requests and ballots; lists and endorsements; certified lists and answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BareBatch:
    """What one batch costs, and how long the messages of its three rounds are."""

    cpu_seconds: float
    seconds: float
    asked_bytes: tuple[int, ...]
    """One request, one ballot list, one certified list."""
    answer_bytes: tuple[int, ...]
    """One ballot, one endorsement, one teacher's answer."""
    answers: tuple[int, ...]
    """How many of each came back."""


def measure_bare(parties: Parties, rows: Sequence[Sequence[float]]) -> BareBatch:
    """Run one batch of new rows, every role in turn."""
    meter = MessageMeter(parties.teachers)
    federation = Federation(aggregator=parties.aggregator, deliver=meter.deliver)
    started = time.perf_counter()
    outcome, cpu = time_once(lambda: federation.ask(np.asarray(rows, dtype=float)))
    seconds = time.perf_counter() - started
    rounds = tuple(meter.rounds.values())[-_ROUNDS:]  # keys of an epoch come before
    assert outcome.transcript is not None, "every row is new"
    assert len(rounds) == _ROUNDS, "every role keeps the rules"
    return BareBatch(
        cpu_seconds=cpu,
        seconds=seconds,
        asked_bytes=tuple(max(each.asked_bytes) for each in rounds),
        answer_bytes=tuple(max(each.answer_bytes) for each in rounds),
        answers=tuple(len(each.answer_bytes) for each in rounds),
    )
