import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dppp.errors import InputError
from dppp.learning.votes_planning.correlated_votes import CorrelatedVotes
from dppp.learning.win_probability import accuracy_of, accuracy_without_noise
from dppp.privacy.noise import Binomial


def chances_by_urn(votes: int, accuracy: Fraction, correlation: Fraction) -> list[Fraction]:
    """Every sequence of right and wrong votes, from an urn to which each vote adds its kind."""
    right, wrong = accuracy * (1 - correlation), (1 - accuracy) * (1 - correlation)
    chances = [Fraction(0)] * (votes + 1)
    for sequence in itertools.product((0, 1), repeat=votes):
        chance, drawn = Fraction(1), 0
        for place, is_right in enumerate(sequence):
            weight = right + drawn * correlation
            of = right + wrong + place * correlation
            chance *= weight / of if is_right else 1 - weight / of
            drawn += is_right
        chances[drawn] += chance
    return chances


def chances_of(model: CorrelatedVotes, votes: int) -> list[float]:
    """By the number of right votes, from the leads of races."""
    found = [0.0] * (votes + 1)
    for race in model.races(votes):
        found[(race.leads[0] + votes) // 2] += race.weight
    return found


@pytest.mark.parametrize("accuracy", [Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("correlation", [Fraction(0), Fraction(3, 10), Fraction(9, 10)])
def test_right_votes_are_as_likely_as_by_counting_every_sequence(
    accuracy: Fraction, correlation: Fraction
) -> None:
    model = CorrelatedVotes(accuracy=float(accuracy), correlation=float(correlation), classes=2)
    wanted = [float(chance) for chance in chances_by_urn(7, accuracy, correlation)]
    assert chances_of(model, 7) == pytest.approx(wanted, abs=1e-12)


@given(accuracy=st.floats(0.01, 1), correlation=st.floats(0, 1), votes=st.integers(2, 60))
def test_mean_and_correlation_are_those_that_were_given(
    accuracy: float, correlation: float, votes: int
) -> None:
    chances = chances_of(
        CorrelatedVotes(accuracy=accuracy, correlation=correlation, classes=2), votes
    )
    right = np.arange(votes + 1)
    assert sum(chances) == pytest.approx(1, abs=1e-9)
    assert np.dot(chances, right) == pytest.approx(votes * accuracy, abs=1e-6)
    pairs = np.dot(chances, right * (right - 1)) / (votes * (votes - 1))
    covariance = correlation * accuracy * (1 - accuracy)
    assert pairs - accuracy**2 == pytest.approx(covariance, abs=1e-6)


@given(st.floats(0.5, 0.99), st.floats(0, 1), st.floats(0, 1), st.integers(1, 30))
def test_the_more_errors_correlate_the_less_company_helps(
    accuracy: float, one: float, other: float, pairs: int
) -> None:
    less, more = sorted((one, other))
    votes = 2 * pairs + 1
    together = [
        accuracy_without_noise(
            CorrelatedVotes(accuracy=accuracy, correlation=each, classes=2).races(votes)
        )
        for each in (less, more)
    ]
    assert together[0] >= together[1] - 1e-9
    assert together[1] >= accuracy - 1e-9


@pytest.mark.parametrize("classes", [2, 3])
def test_accuracy_under_noise_is_that_of_all_outcomes_counted(classes: int) -> None:
    votes, tosses = 3, 2
    chances = chances_by_urn(votes, Fraction(3, 4), Fraction(1, 2))
    noise = [sum(coins) for coins in itertools.product((0, 1), repeat=tosses)]
    won, outcomes = Fraction(0), 0
    for drawn in itertools.product(noise, repeat=classes):
        outcomes += 1
        for right, chance in enumerate(chances):
            counts = [right + drawn[0], votes - right + drawn[1], *drawn[2:]]
            if counts[0] == max(counts):
                won += chance * Fraction(1, counts.count(counts[0]))
    model = CorrelatedVotes(accuracy=0.75, correlation=0.5, classes=classes)
    found = accuracy_of(model.races(votes), Binomial(total_tosses=tosses))
    assert found == pytest.approx(float(won / outcomes), abs=1e-12)


def test_neighbours_that_are_taken_together_keep_their_weight_and_mean() -> None:
    model = CorrelatedVotes(accuracy=0.8, correlation=0.3, classes=2)
    races = model.races(50_000)
    assert len(races) <= 2_000
    assert sum(race.weight for race in races) == pytest.approx(1, abs=1e-9)
    mean = sum(race.weight * (race.leads[0] + 50_000) / 2 for race in races)
    assert mean == pytest.approx(40_000, abs=1)


@pytest.mark.parametrize("correlation", [-0.1, 1.1, float("nan")])
def test_a_correlation_outside_its_range_is_refused(correlation: float) -> None:
    with pytest.raises(InputError, match="correlation"):
        CorrelatedVotes(accuracy=0.9, correlation=correlation, classes=2)
