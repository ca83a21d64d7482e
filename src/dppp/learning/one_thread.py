"""Numerical libraries kept to one thread, while many small models are trained or asked.

A shard has some dozens of records. Threads that share so little work wait for each other by
spinning: on a busy machine a model then takes four to twenty times the processor time. Whoever
wants more processors has `n_jobs`, which gives each its own models.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def one_thread(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """The same function, with BLAS and OpenMP on one thread until it returns."""

    @functools.wraps(function)
    def run(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        # Not threadpool_limits.wrap: it knows only the libraries that are loaded by now.
        with threadpool_limits(limits=1):
            return function(*args, **kwargs)

    return run
