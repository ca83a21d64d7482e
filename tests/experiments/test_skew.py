"""Uneven teachers: how records are dealt, silence where a model is not sure, small ensembles."""

import numpy as np
import pytest
from tests.experiments.teachers.test_svm import connections

from dppp.errors import InputError
from dppp.experiments.datasets.nsl_kdd import NslKdd
from dppp.experiments.skew import draw_skew, measure_skew, rows_of, silenced, summarise_skew
from dppp.experiments.tables import write_table
from dppp.experiments.teachers.stored_votes import NO_VOTE
from dppp.experiments.teachers.svm import vote_on_skewed_connections
from dppp.experiments.teachers.uneven_split import SkewRecipe, split_skewed, teacher_sizes

LABELS = np.repeat(np.arange(5), 400).astype(np.uint8)


def split(alpha, sizes="equal"):
    numbers = teacher_sizes(len(LABELS), 20, sizes)
    return split_skewed(LABELS, numbers, alpha, np.random.default_rng(1))


def largest_class_shares(alpha):
    return np.mean([np.bincount(LABELS[own]).max() / len(own) for own in split(alpha)])


def test_no_record_is_dealt_twice():
    for sizes in ("equal", "power-law"):
        dealt = np.concatenate(split(0.3, sizes))
        assert len(set(dealt.tolist())) == len(dealt)
        assert len(dealt) > 0.98 * len(LABELS)


def test_a_small_alpha_makes_one_class_prevail_and_a_large_one_does_not():
    assert largest_class_shares(0.1) > 0.6
    assert largest_class_shares(100) < 0.35


def test_power_law_sizes_fall_as_one_over_the_rank():
    sizes = teacher_sizes(10_000, 50, "power-law")
    assert sizes[0] == pytest.approx(2 * sizes[1], abs=2)
    assert sizes[0] == pytest.approx(10 * sizes[9], abs=10)
    assert sizes.sum() <= 10_000
    assert sizes.min() >= 1


def test_what_cannot_be_dealt_is_refused():
    with pytest.raises(InputError, match="alpha must be above 0"):
        split(0)
    with pytest.raises(InputError, match="too few"):
        teacher_sizes(3, 4, "equal")
    with pytest.raises(InputError, match="unknown sizes"):
        teacher_sizes(30, 4, "huge")
    with pytest.raises(InputError, match="skew is measured on"):
        measure_skew("breast-cancer")


@pytest.fixture(scope="module")
def found():
    data = NslKdd(
        train=connections(600, 3), test=connections(150, 4), official_test=connections(5, 5)
    )
    recipe = SkewRecipe(dataset="nsl-kdd-20", alpha=0.1, sizes="equal", teachers=20, records=150)
    return vote_on_skewed_connections(data, recipe), recipe


def test_the_unsure_are_silent_and_the_sure_are_not(found):
    arrays, _ = found
    votes = silenced(arrays, "nsl-kdd-20", 0.5).votes
    is_unsure = np.asarray(arrays["confidence"]) < 0.5
    assert (votes[is_unsure] == NO_VOTE).all()
    np.testing.assert_array_equal(votes[~is_unsure], arrays["votes"][~is_unsure])
    assert 0 < is_unsure.mean() < 1


def test_rows_are_certified_with_and_without_the_remedy(found, tmp_path):
    arrays, recipe = found
    rows = rows_of(arrays, recipe, repetitions=2, seed=1)
    assert [(row.remedy, row.framework) for row in rows] == [
        (False, "distributed"), (False, "dppp-best"), (True, "distributed"), (True, "dppp-best"),
    ]  # fmt: skip
    assert [row.certified for row in rows] == [False, True, False, True]
    assert rows[0].silent == 0 < rows[2].silent
    alone = (arrays["votes"] == arrays["truth"]).mean(axis=1)
    assert {(row.alone_mean, row.alone_worst) for row in rows} == {(alone.mean(), alone.min())}
    assert "α = 0.1. nsl-kdd-20, equal sizes" in summarise_skew(rows)
    assert len(write_table(rows, tmp_path / "skew.csv").read_text().splitlines()) == 5
    assert draw_skew(rows, tmp_path / "skew.png").stat().st_size > 5_000
