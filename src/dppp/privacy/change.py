"""What changing one vote can do to the counts of one query: which pair of tallies must look alike.

Every question comes down to two numbers, and all of `privacy` knows no more of it:

- one of c classes: one count falls by one and another rises by one, so two counts move by one;
- at most k of c labels: up to k counts fall and up to k others rise. Noise is symmetric, so a
  count that falls costs what one that rises does, and the worst case is min(2k, c) counts;
- a number in L steps: its one count moves by at most L.

A smaller change is never worse. Fewer counts are a projection. A count that moves by less than L is
dominated by one that moves by L where the masses p are log-concave: then the likelihood ratio
p(x)/p(x+d) rises with x, so the best test of any power is a half-line, and

    δ_d(ε) = max over s of  P[X ≥ s] - e^ε P[X ≥ s+d]                                      (D2)

grows with d, for every ε. So the largest move dominates in every query, also when all queries are
composed. Binomial, Skellam, discrete Gaussian and Pólya noise of shape 1 or more are log-concave
(sums of log-concave variables are); Pólya noise of a smaller shape is refused.
"""

from dataclasses import dataclass

from dppp.errors import InputError
from dppp.whole_numbers import keep_whole

MOST_LEVELS = 10_000
"""Steps of a number: noise grows with them, and the answer hardly gets finer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`moved` counts of a query move, each by at most `shift`; as it stands, one of c classes."""

    moved: int = 2
    shift: int = 1

    def __post_init__(self) -> None:
        keep_whole(self, "moved", "shift")
        if self.moved > 1 and self.shift > 1:
            raise InputError(
                f"{self.moved} counts that move by {self.shift} each are of no question",
                hint="a number moves one count by many, classes and labels move many by one",
            )


ONE_OF_CLASSES = Change()


def change_of(
    *, classes: int, max_labels: int | None = None, levels: int | None = None
) -> tuple[int, Change]:
    """How many counts a query has, and what one vote can do to them.

    `max_labels` is for a question of labels, `levels` for a number, and neither for one of classes.

    >>> change_of(classes=10)
    (10, Change(moved=2, shift=1))
    >>> change_of(classes=10, max_labels=3)
    (10, Change(moved=6, shift=1))
    >>> change_of(classes=1, levels=100)
    (1, Change(moved=1, shift=100))
    """
    if max_labels is not None and levels is not None:
        raise InputError(
            "a question is of labels or of a number, not of both",
            hint="give max_labels or levels",
        )
    if levels is not None:
        if not 1 <= levels <= MOST_LEVELS:
            raise InputError(
                f"a number has 1 to {MOST_LEVELS:,} levels, not {levels}", hint="try 100"
            )
        return 1, Change(moved=1, shift=levels)
    if max_labels is None:
        return classes, ONE_OF_CLASSES
    if not 1 <= max_labels <= classes:
        raise InputError(
            f"max_labels is 1 to the number of labels, {classes}, not {max_labels}",
            hint="it is the most labels that one vote gives to one row",
        )
    return classes, Change(moved=min(2 * max_labels, classes))
