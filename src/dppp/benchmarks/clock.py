"""Processor time of all threads; wall time says little on a machine that others use."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def time_once(work: Callable[[], Result]) -> tuple[Result, float]:
    """The result of `work` and the processor seconds it took."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def fastest(work: Callable[[], object], repeats: int) -> float:
    """The least processor seconds of several runs: what the work takes undisturbed."""
    return min(time_once(work)[1] for _ in range(repeats))
