"""How much a lead in noisy counts says: how often noise alone gives one as large.

A function of public values, so everybody who sees counts can say it beside the label. It is not the
chance that the label is right, nor that the leading class has the most votes: both depend on the
votes, which nobody knows. It says what can be said without them: if two classes had equally many
votes, noise would still put one of them ahead of the other, and this is how often by this lead or
more. Small means that noise alone hardly explains the lead.

Equal votes of two classes are the case in which noise misleads most. Where another class has as
many votes as the leading one or more, noise puts the leading one ahead of it by this lead with at
most half of this chance, whatever the votes for all other classes are. Votes that are equal for
more than two classes do not make a large lead likelier: then the second is high by noise as well.
"""

import functools
from collections.abc import Sequence

import numpy as np

from dppp.privacy.noise import Noise, pmf_of


def lead_of(counts: Sequence[int]) -> int:
    """By how much the largest count is ahead of the second."""
    first, second = sorted(counts)[-1:-3:-1]
    return first - second


@functools.lru_cache(maxsize=4096)
def chance_of_lead(noise: Noise, lead: int) -> float:
    """How often one of two draws of `noise` is ahead of the other by `lead` or more.

    `noise` is of all shares in a tally. For a lead above 0 at most one of the two can be it:

        2 · Σ_x p(x) P(noise ≤ x - lead).
    """
    if lead <= 0:
        return 1.0
    masses = pmf_of(noise).masses
    if lead >= len(masses):
        return 0.0
    at_most = np.minimum(1.0, np.cumsum(masses))
    return min(1.0, 2 * float(np.dot(masses[lead:], at_most[: len(masses) - lead])))
