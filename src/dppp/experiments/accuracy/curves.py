"""Accuracy of every framework against ε or δ, from stored votes, as rows of one table.

Used by `dppp reproduce`; everything else in this folder works on these rows.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dppp.experiments.accuracy.frameworks import Framework, non_private, private
from dppp.experiments.teachers.stored_votes import StoredVotes
from dppp.whole_numbers import require_whole

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
DELTAS = (1e-5, 1e-4, 1e-3, 1e-2)
DELTA = 1e-3
REPETITIONS = 20
SEED = 1
FIXED_EPSILONS = {
    "mnist": 0.05,
    "nsl-kdd-20": 0.05,
    "nsl-kdd-20-official-test": 0.05,
    "breast-cancer": 0.5,
}
"""Where δ varies. MNIST and Breast Cancer are the paper's; it shows no NSL-KDD-20."""

OnProgress = Callable[[int, int], object]
"""Told how many points of how many are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One framework at one (ε, δ) per query; no ε where nothing is promised."""

    framework: str
    noise: str
    calibration: str
    honest_fraction: float | None
    epsilon: float | None
    delta: float | None
    certified: bool
    accuracy_mean: float
    accuracy_std: float
    repetitions: int

    @property
    def curve(self) -> tuple[str, str, str, float | None]:
        """What all points of one curve have in common; the best family may change along it."""
        noise = "best" if self.framework == "dppp-best" else self.noise
        return self.framework, noise, self.calibration, self.honest_fraction


def accuracy_by_epsilon(
    votes: StoredVotes,
    *,
    epsilons: Sequence[float] = EPSILONS,
    delta: float = DELTA,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
    report: OnProgress = lambda *_: None,
) -> list[Row]:
    """Every framework at every ε."""
    points = [(epsilon, delta) for epsilon in epsilons]
    return _accuracy_at(votes, points, repetitions=repetitions, seed=seed, report=report)


def accuracy_by_delta(
    votes: StoredVotes,
    *,
    epsilon: float | None = None,
    deltas: Sequence[float] = DELTAS,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
    report: OnProgress = lambda *_: None,
) -> list[Row]:
    """Every framework at every δ, with the dataset's ε."""
    fixed = FIXED_EPSILONS[votes.dataset] if epsilon is None else epsilon
    points = [(fixed, delta) for delta in deltas]
    return _accuracy_at(votes, points, repetitions=repetitions, seed=seed, report=report)


def _accuracy_at(
    votes: StoredVotes,
    points: Sequence[tuple[float, float]],
    *,
    repetitions: int,
    seed: int,
    report: OnProgress,
) -> list[Row]:
    require_whole("repetitions", repetitions)
    rows = [measure(votes, each, repetitions, seed) for each in non_private(votes)]
    for done, (epsilon, delta) in enumerate(points):
        report(done, len(points))
        frameworks = private(votes, epsilon, delta)
        rows += [measure(votes, each, repetitions, seed) for each in frameworks]
    report(len(points), len(points))
    return rows


def measure(votes: StoredVotes, framework: Framework, repetitions: int, seed: int) -> Row:
    """The part of right labels over several draws of the noise, which the name and seed fix."""
    key = hashlib.sha256(f"{seed} {votes.dataset} {framework.name}".encode()).digest()
    random = np.random.default_rng(np.frombuffer(key, dtype=np.uint32).tolist())
    right = [float((framework.release(random) == votes.truth).mean()) for _ in range(repetitions)]
    return Row(
        framework=framework.framework,
        noise=framework.noise,
        calibration=framework.calibration,
        honest_fraction=framework.honest_fraction,
        epsilon=framework.epsilon,
        delta=framework.delta,
        certified=framework.certified,
        accuracy_mean=float(np.mean(right)),
        accuracy_std=float(np.std(right, ddof=1)) if repetitions > 1 else 0.0,
        repetitions=repetitions,
    )
