import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dppp.errors import InputError
from dppp.learning import planning
from dppp.learning.planning import Plan, plan
from dppp.learning.votes import count_votes
from dppp.learning.win_probability import (
    ExpectedMargin,
    ObservedVotes,
    Race,
    accuracy_of,
    accuracy_without_noise,
    odds_of,
)
from dppp.privacy.calibration import calibrate
from dppp.privacy.noise import (
    FAMILIES,
    Binomial,
    DiscreteGaussian,
    Noise,
    Polya,
    Skellam,
    noise_of_all,
    pmf_of,
)


def chance_by_enumeration(votes: tuple[int, ...], right: int, tosses: int) -> Fraction:
    """Every outcome of every coin of every class."""
    won, outcomes = Fraction(0), 0
    coins = list(itertools.product((0, 1), repeat=tosses))
    for noise in itertools.product([sum(coin) for coin in coins], repeat=len(votes)):
        counts = [vote + heads for vote, heads in zip(votes, noise, strict=True)]
        outcomes += 1
        if counts[right] == max(counts):
            won += Fraction(1, counts.count(max(counts)))
    return won / outcomes


@pytest.mark.parametrize("votes", [(2, 1, 0), (1, 1, 1), (0, 2, 2), (3, 0, 0), (0, 5, 1)])
@pytest.mark.parametrize("right", [0, 1])
def test_the_chance_is_that_of_all_outcomes_counted(votes: tuple[int, ...], right: int) -> None:
    leads = tuple(votes[right] - vote for place, vote in enumerate(votes) if place != right)
    found = accuracy_of((Race(leads=leads, weight=1.0),), Binomial(total_tosses=3))
    assert found == pytest.approx(float(chance_by_enumeration(votes, right, 3)), abs=1e-13)


@pytest.mark.parametrize(
    "noise",
    [
        Skellam(share_variance=300.0, shares=40),
        Polya(shape=64, ratio=0.92, shares=40),
        Polya(shape=9, ratio=0.98, shares=40),
        Polya(shape=1.4, ratio=0.99, shares=40),
        DiscreteGaussian(share_sigma=12.0, shares=40),
        Binomial(total_tosses=40_000),
    ],
)
def test_few_points_of_wide_noise_say_what_all_points_say(noise: Noise) -> None:
    leads = (30, 60, 60, 100)
    masses = pmf_of(noise).masses
    below = np.concatenate(([0.0], np.cumsum(masses)))
    places = np.arange(len(masses))
    won = np.zeros(len(masses))
    for ticket, weight in zip(*np.polynomial.legendre.leggauss(3), strict=True):
        product = np.ones(len(masses))
        for lead in leads:
            at = np.where(places + lead < len(masses), masses[(places + lead) % len(masses)], 0)
            product *= below[np.minimum(places + lead, len(masses))] + at * (ticket + 1) / 2
        won += weight / 2 * product
    found = accuracy_of((Race(leads=leads, weight=1.0),), noise)
    assert found == pytest.approx(float(np.dot(masses, won)), abs=1e-10)


def test_the_chances_of_all_classes_add_up_to_one() -> None:
    votes = (7, 5, 5, 1)
    noise = Skellam(share_variance=2.0, shares=9)
    races = (
        Race(leads=tuple(mine - other for k, other in enumerate(votes) if k != j), weight=1.0)
        for j, mine in enumerate(votes)
    )
    assert sum(accuracy_of((race,), noise) for race in races) == pytest.approx(1, abs=1e-12)


def test_a_larger_margin_is_found_more_often() -> None:
    noise = Skellam(share_variance=1.0, shares=100)
    found = [accuracy_of(ExpectedMargin(margin=m).races(100), noise) for m in (0.05, 0.101, 0.2, 1)]
    assert found == sorted(found)
    assert len(set(found)) == 4


def test_influence_falls_with_noise_until_it_is_chance() -> None:
    races = ExpectedMargin(margin=0.5, classes=4).races(20)
    variances = (1e-4, 1.0, 100.0, 1e4, 1e7)
    found = [odds_of(races, Skellam(share_variance=variance)) for variance in variances]
    assert found[0].influence == pytest.approx(3 / 4)
    influences = [odds.influence for odds in found]
    assert influences == sorted(set(influences), reverse=True)
    assert [odds.is_chance for odds in found] == [False, False, False, False, True]
    assert found[-1].accuracy == pytest.approx(1 / 4, abs=0.005)


def test_right_and_wrong_majorities_do_not_pass_for_chance() -> None:
    races = (Race(leads=(9,), weight=0.5), Race(leads=(-9,), weight=0.5))
    found = odds_of(races, Skellam(share_variance=1.0))
    assert found.accuracy == pytest.approx(1 / 2)
    assert found.influence > 0.49
    assert not found.is_chance


def test_noise_may_help_where_most_are_wrong() -> None:
    races = count_votes([[0] * 13 + [1] * 7], [1]).races(20)
    assert accuracy_without_noise(races) == 0
    assert 0.1 < accuracy_of(races, Skellam(share_variance=20.0)) < 0.5


