import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from dppp.errors import InputError
from dppp.learning.advice import Advice, advise
from dppp.learning.choosing_votes import votes_for_noise
from dppp.learning.estimator import PrivateVotingClassifier
from dppp.learning.planning import best_noise
from dppp.learning.verdict import HeldOut, Verdict, compare, judge, locally_private, plurality
from dppp.learning.win_probability import chances_of_label
from dppp.privacy.calibration import calibrate
from dppp.privacy.certificate import Certificate
from dppp.privacy.noise import Noise, Skellam, pmf_of


def seen(
    *, teachers: int = 20, votes: int = 1, rows: int = 400, skill: float = 0.9, own: float = 0.95
) -> HeldOut:
    """Models that are right independently of one another; two classes, 70 % are of class 0."""
    random = np.random.default_rng(7)
    labels = (random.random(rows) < 0.3).astype(np.int64)
    right = random.random((teachers, votes, rows)) < skill
    said = np.where(right, labels, 1 - labels)
    counts = np.stack([(said == kind).sum(axis=1) for kind in (0, 1)], axis=-1)
    alone = (random.random((teachers, rows)) < own).astype(np.float64)
    return HeldOut(votes=counts, labels=labels, majority=0, alone=alone)


def promised(
    *, epsilon: float = 1.0, queries: int = 100, teachers: int = 20, classes: int = 2
) -> Certificate:
    return calibrate(
        "skellam",
        epsilon=epsilon,
        delta=1e-5,
        teachers=teachers,
        queries=queries,
        classes=classes,
    )


def test_the_expected_accuracy_is_the_sum_over_all_noise() -> None:
    noise = Skellam(share_variance=0.4, shares=5)
    pmf = pmf_of(noise)
    masses = [(pmf.first + place, mass) for place, mass in enumerate(pmf.masses) if mass > 1e-12]
    counts = np.array([[3, 1, 1], [0, 2, 3]])
    for row, right in zip(counts, (0, 1), strict=True):
        won = 0.0
        for drawn in itertools.product(masses, repeat=3):
            noisy = [int(vote) + value for vote, (value, _) in zip(row, drawn, strict=True)]
            if noisy[right] == max(noisy):
                won += math.prod(mass for _, mass in drawn) / noisy.count(max(noisy))
        found = chances_of_label(row[None, :], np.array([right]), noise)[0]
        assert found == pytest.approx(won, abs=1e-9)


def test_sampled_noise_agrees_with_the_verdict() -> None:
    held_out, certificate = seen(votes=3), promised(epsilon=4)
    verdict = judge(held_out, certificate)
    random = np.random.default_rng(1)
    half = certificate.noise.of_teachers(20).variance / 2
    tally = held_out.tally.astype(np.float64)
    draws = [
        np.mean((tally + skellam(random, half, tally.shape)).argmax(axis=1) == held_out.labels)
        for _ in range(400)
    ]
    # argmax breaks ties for class 0; with this noise a tie is one query in fifty.
    assert np.mean(draws) == pytest.approx(verdict.accuracy_expected, abs=0.02)
    spread = verdict.spread_noise * math.sqrt(verdict.queries / verdict.rows)
    assert np.std(draws) == pytest.approx(spread, rel=0.2)


def skellam(random: np.random.Generator, half: float, shape: tuple[int, ...]) -> np.ndarray:
    return random.poisson(half, shape) - random.poisson(half, shape)


def test_one_vote_at_a_small_epsilon_is_not_worth_it_and_ten_are() -> None:
    few = judge(seen(votes=1), promised())
    assert few.accuracy_plurality > 0.99
    assert few.accuracy_expected < few.accuracy_majority
    assert not few.worth_it
    assert not few.worth_it_to_a_teacher
    assert few.outsider.against == "always saying the majority class"
    assert few.sentences[0].startswith("Not worth it to an outsider")
    many = judge(seen(votes=10), promised())
    assert many.worth_it
    assert many.sentences[0].startswith("Worth it to an outsider")
    alone = seen(votes=10).alone.mean(axis=1)
    assert many.teachers_better_off == np.sum(alone < many.accuracy_expected)


def test_one_teacher_under_local_privacy_adds_all_the_noise_itself() -> None:
    held_out, certificate = seen(teachers=4, rows=30), promised(teachers=4)
    by_teacher = [
        chances_of_label(votes, held_out.labels, certificate.noise) for votes in held_out.votes
    ]
    expected = np.mean(by_teacher, axis=0)
    assert np.allclose(locally_private(held_out, certificate.noise), expected)
    assert certificate.noise.variance < certificate.noise.of_teachers(4).variance


