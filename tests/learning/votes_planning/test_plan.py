import math

import numpy as np
import pytest

from dppp.errors import InputError
from dppp.learning.choosing_votes import choose_votes
from dppp.learning.planning import best_noise
from dppp.learning.votes_planning.forecast import CurveSource
from dppp.learning.votes_planning.learning_curve import parse_curve
from dppp.learning.votes_planning.plan import VotesPlan, most_votes, plan_votes
from dppp.privacy.noise import Noise, pmf_of

SOURCE = CurveSource(curve=parse_curve("20:0.75,100:0.85,1000:0.95"), records=1600)


def wins(noise: Noise, right: int, votes: int) -> float:
    """Two classes, from the masses of the noise of each: more counts, or half of a tie."""
    masses = pmf_of(noise).masses
    difference = np.convolve(masses, masses[::-1])
    values = np.arange(len(difference)) - (len(masses) - 1) + 2 * right - votes
    return float(difference[values > 0].sum() + difference[values == 0].sum() / 2)


def test_accuracy_is_the_sum_over_all_votes_and_all_noise() -> None:
    plan = plan_votes(
        CurveSource(curve=SOURCE.curve, records=60, correlation=0.0),
        teachers=5,
        epsilon=8,
        queries=3,
        votes=[1, 2],
    )
    noise = plan.noise.of_teachers(5)
    for each in plan.by_votes:
        votes, accuracy = each.shards, each.accuracy_single
        wanted = sum(
            math.comb(votes, right)
            * accuracy**right
            * (1 - accuracy) ** (votes - right)
            * wins(noise, right, votes)
            for right in range(votes + 1)
        )
        assert each.accuracy_expected == pytest.approx(wanted, abs=1e-9)
    assert [each.shards for each in plan.by_votes] == [5, 10]


def test_votes_help_until_their_models_know_too_little() -> None:
    plan = plan_votes(SOURCE, teachers=20)
    accuracies = [each.accuracy_expected for each in plan.by_votes]
    best = accuracies.index(max(accuracies))
    assert plan.best == plan.by_votes[best]
    assert 1 < plan.best.votes < plan.votes_most
    assert all(np.diff(accuracies[: best + 1]) > 0)
    assert all(np.diff(accuracies[best:]) < 0)
    assert all(np.diff([each.accuracy_single for each in plan.by_votes]) <= 0)
    assert all(each.accuracy_expected <= each.accuracy_without_noise for each in plan.by_votes)


def by_votes(plan: VotesPlan) -> dict[int, float]:
    return {each.votes: each.accuracy_expected for each in plan.by_votes}


def test_a_larger_epsilon_is_better_at_every_number_of_votes_and_planned_beside_it() -> None:
    votes = [1, 2, 5, 10, 20, 50]
    one = plan_votes(SOURCE, teachers=20, epsilon=1, votes=votes)
    two = plan_votes(SOURCE, teachers=20, epsilon=2, votes=[*votes, one.votes_rule])
    assert all(by_votes(two)[count] >= each - 1e-12 for count, each in by_votes(one).items())
    assert one.larger_epsilon is not None
    assert one.larger_epsilon.epsilon == 2
    assert one.larger_epsilon.accuracy_expected == pytest.approx(
        max(by_votes(two)[count] for count in by_votes(one)), abs=1e-12
    )


def test_the_next_teacher_is_what_a_plan_with_one_more_says() -> None:
    now = plan_votes(SOURCE, teachers=20, colluders=4, dropouts=2)
    assert now.next_teacher is not None
    votes = sorted(by_votes(now))
    more = plan_votes(SOURCE, teachers=21, colluders=4, dropouts=2, votes=votes)
    wanted = max(by_votes(more)[count] for count in votes)
    assert now.next_teacher.teachers == 21
    assert now.next_teacher.accuracy_expected == pytest.approx(wanted, abs=1e-12)
    assert now.next_teacher.accuracy_expected > now.best.accuracy_expected


def test_the_rule_is_the_one_of_the_estimators() -> None:
    plan = plan_votes(SOURCE, teachers=20)
    noise = best_noise(plan.promise, plan.trust)
    chosen = choose_votes("auto", unit="record", noise=noise, records=(1600,) * 20, classes=2)
    assert plan.votes_rule == chosen.per_teacher[0]
    assert plan.rule is not None
    assert plan.to_json()["accuracy_rule"] == plan.rule.accuracy_expected


def test_much_budget_needs_one_vote_only() -> None:
    plan = plan_votes(
        CurveSource(curve=SOURCE.curve, records=1000), teachers=100, epsilon=50, queries=1
    )
    assert plan.best.votes == 1
    assert plan.larger_epsilon is None
    assert plan.to_json()["larger_epsilon"] is None


def test_shards_smaller_than_the_curve_are_guesses_and_never_the_best() -> None:
    source = CurveSource(curve=parse_curve("400:0.95,1000:0.951"), records=1600)
    plan = plan_votes(source, teachers=20)
    assert {each.votes for each in plan.by_votes if not each.is_guess} == {1, 2}
    assert plan.best.votes == 2
    assert [each.is_flat for each in plan.by_votes][:2] == [True, False]


def test_a_shard_has_fifteen_records_for_each_class() -> None:
    assert most_votes(1600, 2) == 53
    assert most_votes(10, 2) == 1
    with pytest.raises(InputError, match="54 votes") as refusal:
        plan_votes(SOURCE, teachers=20, votes=[54])
    assert "at most 53" in str(refusal.value.hint)


@pytest.mark.parametrize("votes", [[0], [-1], [1.5]])
def test_numbers_of_votes_are_whole_and_start_at_one(votes: list[int]) -> None:
    with pytest.raises(InputError, match="votes per teacher"):
        plan_votes(SOURCE, teachers=20, votes=votes)
