"""The promise with several votes, computed exactly: one record is worth one moved vote out of v.

Counts come from real models on real shards; the noise is binomial, in rationals, so that the
divergence of two histograms is exact.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from tests.learning.retraining import KEY, VOTES, Rows, make_table, replace, train_by_shards

from dppp.learning.models import as_predict
from dppp.learning.shards import make_shards, train_shard
from dppp.privacy.calibration import calibrate
from dppp.privacy.divergence import delta_at
from dppp.privacy.noise import Binomial, Skellam
from dppp.protocol.votes import sum_votes

TOSSES, EPSILON = 16, 1.0
GROWTH = Fraction(math.exp(EPSILON))
MASSES = [Fraction(math.comb(TOSSES, heads), 2**TOSSES) for heads in range(TOSSES + 1)]
PROMISED = delta_at(Binomial(total_tosses=TOSSES), EPSILON)
CLASSES = ("high", "low")
QUERIES = np.array([[-2.0, -1.0, 0.0], [0.2, -0.1, 1.0], [0.0, 0.05, -1.0], [1.5, 1.0, 0.0]])


def mass(value: int) -> Fraction:
    return MASSES[value] if 0 <= value <= TOSSES else Fraction()


def exact_delta(before: Sequence[int], after: Sequence[int]) -> Fraction:
    """Σ max(0, P(x) - e^ε Q(x)) over whole histograms: noise plus these votes, plus those."""
    reach = max(*before, *after) + TOSSES + 1
    total = Fraction()
    for seen in itertools.product(range(reach), repeat=len(before)):
        ours = math.prod(
            (mass(x - b) for x, b in zip(seen, before, strict=True)), start=Fraction(1)
        )
        if ours:
            pairs = zip(seen, after, strict=True)
            theirs = math.prod((mass(x - a) for x, a in pairs), start=Fraction(1))
            total += max(Fraction(), ours - GROWTH * theirs)
    return total


def votes_of(models: Sequence[Any]) -> NDArray[np.int64]:
    return sum_votes([as_predict(model, CLASSES) for model in models], QUERIES, len(CLASSES))


@pytest.mark.parametrize("votes", [1, 2, 5, 9])
@pytest.mark.parametrize("others", [0, 3])
def test_one_moved_vote_out_of_v_costs_the_same_for_every_v(votes: int, others: int) -> None:
    """The vote sums of the teacher and of everybody else only shift both distributions."""
    found = exact_delta((votes + others, others), (votes - 1 + others, others + 1))
    assert float(found) == pytest.approx(PROMISED, rel=1e-9)
    assert float(found) <= PROMISED


def test_a_third_class_and_a_vote_that_vanishes_are_never_worse() -> None:
    assert exact_delta((3, 1, 2), (2, 2, 2)) == exact_delta((3, 1), (2, 2))
    assert exact_delta((3, 1), (2, 1)) <= exact_delta((3, 1), (2, 2))


def test_two_moved_votes_break_the_promise_of_one() -> None:
    assert exact_delta((5, 0), (3, 2)) > 4 * Fraction(PROMISED)


def test_replacing_any_record_keeps_the_promise_of_every_query() -> None:
    rows, labels = make_table()
    before = votes_of(train_by_shards(rows, labels))
    worst = Fraction()
    for place, label in itertools.product(range(0, len(rows), 5), CLASSES):
        after = votes_of(train_by_shards(*replace(rows, labels, place, ([40.0, -3.0, 7.0], label))))
        assert np.abs(after - before).sum(axis=1).max() <= 2
        for old, new in zip(before.tolist(), after.tolist(), strict=True):
            worst = max(worst, exact_delta(old, new))
    assert 0 < worst <= Fraction(PROMISED)


def composed_epsilon(noise: Skellam, *, moved: int, queries: int, delta: float) -> float:
    """By dp-accounting alone: two counts move by `moved` in each query."""
    reach = 12 * math.ceil(math.sqrt(noise.variance))
    masses = stats.skellam.logpmf(range(-reach, reach + 1), noise.variance / 2, noise.variance / 2)
    pairs = [(place, float(mass)) for place, mass in enumerate(np.asarray(masses))]
    one = from_two_probability_mass_functions(
        dict(pairs), {place + moved: mass for place, mass in pairs}, log_mass_truncation_bound=-60
    )
    return float(one.self_compose(2 * queries).get_epsilon_for_delta(delta))


@pytest.mark.parametrize(("moved", "said"), [(1, 1), (2, 2.2), (5, 6.2), (16, 27)])
def test_what_is_left_to_a_group_and_to_a_whole_teacher_is_as_the_docs_say(
    moved: int, said: float
) -> None:
    certificate = calibrate("skellam", epsilon=1, delta=1e-5, teachers=20, queries=100, classes=2)
    assert isinstance(certificate.noise, Skellam)
    found = composed_epsilon(certificate.noise, moved=moved, queries=100, delta=1e-5)
    assert found == pytest.approx(said, rel=0.03)


def votes_with_one_scaler(rows: Rows, labels: NDArray[Any]) -> NDArray[np.int64]:
    """Planted fault: the columns are scaled before the records are dealt."""
    scaler = StandardScaler().fit(rows)
    shards = make_shards(scaler.transform(rows), labels, ids=None, votes=VOTES, key=KEY)
    models = [train_shard(LogisticRegression(), shard) for shard in shards]
    predicts = [as_predict(model, CLASSES) for model in models]
    return sum_votes(predicts, scaler.transform(QUERIES), len(CLASSES))


def test_a_scaler_over_all_shards_breaks_the_promise() -> None:
    """One outlier squeezes the columns of every shard, and votes move in several of them."""
    rows, labels = make_table()
    before = votes_with_one_scaler(rows, labels).tolist()
    after = votes_with_one_scaler(*replace(rows, labels, 0, ([1e4, 1e4, 0.0], "low"))).tolist()
    worst = max(exact_delta(old, new) for old, new in zip(before, after, strict=True))
    assert worst > 2 * Fraction(PROMISED)