def test_the_teacher_asked_alone_is_one_with_the_most_votes() -> None:
    held_out = seen(teachers=3, rows=20)
    votes = held_out.votes.copy()
    votes[1] *= 50
    uneven = HeldOut(votes=votes, labels=held_out.labels, majority=0, alone=held_out.alone)
    noise = promised(teachers=3).noise
    assert np.allclose(
        locally_private(uneven, noise), chances_of_label(votes[1], held_out.labels, noise)
    )


def test_a_small_sample_cannot_tell_and_the_sentence_says_so() -> None:
    held_out = seen(rows=12, votes=6, skill=0.8)
    verdict = judge(held_out, promised())
    assert not verdict.outsider.is_clear
    assert verdict.sentences[0].startswith("Cannot be told from 12 records")
    one = judge(seen(rows=1), promised())
    assert not one.outsider.is_clear
    assert "one is too few" in one.sentences[0]


def test_equal_votes_share_the_chance_of_being_right() -> None:
    held_out = HeldOut(
        votes=np.array([[[1, 1, 0], [2, 0, 0], [0, 0, 2]]]),
        labels=np.array([1, 0, 0]),
        majority=0,
        alone=np.zeros((1, 3)),
    )
    assert plurality(held_out).tolist() == [Fraction(1, 2), 1, 0]


def test_what_a_model_was_trained_on_does_not_count_for_it() -> None:
    held_out = seen(rows=10)
    alone = np.zeros((20, 10))
    alone[:, 0] = np.nan
    alone[0, 1] = 1
    with pytest.raises(InputError, match="own model"):
        HeldOut(votes=held_out.votes, labels=held_out.labels, majority=0, alone=alone)
    alone[1:, 0] = 0
    with_gaps = HeldOut(votes=held_out.votes, labels=held_out.labels, majority=0, alone=alone)
    assert judge(with_gaps, promised()).accuracy_single == pytest.approx(1 / 9 / 20)


def test_what_is_worth_it_needs_no_advice() -> None:
    held_out, certificate = seen(votes=20, own=0.6), promised()
    verdict = judge(held_out, certificate)
    assert verdict.worth_it
    assert verdict.worth_it_to_a_teacher
    assert advise(verdict, held_out, certificate) == ()


def test_advice_is_the_least_change_that_is_enough() -> None:
    held_out, certificate = seen(), promised()
    found = {
        each.change: each
        for each in advise(judge(held_out, certificate), held_out, certificate)
        if each.asker == "an outsider"
    }
    assert set(found) == {"queries", "epsilon", "teachers"}
    queries, epsilon = found["queries"].value, found["epsilon"].value
    assert queries is not None
    assert epsilon is not None
    for changed, is_enough in (
        (promised(queries=int(queries)), True),
        (promised(queries=int(queries * 1.2) + 1), False),
        (promised(epsilon=epsilon), True),
        (promised(epsilon=0.85 * epsilon), False),
    ):
        noise = best_noise(changed.promise, changed.trust)
        right = chances_of_label(held_out.tally, held_out.labels, noise.of_teachers(20))
        others = ((held_out.labels == 0).astype(float), locally_private(held_out, noise))
        gains = right - max(others, key=np.mean)
        assert (gains.mean() > 2 * gains.std(ddof=1) / math.sqrt(len(gains))) == is_enough
    assert found["teachers"].value is not None
    assert found["teachers"].accuracy_expected > found["teachers"].accuracy_without


def test_advice_says_when_nothing_in_range_is_enough() -> None:
    held_out, certificate = seen(skill=0.5, own=1.0), promised()
    advice = advise(judge(held_out, certificate), held_out, certificate)
    to_a_teacher = [each for each in advice if each.asker == "a teacher"]
    assert {each.change for each in to_a_teacher} == {"queries", "epsilon", "teachers"}
    assert all(each.value is None for each in to_a_teacher)
    assert all("no " in each.text for each in to_a_teacher)


def test_more_votes_are_tried_with_models_that_were_trained_for_it() -> None:
    held_out, certificate = seen(own=1.0), promised()
    asked: list[int] = []

    def retrain(votes: int) -> HeldOut:
        asked.append(votes)
        return seen(votes=votes, skill=0.9 if votes < 20 else 0.5, own=1.0)

    advice = advise(
        judge(held_out, certificate), held_out, certificate, votes=(1, 2, 10, 20), retrain=retrain
    )
    (votes,) = (each for each in advice if (each.asker, each.change) == ("an outsider", "votes"))
    assert votes.value == 10
    assert asked == [2, 10]


