import itertools
import math
from collections.abc import Iterator

import pytest

from dppp.privacy.noise import Noise, Polya, Skellam, pmf_of
from dppp.protocol.lead import chance_of_lead, lead_of

NOISES = (
    Skellam(share_variance=0.5, shares=3),
    Polya(shape=0.5, ratio=0.4, shares=2),
    Polya(shape=0.1, ratio=0.5, shares=14),
)


def every_way(noise: Noise, votes: tuple[int, ...]) -> Iterator[tuple[list[int], float]]:
    """All noisy counts that these votes can give, each with its chance."""
    pmf = pmf_of(noise)
    masses = [(pmf.first + place, mass) for place, mass in enumerate(pmf.masses) if mass > 1e-7]
    for drawn in itertools.product(masses, repeat=len(votes)):
        counts = [vote + value for vote, (value, _) in zip(votes, drawn, strict=True)]
        yield counts, math.prod(mass for _, mass in drawn)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("lead", [0, 1, 4])
def test_the_chance_is_that_of_every_way_the_noise_can_fall_on_two_equal_classes(
    noise: Noise, lead: int
) -> None:
    found = sum(chance for counts, chance in every_way(noise, (5, 5)) if lead_of(counts) >= lead)
    assert chance_of_lead(noise, lead) == pytest.approx(found, abs=1e-5)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    "votes",
    [(5, 5, 5), (5, 5, 0), (5, 4, 4), (5, 4, 0), (6, 5, 3), (9, 8, 8), (5, 5, 3), (8, 3, 3)],
)
def test_no_votes_give_a_class_without_the_most_votes_a_lead_more_often(
    noise: Noise, votes: tuple[int, ...]
) -> None:
    """Unequal votes too: the label of too few votes is no likelier than is said beside it."""
    leads = (1, 2, 4, 6)
    wrong = dict.fromkeys(leads, 0.0)
    for counts, chance in every_way(noise, votes):
        winner = counts.index(max(counts))
        if winner != 0:
            for lead in leads:
                wrong[lead] += chance * (lead_of(counts) >= lead)
    for lead in leads:
        assert wrong[lead] <= chance_of_lead(noise, lead) + 1e-6


def test_all_classes_equal_would_have_understated_it() -> None:
    noise = Skellam(share_variance=0.5, shares=3)
    of_three = sum(chance for counts, chance in every_way(noise, (5, 5, 5)) if lead_of(counts) >= 4)
    assert of_three < 0.8 * chance_of_lead(noise, 4)


def test_a_larger_lead_is_rarer_and_no_lead_says_nothing() -> None:
    noise = Skellam(share_variance=10.0, shares=20)
    chances = [chance_of_lead(noise, lead) for lead in range(200)]
    assert chances[0] == 1
    assert all(less < more for more, less in itertools.pairwise(chances[:100]))
    assert chance_of_lead(noise, 10**6) == 0


def test_the_lead_is_over_the_second_whatever_the_order() -> None:
    assert lead_of([3, -2, 9, 4]) == 5
    assert lead_of([7, 7, 1]) == 0
