"""The same work over many ciphertexts, on every core.

Threads are enough: libcrypto runs without Python's lock, and so does gmpy2 in a thread whose
context allows it.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import gmpy2

Item = TypeVar("Item")
Result = TypeVar("Result")


def release_lock_in_gmp() -> None:
    """Let gmpy2 run without Python's lock in the thread that calls this."""
    gmpy2.get_context().allow_release_gil = True


def map_over_cores(function: Callable[[Item], Result], items: Iterable[Item]) -> tuple[Result, ...]:
    """`function` of each item, in order, computed on all cores."""
    work = tuple(items)
    workers = min(os.cpu_count() or 1, len(work))
    if workers < 2:
        return tuple(function(item) for item in work)
    with ThreadPoolExecutor(workers, initializer=release_lock_in_gmp) as pool:
        return tuple(pool.map(function, work))
