"""What every process shows beside its own counters: which version it is, and what it uses.

Used by teacher and aggregator. A counter with labels that are known beforehand starts at 0 with
each of them: one that appears with its first count has no increase, and no alert sees that count.
"""

import platform
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Info, ProcessCollector

from dppp import __version__

_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

DEFAULT_DEADLINE_SECONDS = 600


def make_registry() -> CollectorRegistry:
    """A registry of one process, with its version, memory, CPU and open files."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    build = Info("dppp_build", "Version of dppp and of Python", registry=registry)
    build.info({"version": __version__, "python": platform.python_version()})
    return registry


def buckets_to(deadline_seconds: float) -> tuple[float, ...]:
    """Buckets of a histogram up to the longest time that anything is waited for, and twice it."""
    below = tuple(each for each in _BUCKETS if each < deadline_seconds)
    return (*below, float(deadline_seconds), 2 * float(deadline_seconds))


def start_at_zero(counter: Counter, labels: Iterable[str]) -> None:
    """Show a counter of one label with each of these values before anything was counted."""
    for label in labels:
        counter.labels(label)
