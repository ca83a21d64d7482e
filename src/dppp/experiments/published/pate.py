"""PATE as published (Papernot et al. 2018), and what the same answers cost without trust.

PATE's ε depends on the votes: where teachers agree, an answer says little about any of them. It is
worked out by an aggregator that sees all votes, and has to be made private itself before it is
told. We trust nobody with the votes, so our ε holds for all votes there could be. Used by `dppp
reproduce pate`.

Settings are those of the authors' script for their Table 2, research/pate_2018/ICLR2018/
generate_table.sh in github.com/tensorflow/privacy. It is about the mechanism Confident-GNMax: a
query is answered if the largest count plus N(0, σ₁²) reaches the threshold, and then by the largest
of the counts plus N(0, σ₂²) each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dppp.privacy.accounting import Spending, account, total_delta
from dppp.privacy.calibration import calibrate
from dppp.privacy.noise import Skellam


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPate:
    """One line of the authors' script, and the ε that was published for it where we found it."""

    dataset: str
    teachers: int
    asked: int
    threshold: int
    selection_sigma: float
    answer_sigma: float
    delta: float
    answered: int | None
    """How many of the asked were: the numbers to which github.com/frhrdr/patepy holds its own
    accounting of the authors' votes."""
    published_epsilon: float | None
    """Dependent on the votes. MNIST: quoted by Ghazi et al. 2021 (Deep Learning with Label
    Differential Privacy), Table 4. SVHN: the budget in the code of a later attack on PATE."""


PUBLISHED = tuple(
    PublishedPate(
        dataset=dataset,
        teachers=teachers,
        asked=asked,
        threshold=threshold,
        selection_sigma=selection_sigma,
        answer_sigma=answer_sigma,
        delta=delta,
        answered=answered,
        published_epsilon=published_epsilon,
    )
    for (
        dataset,
        teachers,
        asked,
        threshold,
        selection_sigma,
        answer_sigma,
        delta,
        answered,
        published_epsilon,
    ) in (
        ("MNIST", 250, 640, 200, 150, 40, 1e-5, 286, 1.97),
        ("SVHN", 250, 8500, 300, 200, 40, 1e-6, 3098, 4.96),
        ("Adult", 250, 1500, 300, 200, 40, 1e-5, None, None),
        ("Glyph", 5000, 12000, 1000, 500, 100, 1e-8, 10762, None),
    )
)
"""What the search for published numbers did not find is None, and is not guessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOfTrust:
    """What a published setting costs whatever the votes are."""

    dataset: str
    teachers: int
    asked: int
    delta: float
    selection_sigma: float
    answer_sigma: float
    answered: int | None
    published_epsilon: float | None
    all_counts_epsilon: float
    """All noisy counts of every asked query are seen, as in dppp: no selection is needed."""
    selection_epsilon: float
    """PATE's selection alone: what its queries cost if none is answered."""
    selection_and_answers_epsilon: float | None
    """PATE's selection of all, and as many answers as were published."""
    selection_and_all_answers_epsilon: float
    """PATE's selection of all, and an answer to each."""
    answers_at_published_epsilon: int | None
    """How many queries dppp answers with this noise at the published ε."""
    sigma_at_published_epsilon: float | None
    """The deviation of a count with which dppp answers all of them at the published ε."""


def price_of_trust(published: Sequence[PublishedPate] = PUBLISHED) -> list[PriceOfTrust]:
    """Exact ε for noise of the published variance, Skellam in place of Gaussian."""
    return [_price(each) for each in published]


def _price(given: PublishedPate) -> PriceOfTrust:
    counts = Spending(noise=_noise(given.answer_sigma), queries=given.asked)
    # A query of ours moves two counts; a selection moves one, the largest, and by at most 1. So two
    # selections cost what one query with that noise does.
    selection = Spending(noise=_noise(given.selection_sigma), queries=given.asked // 2)
    known, answered = given.published_epsilon, given.answered
    answers = None if answered is None else replace(counts, queries=answered)
    return PriceOfTrust(
        dataset=given.dataset,
        teachers=given.teachers,
        asked=given.asked,
        delta=given.delta,
        selection_sigma=given.selection_sigma,
        answer_sigma=given.answer_sigma,
        answered=answered,
        published_epsilon=known,
        all_counts_epsilon=account([counts], given.delta),
        selection_epsilon=account([selection], given.delta),
        selection_and_answers_epsilon=None
        if answers is None
        else account([selection, answers], given.delta),
        selection_and_all_answers_epsilon=account([selection, counts], given.delta),
        answers_at_published_epsilon=None if known is None else most_answers(given, known),
        sigma_at_published_epsilon=None if known is None else _needed_sigma(given, known),
    )


def most_answers(given: PublishedPate, epsilon: float) -> int:
    """The most queries that noise of the published σ₂ answers within (ε, δ)."""
    noise = _noise(given.answer_sigma)

    def is_kept(queries: int) -> bool:
        return total_delta([Spending(noise=noise, queries=queries)], epsilon) <= given.delta

    if not is_kept(1):
        return 0
    low, high = 1, given.asked + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_kept(middle) else (low, middle)
    return low


def _needed_sigma(given: PublishedPate, epsilon: float) -> float:
    """All noise is honest and nobody colludes, as for a trusted aggregator."""
    certificate = calibrate(
        "skellam",
        epsilon=epsilon,
        delta=given.delta,
        teachers=given.teachers,
        colluders=0,
        dropouts=0,
        queries=given.asked,
    )
    return math.sqrt(certificate.noise.variance)


def _noise(sigma: float) -> Skellam:
    return Skellam(share_variance=sigma**2)
