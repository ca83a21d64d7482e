"""How fast noise shares are drawn, against numpy's own generator, which is not secure."""

import time
from collections.abc import Callable

import numpy as np

from dppp.privacy.noise import Skellam
from dppp.privacy.sampling import sampling_table

VARIANCE = 1801.0
"""Skellam at ε = 0.05, δ = 1e-3 for one query, all of it in one share."""


def measure_sampling(draws: int = 1_000_000, rounds: int = 5) -> dict[str, float]:
    """CPU time of one draw here and in numpy, the best of several rounds in turn."""
    table = sampling_table(Skellam(share_variance=VARIANCE))
    generator = np.random.default_rng()  # the yardstick, never used for noise

    def insecure() -> object:
        mean = VARIANCE / 2
        return generator.poisson(mean, draws) - generator.poisson(mean, draws)

    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_cpu_seconds(lambda: table.draw(draws)))
        theirs.append(_cpu_seconds(insecure))
    return {
        "sampling_variance": VARIANCE,
        "samples_per_second": draws / min(ours),
        "numpy_samples_per_second": draws / min(theirs),
        "sampling_over_numpy": min(theirs) / min(ours),
    }


def _cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
