"""How many labels a querier should ask for, from public numbers alone.

Noise grows with the number of labels that share a budget. The rule: as many as leave a lead of half
of the teachers right with 95 %, against one rival class. It looks at no labelled record, so nothing
that measures the student chose it. Used by the students' comparison.
"""

import math

from scipy.stats import norm

from dppp.privacy.paper_bounds import analytic_gaussian_sigma
from dppp.privacy.trust import Trust

CERTAINTY = 0.95
LEAD = 0.5
MOST_OF_POOL = 0.05
"""Past one record in twenty more labels tell little that is new, and choosing them takes long."""


def labels_to_ask(*, teachers: int, epsilon: float, delta: float, pool: int) -> int:
    """The rule, with the default numbers of colluders and dropouts.

    Gaussian noise for T queries has σ = √(2T)·σ₁, where σ₁ is for one count that moves by 1; all N
    teachers together add N/h times that variance. The difference of two counts has √2 of it.
    """
    honest = Trust.with_defaults(teachers).honest_shares
    one = analytic_gaussian_sigma(epsilon, delta, 1.0)
    bearable = LEAD * teachers / (math.sqrt(2) * norm.ppf(CERTAINTY))
    labels = int((bearable / one) ** 2 * honest / teachers / 2)
    return max(1, min(labels, int(MOST_OF_POOL * pool)))
