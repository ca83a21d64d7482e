"""The audit of the sampler: do noise shares come as often as the formula of their family says?

The real table draws from the operating system's randomness. The masses to compare with are the
floats that accounting uses, which are worked out on another way. Every test is exact at any number
of draws, so the false-alarm rate is a bound and not an approximation: each value's number of draws
is binomial, so is that of equal neighbours in a row of draws, and the distance of the two
cumulative distributions has Massart's bound (1990).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dppp.privacy.noise import Noise, pmf_of
from dppp.privacy.pmf import Floats
from dppp.privacy.sampling import sampling_table
from dppp.randomness import RandomSource, system_randomness
from dppp.whole_numbers import require_whole

FALSE_ALARM_RATE = 1e-6
"""How often, at the most, a right sampler fails."""

_FEWEST_EXPECTED = 20.0
"""Values that are expected less often are counted together with all beyond them."""

Draw = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One test and the chance of a result this odd, corrected for the number of its parts."""

    name: str
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerAudit:
    """All tests of the draws of one family."""

    draws: int
    checks: tuple[Check, ...]

    @property
    def limit(self) -> float:
        """Below this a test has failed."""
        return FALSE_ALARM_RATE / len(self.checks)

    @property
    def passed(self) -> bool:
        """Whether all tests passed."""
        return all(check.chance >= self.limit for check in self.checks)


def audit_sampler(
    noise: Noise,
    *,
    draws: int,
    draw: Draw | None = None,
    randomness: RandomSource = system_randomness,
) -> SamplerAudit:
    """Draw single shares, and sums of all shares, and test both."""
    require_whole("draws", draws, least=1000)
    table = sampling_table(noise)
    take = draw or (lambda count: table.draw(count, randomness))
    shares = take(draws)
    sums = take(draws // noise.shares * noise.shares).reshape(-1, noise.shares).sum(axis=1)
    checks = (
        *_check(f"share of {noise.name}", shares, noise.one_share()),
        *_check(f"sum of {noise.shares} shares", sums, noise),
    )
    return SamplerAudit(draws=draws, checks=checks)


def _check(name: str, drawn: NDArray[np.int64], noise: Noise) -> tuple[Check, ...]:
    pmf = pmf_of(noise)
    masses = pmf.masses / pmf.masses.sum()
    edges, chances = _cells(pmf.first, masses, len(drawn))
    found = np.bincount(np.searchsorted(edges, drawn, side="right"), minlength=len(chances))
    pairs = drawn[: len(drawn) // 2 * 2].reshape(-1, 2)
    equal = int((pairs[:, 0] == pairs[:, 1]).sum())
    return (
        Check(name=f"{name}: each value", chance=_least_chance(found, len(drawn), chances)),
        Check(
            name=f"{name}: all values together",
            chance=_massart(drawn, pmf.first, masses),
        ),
        Check(
            name=f"{name}: neighbours that are equal",
            chance=_least_chance(
                np.array([equal]), len(pairs), np.array([float(np.dot(masses, masses))])
            ),
        ),
    )


def _cells(first: int, masses: Floats, draws: int) -> tuple[NDArray[np.int64], Floats]:
    """Inner edges and chances: one value per cell where it is frequent, and the two tails."""
    frequent = np.flatnonzero(masses * draws >= _FEWEST_EXPECTED)
    start, stop = int(frequent[0]), int(frequent[-1]) + 1
    chances = np.concatenate(([masses[:start].sum()], masses[start:stop], [masses[stop:].sum()]))
    return first + np.arange(start, stop + 1), chances


def _least_chance(found: NDArray[np.int64], draws: int, chances: Floats) -> float:
    """Of any number being this far out, to either side, times how many numbers there are."""
    low = stats.binom.cdf(found, draws, chances)
    high = stats.binom.sf(found - 1, draws, chances)
    return min(1.0, 2 * len(found) * float(np.minimum(low, high).min()))


def _massart(drawn: NDArray[np.int64], first: int, masses: Floats) -> float:
    """A bound on the chance that the cumulative distributions are this far apart somewhere."""
    place = np.clip(drawn - first, 0, len(masses) - 1)
    found = np.bincount(place, minlength=len(masses)).cumsum() / len(drawn)
    distance = float(np.abs(found - masses.cumsum()).max())
    return min(1.0, 2 * math.exp(-2 * len(drawn) * distance**2))