def test_more_votes_are_tried_until_one_is_worse_than_those_before() -> None:
    held_out, certificate = seen(own=0.99), promised()
    asked: list[int] = []

    def retrain(votes: int) -> HeldOut:
        asked.append(votes)
        return seen(votes=votes, skill=0.9 if votes < 20 else 0.4, own=0.99)

    advice = advise(
        judge(held_out, certificate),
        held_out,
        certificate,
        votes=(1, 2, 5, 20, 50),
        retrain=retrain,
    )
    to_a_teacher = next(
        each for each in advice if (each.asker, each.change) == ("a teacher", "votes")
    )
    assert (to_a_teacher.value, to_a_teacher.last_tried) == (None, 20)
    assert to_a_teacher.best_tried == 5
    assert asked == [2, 5, 20]
    assert "at best" in to_a_teacher.text


def test_no_model_is_trained_for_votes_that_have_no_noise_to_outvote() -> None:
    """Hundreds of models were, for minutes, where the votes are worse even without noise."""
    held_out, certificate = seen(votes=10, own=1.0), promised()

    def retrain(votes: int) -> HeldOut:
        raise AssertionError(f"trained for {votes} votes")

    verdict = judge(held_out, certificate)
    assert verdict.worth_it
    assert not verdict.worth_it_to_a_teacher
    advice = advise(verdict, held_out, certificate, votes=(10, 20), retrain=retrain)
    (votes,) = (each for each in advice if each.change == "votes")
    assert votes.value is None
    assert votes.accuracy_expected == verdict.accuracy_plurality
    assert "would hardly make it worth it" in votes.text


def test_a_verdict_refuses_labels_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="equal size"):
        HeldOut(
            votes=np.zeros((2, 3, 2), dtype=np.int64),
            labels=np.zeros(4, dtype=np.int64),
            majority=0,
            alone=np.zeros((2, 3)),
        )
    with pytest.raises(InputError, match="not among the classes"):
        HeldOut(
            votes=np.zeros((2, 3, 2), dtype=np.int64),
            labels=np.full(3, 2),
            majority=0,
            alone=np.zeros((2, 3)),
        )


def test_a_gain_within_its_uncertainty_is_not_called_worth_it() -> None:
    held_out, certificate = seen(rows=40, votes=4, skill=0.8), promised()
    verdict = judge(held_out, certificate)
    assert 0 < verdict.outsider.gain < 2 * verdict.outsider.error
    assert not verdict.worth_it
    assert advise(verdict, held_out, certificate)
    needed = verdict.outsider.rows_needed
    assert needed is not None
    assert "records would tell" in verdict.outsider.sentence
    times = math.ceil(1.1 * needed / 40)
    more = HeldOut(
        votes=np.tile(held_out.votes, (1, times, 1)),
        labels=np.tile(held_out.labels, times),
        majority=0,
        alone=np.tile(held_out.alone, (1, times)),
    )
    assert judge(more, certificate).worth_it


def test_advice_finds_what_helps_though_more_of_it_would_not() -> None:
    """With so much ε that no noise is left, one teacher's votes are as good as those of all."""
    held_out, certificate = seen(skill=1.0, own=1.0), promised(epsilon=0.5)
    (epsilon,) = (
        each
        for each in advise(judge(held_out, certificate), held_out, certificate)
        if (each.asker, each.change) == ("an outsider", "epsilon")
    )
    assert epsilon.value is not None
    assert epsilon.value < 16
    without = Skellam(share_variance=1e-9, shares=14)
    right = chances_of_label(held_out.tally, held_out.labels, without.of_teachers(20))
    local = locally_private(held_out, without)
    assert not compare("an outsider", held_out, right, local).is_worth_it


def unanimous(*, votes: int, right: float) -> HeldOut:
    """All models say the same, and own models are right in nine rows of ten."""
    rows = 400
    labels = np.arange(rows) % 2
    said = np.where(np.arange(rows) < right * rows, labels, 1 - labels)
    counts = np.tile(votes * np.eye(2, dtype=np.int64)[said], (20, 1, 1))
    alone = np.tile(np.arange(rows) % 10 > 0, (20, 1)).astype(np.float64)
    return HeldOut(votes=counts, labels=labels, majority=0, alone=alone)


def to_a_teacher(advice: tuple[Advice, ...]) -> dict[str, Advice]:
    return {each.change: each for each in advice if each.asker == "a teacher"}


