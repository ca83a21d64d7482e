"""Processor time of all threads; wall time says little on a machine that others use.

Used by everything that measures costs, in `dppp.experiments` and `dppp.benchmarks`.
"""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Result = TypeVar("Result")


def time_once(work: Callable[[], Result]) -> tuple[Result, float]:
    """The result of `work` and the processor seconds it took."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def fastest(works: Sequence[Callable[[], object]], repeats: int) -> tuple[float, ...]:
    """The least processor seconds of each work, run in turns so that all meet the same machine."""
    rounds = [[time_once(work)[1] for work in works] for _ in range(repeats)]
    return tuple(min(seconds) for seconds in zip(*rounds, strict=True))
