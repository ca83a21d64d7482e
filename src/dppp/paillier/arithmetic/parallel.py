"""The same work over many ciphertexts, on every core.

Threads are enough for exponentiations, which run without Python's lock (see `modexp`). Work made
of single multiplications stays in one thread: passing the lock back and forth every few
microseconds costs more than a second core gives (tried: twice the processor time).
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_over_cores(function: Callable[[Item], Result], items: Iterable[Item]) -> tuple[Result, ...]:
    """`function` of each item, in order, computed on all cores."""
    work = tuple(items)
    workers = min(os.cpu_count() or 1, len(work))
    if workers < 2:
        return tuple(function(item) for item in work)
    with ThreadPoolExecutor(workers) as pool:
        return tuple(pool.map(function, work))