def test_less_noise_is_looked_at_with_the_fewer_votes_that_the_rule_chooses_for_it() -> None:
    """Models of small shards may be no better than one's own even in the clear; others may."""
    certificate = promised()

    def replan(noise: Noise, teachers: int) -> tuple[int, HeldOut]:
        votes = votes_for_noise(noise, teachers)
        return votes, unanimous(votes=votes, right=0.85 if votes > 4 else 0.97)

    many, held_out = replan(certificate.noise, 20)
    verdict = judge(held_out, certificate)
    assert many > 10
    assert not verdict.worth_it_to_a_teacher
    fixed = to_a_teacher(advise(verdict, held_out, certificate))
    assert {each.value for each in fixed.values()} == {None}
    chosen = to_a_teacher(advise(verdict, held_out, certificate, replan=replan))
    assert set(chosen) == {"queries", "epsilon", "teachers"}
    same = replace(chosen["epsilon"], votes_now=chosen["epsilon"].votes)
    assert "where auto takes" in chosen["epsilon"].text
    assert "where auto takes" not in same.text
    for each in chosen.values():
        assert each.value is not None
        assert each.votes is not None
        assert each.votes <= 4
        assert f"{each.votes} vote" in each.text
    assert chosen["epsilon"].value is not None
    followed = promised(epsilon=chosen["epsilon"].value)
    votes, seen_then = replan(followed.noise, 20)
    assert votes == chosen["epsilon"].votes
    assert judge(seen_then, followed).worth_it_to_a_teacher


def test_an_estimators_advice_comes_true_when_it_is_followed() -> None:
    random = np.random.default_rng(3)
    rows = random.normal(size=(2_400, 4))
    labels = (rows.sum(axis=1) + random.normal(size=2_400) > 0).astype(np.int64)

    def verdict_at(epsilon: float) -> tuple[int, Verdict]:
        private = PrivateVotingClassifier(
            DecisionTreeClassifier(),
            n_teachers=10,
            epsilon=epsilon,
            queries=20,
            cryptography=False,
            random_state=0,
        ).fit(rows[:1_600], labels[:1_600])
        return max(private.votes_.per_teacher), private.verdict(rows[1_600:], labels[1_600:])

    votes, verdict = verdict_at(1.0)
    assert not verdict.worth_it_to_a_teacher
    advised = to_a_teacher(verdict.advice)["epsilon"]
    assert advised.value is not None
    assert advised.votes is not None
    assert advised.votes <= votes
    then, followed = verdict_at(advised.value)
    assert then == advised.votes
    assert followed.worth_it_to_a_teacher
    assert followed.accuracy_expected == pytest.approx(advised.accuracy_expected, abs=0.01)


def test_as_right_as_the_majority_class_is_not_worth_it_and_no_more_records_are_needed() -> None:
    """So it is with one record in twenty of the other class, and models that never say it."""
    labels = (np.arange(400) % 20 == 0).astype(np.int64)
    said = np.zeros(400, dtype=np.int64)
    counts = np.tile(50 * np.eye(2, dtype=np.int64)[said], (20, 1, 1))
    alone = np.tile(labels == 0, (20, 1)).astype(np.float64)
    held_out = HeldOut(votes=counts, labels=labels, majority=0, alone=alone)
    verdict = judge(held_out, promised())
    assert verdict.accuracy_expected == pytest.approx(verdict.accuracy_majority)
    assert verdict.outsider.is_clear
    assert not verdict.worth_it
    assert verdict.sentences[0].startswith(
        "Not worth it to an outsider: as often right as always saying the majority class (95.0 %)"
    )


def test_what_noise_takes_is_said_beside_a_verdict_unless_it_is_little() -> None:
    much = judge(seen(votes=3, skill=0.8), promised())
    lost = 100 * (much.accuracy_plurality - much.accuracy_expected)
    assert lost > 5
    assert f"Noise takes {lost:.1f} points" in much.sentences[0]
    assert "Noise takes" not in judge(seen(votes=10), promised(epsilon=8)).sentences[0]


def test_where_less_noise_cannot_help_no_model_is_trained_on_the_way() -> None:
    """Only the ends are looked at, and one query is not told to be fewer."""
    certificate, asked = promised(queries=1, epsilon=0.1), set()

    def replan(noise: Noise, teachers: int) -> tuple[int, HeldOut]:
        votes = votes_for_noise(noise, teachers)
        asked.add(votes)
        return votes, unanimous(votes=votes, right=0.85)

    many, held_out = replan(certificate.noise, 20)
    advice = advise(judge(held_out, certificate), held_out, certificate, replan=replan)
    chosen = to_a_teacher(advice)
    assert set(chosen) == {"epsilon", "teachers"}
    assert all(each.value is None for each in chosen.values())
    assert many > 5
    assert len(asked - {many}) <= 2
