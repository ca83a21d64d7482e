"""From right and wrong guesses to a lower bound on ε at a given δ, with a stated confidence.

Each trial is in a world that a fair coin chose. The adversary names the world, or keeps silent. Let
r and w be the chances, per trial, that it names the right and the wrong one. It names world 0 on
an event E and world 1 on an event F, so (ε, δ) for both directions, averaged, gives

    r = (P(E) + Q(F)) / 2 ≤ e^ε (Q(E) + P(F)) / 2 + δ = e^ε w + δ.                         (B1)

Colour a right guess "excess" with probability max(0, r - e^ε w) / r. The number of excess guesses
is binomial with a chance of at most δ per trial. Given the others, the right ones among them are
binomial with a chance of at most e^ε / (1 + e^ε). So one quantile of the first and one Clopper and
Pearson (1934) bound on the second give a lower bound on ε that is exact at any number of trials,
and needs no symmetry of the mechanism. The worlds are one sample: that is what makes it tighter
than a Clopper-Pearson bound on each of two rates.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dppp.privacy.pmf import Floats

CONFIDENCE = 0.95
_PART_OF_EXCESS = 0.2
"""Part of the error probability that is given to the quantile of the excess guesses."""


def epsilon_lower(
    right: ArrayLike,
    wrong: ArrayLike,
    *,
    trials: float,
    delta: float,
    confidence: float = CONFIDENCE,
) -> Floats:
    """With this confidence ε is at least this, at this δ; 0 where nothing is shown."""
    error = 1 - confidence
    excess = float(stats.binom.isf(error * _PART_OF_EXCESS, round(trials), delta))
    kept = np.maximum(np.asarray(right, dtype=np.float64) - excess, 0.0)
    shown = np.maximum(kept, 1e-300)
    chance = stats.beta.ppf(error * (1 - _PART_OF_EXCESS), shown, np.asarray(wrong) + 1.0)
    with np.errstate(divide="ignore"):
        found = np.log(chance) - np.log1p(-chance)
    return np.where(kept > 0, np.maximum(found, 0.0), 0.0)