def test_a_vote_matrix_is_counted() -> None:
    votes = count_votes([[0, 0, 2], [1, 1, 1]], [2, 1])
    assert votes.counts.tolist() == [[2, 0, 1], [0, 3, 0]]
    assert (votes.teachers, votes.classes) == (3, 3)
    assert accuracy_without_noise(votes.races(3)) == 0.5
    named = count_votes(np.array([["cat", "cat", "dog"]]))
    assert named.counts.tolist() == [[2, 1]]
    assert count_votes([["0", "1.0", "1"]], classes=4).counts.tolist() == [[1, 2, 0, 0]]


def test_whatever_turns_into_an_array_is_counted_by_rows() -> None:
    class Frame:
        """Like a data frame: iterating gives names of columns, not rows."""

        def __iter__(self) -> Iterator[str]:
            return iter(["first", "second"])

        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.array([[0, 1], [1, 1], [1, 1]])

    assert count_votes(Frame()).counts.tolist() == [[1, 1], [0, 2], [0, 2]]


@pytest.mark.parametrize(
    ("counts", "labels"),
    [
        ([[2, 1], [1, 1]], None),
        ([[3, -1]], None),
        ([[3]], None),
        ([], None),
        ([[2, 1]], [2]),
        ([[2, 1]], [-1]),
        ([[2, 1]], [0, 1]),
    ],
)
def test_counts_that_cannot_be_are_refused(
    counts: list[list[int]], labels: list[int] | None
) -> None:
    with pytest.raises(InputError):
        ObservedVotes(counts=np.array(counts), labels=None if labels is None else np.array(labels))


def test_any_of_two_leaders_may_win_without_a_label() -> None:
    assert accuracy_without_noise(count_votes([[0, 1, 0, 1, 2]]).races(5)) == 1.0
    assert accuracy_without_noise(count_votes([[0, 1, 0, 1, 2]], [1]).races(5)) == 0.5


@pytest.mark.parametrize(
    ("votes", "labels", "classes", "word"),
    [
        ([[0, 1], [1]], None, None, "query 2 has 1 votes"),
        ([[0, float("nan")]], None, None, "missing"),
        ([["a", ""]], None, None, "missing"),
        ([[0, 3]], None, 3, "unknown class 3"),
        ([[0, -1]], None, None, "unknown class -1"),
        ([[0, 0.5]], None, None, "unknown class 0.5"),
        ([[0, float("inf")]], None, None, "unknown class inf"),
        ([[0, 10**12]], None, None, "without gaps"),
        ([["a", "b"]], ["c"], None, "unknown class 'c'"),
        ([["a", "b", "c"]], None, 2, "unknown class c"),
        ([[0, 1]], [0, 1], None, "2 labels"),
        ([], None, None, "no query"),
        (3, None, None, "a table"),
        ([[0, 1]], None, 1, "classes"),
    ],
)
def test_votes_that_cannot_be_counted_are_refused(
    votes: object, labels: object, classes: int | None, word: str
) -> None:
    with pytest.raises(InputError, match=word.replace("(", "\\(")):
        count_votes(votes, labels, classes=classes)


@pytest.fixture(scope="module")
def made() -> Plan:
    return plan(
        teachers=20, accuracy_margin=0.5, classes=3, queries=1, epsilon=2.0, epsilons=(0.5, 1)
    )


def test_accuracy_grows_with_epsilon_for_every_family(made: Plan) -> None:
    for name in FAMILIES:
        found = [each.accuracy for each in made.by_epsilon if each.noise == name]
        assert len(found) == 3
        assert found == sorted(found)


def test_accuracy_falls_as_queries_grow(made: Plan) -> None:
    found = [each.accuracy for each in made.by_queries]
    assert [each.queries for each in made.by_queries] == [1, 10, 100, 1_000, 10_000]
    assert found == sorted(found, reverse=True)


def test_the_noise_of_all_teachers_is_more_than_what_is_promised(made: Plan) -> None:
    for each in made.by_epsilon:
        assert each.tally_variance == pytest.approx(each.variance * 20 / 14)


def test_the_queries_bought_reach_the_target_and_one_step_more_does_not(made: Plan) -> None:
    def accuracy(queries: int) -> float:
        noise = calibrate(
            "polya", epsilon=2.0, delta=1e-5, teachers=20, queries=queries, classes=3
        ).noise
        return accuracy_of(made.votes.races(20), noise_of_all(noise, 20))

    assert made.most_queries is not None
    assert accuracy(made.most_queries) >= 0.9
    assert accuracy(made.most_queries + 1) < 0.9
    assert made.most_queries < 9


