"""A larger table, made on the spot, and twenty banks that hold it: for the demo's last two acts.

Every payment is of one of sixty kinds, scattered around the centre of its kind; a third of the
kinds is fraud. Which kinds are fraud has one rule behind it (a sum of the numbers, with a gap), so
a bank that sees all kinds learns it. One that sees few kinds takes for the rule whatever tells
those apart. docs/decisions.md says how the numbers here were chosen.

`alike` deals payments at random. `apart` gives every bank a part of the world: the payments of a
kind go to the banks in shares drawn from Dirichlet(α, …, α).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dppp.learning.asked import Asked
from dppp.learning.clear_votes import look
from dppp.learning.estimator import PrivateVotingClassifier
from dppp.learning.verdict import Verdict, judge

PAYMENTS, HELD_OUT = 25_000, 1_000
BANKS, QUERIES = 20, 100
EPSILON, DELTA = 1.0, 1e-5
_KINDS, _NUMBERS = 60, 8
_SPREAD = 0.6
"""Of payments around the centre of their kind, in every number."""
_GAP = 1.0
"""From the rule's border to the centres, on average, on either side."""
_ALPHA = 0.03
_LEAST_PAYMENTS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Payments:
    """Numbers and kind of each payment, and whether it is fraud."""

    rows: NDArray[np.float64]
    labels: NDArray[np.str_]
    kinds: NDArray[np.int64]


def make_payments(seed: int) -> Payments:
    """The table of a seed; another seed is another world."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(_KINDS, _NUMBERS))
    is_fraud = np.arange(_KINDS) % 3 == 0
    rule = np.ones(_NUMBERS) / _NUMBERS**0.5
    centres += np.outer(np.where(is_fraud, _GAP, -_GAP) - centres @ rule / 2, rule)
    kinds = random.integers(0, _KINDS, PAYMENTS)
    rows = centres[kinds] + _SPREAD * random.normal(size=(PAYMENTS, _NUMBERS))
    return Payments(rows=rows, labels=np.where(is_fraud[kinds], "fraud", "fine"), kinds=kinds)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answered:
    """What one federation of banks answered, and what that was worth."""

    records: tuple[int, ...]
    """Of each bank."""
    votes: tuple[int, ...]
    kinds: float
    """The fewest that nine tenths of a bank's payments are of, on average over the banks."""
    right: float
    """Of the private answers of this run."""
    deviation: float
    """Of the noise in a count of the whole tally."""
    verdict: Verdict
    """Without advice: it is on all that was held out, exactly averaged over the noise."""
    one_vote: Verdict
    """The same with one vote of each bank, by its own model of all its records."""

    def to_json(self) -> dict[str, object]:
        """By these names, with the verdict's own."""
        return {
            "banks": len(self.records),
            "records": list(self.records),
            "votes": list(self.votes),
            "kinds_of_a_bank": self.kinds,
            "accuracy_private": self.right,
            "accuracy_one_vote": self.one_vote.accuracy_expected,
            **self.verdict.to_json(),
        }


def ask_banks(payments: Payments, *, apart: bool, seed: int, cryptography: bool = True) -> Answered:
    """Deal, train, and ask about a hundred payments that nobody was trained on."""
    kept = payments.kinds[HELD_OUT:]
    owners = _deal(kept, np.random.default_rng([seed, 1]), apart=apart)
    private = PrivateVotingClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        n_teachers=BANKS,
        epsilon=EPSILON,
        delta=DELTA,
        queries=QUERIES,
        cryptography=cryptography,
        random_state=seed,
    )
    private.fit(payments.rows[HELD_OUT:], payments.labels[HELD_OUT:], teachers=owners)
    right = private.predict(payments.rows[:QUERIES]) == payments.labels[:QUERIES]
    return Answered(
        records=tuple(np.bincount(owners, minlength=BANKS).tolist()),
        votes=private.votes_.per_teacher,
        kinds=float(np.mean([_most_kinds(kept[owners == bank]) for bank in range(BANKS)])),
        right=float(right.mean()),
        deviation=private.certificate_.noise.of_teachers(BANKS).variance ** 0.5,
        verdict=_judge(private, private.shard_models_, payments),
        one_vote=_judge(private, [(model,) for model in private.teachers_], payments),
    )


def _deal(kinds: NDArray[np.int64], random: np.random.Generator, *, apart: bool) -> Any:
    """The bank of each payment."""
    if not apart:
        return random.permutation(np.arange(len(kinds)) % BANKS)
    ends = random.dirichlet(np.full(BANKS, _ALPHA), size=_KINDS).cumsum(axis=1)[:, :-1]
    owners = (random.random(len(kinds))[:, None] > ends[kinds]).sum(axis=1)
    # A bank without enough for a model of its own gets a hundred payments of anybody's.
    for bank in np.flatnonzero(np.bincount(owners, minlength=BANKS) < _LEAST_PAYMENTS):
        owners[random.choice(len(kinds), _LEAST_PAYMENTS, replace=False)] = bank
    return owners


def _most_kinds(kinds: NDArray[np.int64]) -> int:
    """How many kinds make nine tenths of these payments."""
    counts = np.sort(np.bincount(kinds))[::-1]
    return int(np.searchsorted(np.cumsum(counts), 0.9 * len(kinds))) + 1


def _judge(
    private: PrivateVotingClassifier, voters: Sequence[Sequence[Any]], payments: Payments
) -> Verdict:
    """From all payments that were held out, averaged over the noise: only a demo may look."""
    asked = Asked(names=tuple(private.classes_))
    truth = np.searchsorted(private.classes_, payments.labels).astype(np.int64)
    held_out = look(
        [[asked.predict_of(model) for model in models] for models in voters],
        [asked.predict_of(model) for model in private.teachers_],
        payments.rows[:HELD_OUT],
        truth[:HELD_OUT],
        asked=asked,
        usual=asked.usual_of(truth[HELD_OUT:]),
    )
    return judge(held_out, private.certificate_)
