"""Published PATE settings, accounted for exactly, against a second accountant."""

import math

import pytest
from scipy.stats import norm

from dppp.experiments.published.pate import PUBLISHED, PublishedPate, most_answers, price_of_trust
from dppp.privacy.accounting import Spending, total_delta
from dppp.privacy.noise import Skellam


@pytest.fixture(scope="module")
def prices():
    return price_of_trust()


def gaussian_delta(epsilon, signal):
    """Balle and Wang 2018: many Gaussian answers are one, whose squared signals add up."""
    first = norm.logcdf(signal / 2 - epsilon / signal)
    second = epsilon + norm.logcdf(-signal / 2 - epsilon / signal)
    return math.exp(first) - math.exp(second)


@pytest.mark.parametrize("place", range(len(PUBLISHED)))
def test_skellam_costs_what_gaussian_noise_of_that_variance_costs(prices, place):
    row = prices[place]
    answers = 2 * row.asked / row.answer_sigma**2
    selection = row.asked / row.selection_sigma**2
    answered = 2 * (row.answered or 0) / row.answer_sigma**2
    for epsilon, squared in (
        (row.all_counts_epsilon, answers),
        (row.selection_epsilon, selection),
        (row.selection_and_all_answers_epsilon, answers + selection),
        (row.selection_and_answers_epsilon, answered + selection),
    ):
        if epsilon is None:
            continue
        slightly_less, slightly_more = 0.998 * epsilon, 1.002 * epsilon
        assert gaussian_delta(slightly_more, math.sqrt(squared)) < row.delta
        assert gaussian_delta(slightly_less, math.sqrt(squared)) > row.delta


def test_what_others_were_not_found_to_publish_is_not_compared(prices):
    for row in prices:
        is_known = row.published_epsilon is not None
        assert (row.answers_at_published_epsilon is not None) == is_known
        assert (row.sigma_at_published_epsilon is not None) == is_known
        assert (row.selection_and_answers_epsilon is None) == (row.answered is None)


def test_one_more_answer_would_pass_the_published_epsilon():
    setting = PUBLISHED[0]
    assert setting.published_epsilon is not None
    noise = Skellam(share_variance=setting.answer_sigma**2)
    most = most_answers(setting, setting.published_epsilon)
    for queries, is_kept in ((most, True), (most + 1, False)):
        spending = Spending(noise=noise, queries=queries)
        assert (total_delta([spending], setting.published_epsilon) <= setting.delta) == is_kept


def test_noise_too_small_for_one_answer_buys_none():
    tiny = PublishedPate(
        dataset="x",
        teachers=3,
        asked=10,
        threshold=2,
        selection_sigma=1,
        answer_sigma=1,
        delta=1e-5,
        answered=5,
        published_epsilon=0.1,
    )
    assert most_answers(tiny, 0.1) == 0