def test_the_fewest_teachers_reach_the_target_and_none_below_does(made: Plan) -> None:
    def accuracy(teachers: int) -> float:
        noise = calibrate("polya", epsilon=2.0, delta=1e-5, teachers=teachers, classes=3).noise
        return accuracy_of(made.votes.races(teachers), noise_of_all(noise, teachers))

    fewest = made.fewest_teachers
    assert fewest is not None
    assert accuracy(fewest) >= 0.9
    assert all(accuracy(fewer) < 0.9 for fewer in range(3, fewest))


def test_the_search_for_teachers_goes_up_to_its_stated_end(
    made: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fewest(most: int) -> int | None:
        monkeypatch.setattr(planning, "MOST_TEACHERS", most)
        options: dict[str, Any] = {
            "accuracy_margin": 0.5,
            "classes": 3,
            "queries": 1,
            "epsilon": 2.0,
        }
        return plan(teachers=5, epsilons=(), **options).fewest_teachers

    found = made.fewest_teachers
    assert found is not None
    assert found not in (5, 10, 20, 40)  # else doubling alone would find it
    assert fewest(found) == found
    assert fewest(found - 1) is None


def test_many_teachers_are_told_to_three_digits() -> None:
    votes = ExpectedMargin(margin=0.002, classes=2)
    found = plan(teachers=10, accuracy_margin=0.002, classes=2, queries=1, epsilons=())
    fewest = found.fewest_teachers
    assert fewest is not None
    assert fewest > 1000

    def accuracy(teachers: int) -> float:
        noise = calibrate("polya", epsilon=1.0, delta=1e-5, teachers=teachers, classes=2).noise
        return accuracy_of(votes.races(teachers), noise_of_all(noise, teachers))

    assert accuracy(fewest) >= 0.9 > accuracy(round(fewest * 0.998))


def test_a_hopeless_budget_is_not_worked_out_further() -> None:
    found = plan(teachers=20, accuracy_margin=0.2, epsilon=0.01, epsilons=(0.001, 0.1, 8.0))
    by_epsilon = [each.epsilon for each in found.by_epsilon]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[0] > 0.001
    assert found.by_epsilon[0].at_chance
    assert by_epsilon.count(by_epsilon[0]) == 1
    assert not any(each.at_chance for each in found.by_epsilon[1:])
    assert by_epsilon.count(8.0) == len(FAMILIES)
    assert [each.at_chance for each in found.by_queries][-1]
    assert not any(each.at_chance for each in found.by_queries[:-1])
    assert found.most_queries is None


def test_what_was_not_worked_out_is_at_chance_too() -> None:
    found = plan(teachers=20, accuracy_margin=0.1, epsilon=0.05, queries=1, epsilons=())
    (only,) = found.by_epsilon
    assert only.at_chance
    assert [each.queries for each in found.by_queries] == [1]
    races = ExpectedMargin(margin=0.1).races(20)
    for name in FAMILIES:
        for epsilon, queries in ((0.05, 1), (0.02, 1), (0.05, 10)):
            noise = calibrate(name, epsilon=epsilon, delta=1e-5, teachers=20, queries=queries).noise
            assert odds_of(races, noise_of_all(noise, 20)).is_chance


def test_every_number_of_queries_up_to_ten_may_be_the_answer() -> None:
    grid = planning._geometric_grid(1000)
    assert grid[:10] == list(range(1, 11))
    assert grid[-1] == 1000
    assert grid == sorted(set(grid))


def test_teachers_who_are_mostly_wrong_never_become_useful() -> None:
    votes = [[0] * 13 + [1] * 7, [1] * 13 + [2] * 7, [0] * 20]
    found = plan(votes=votes, labels=[1, 0, 0], epsilon=2.0, queries=1, epsilons=())
    assert found.right_means == "label"
    assert found.accuracy_without_noise == pytest.approx(1 / 3)
    assert found.most_queries is None
    assert found.fewest_teachers is None


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.5, math.nan])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    with pytest.raises(InputError, match="margin"):
        plan(teachers=20, accuracy_margin=margin)


def test_votes_and_margin_and_teachers_must_agree() -> None:
    with pytest.raises(InputError, match="either"):
        plan(teachers=20)
    with pytest.raises(InputError, match="either"):
        plan(teachers=20, accuracy_margin=0.4, votes=[[0, 1]])
    with pytest.raises(InputError, match="how many teachers"):
        plan(accuracy_margin=0.4)
    with pytest.raises(InputError, match="of 2 teachers"):
        plan(teachers=3, votes=[[0, 1]])
    with pytest.raises(InputError, match="target"):
        plan(teachers=20, accuracy_margin=0.4, target_accuracy=1.2)
    with pytest.raises(InputError, match="guessing"):
        plan(teachers=20, accuracy_margin=0.4, classes=4, target_accuracy=0.25)


def test_a_small_delta_ends_the_queries_where_it_cannot_be_certified() -> None:
    found = plan(
        teachers=20, accuracy_margin=0.5, classes=3, queries=1, epsilon=8, delta=1e-12, epsilons=()
    )
    assert [each.queries for each in found.by_queries] == [1]
    assert found.most_queries is not None
