"""Company: votes by size, silence below a public threshold, and every organisation alone."""

import numpy as np
import pytest
from tests.experiments.several_votes.made_up import made_up_connections

from dppp.experiments.several_votes import company
from dppp.experiments.several_votes.company import (
    DEALINGS,
    EPSILONS,
    THRESHOLD,
    WAYS,
    company_rows,
    deal,
    measure_split,
    summarise_company,
    threshold_of,
)
from dppp.experiments.several_votes.figures import draw_company
from dppp.experiments.several_votes.learners import connections_learner
from dppp.experiments.tables import write_table


@pytest.fixture(scope="module")
def measured():
    return list(measure_split(made_up_connections(train=1_500, test=60), seed=1))


@pytest.fixture(scope="module")
def rows(measured):
    return company_rows(measured)


def find(rows, dealing, way, epsilon=1.0):
    return next(
        row for row in rows if (row.dealing, row.way, row.epsilon) == (dealing, way, epsilon)
    )


def test_every_dealing_is_voted_on_in_every_way_and_certified(rows):
    assert [(row.dealing, row.way, row.epsilon) for row in rows] == [
        (dealing, way, epsilon) for dealing in DEALINGS for way in WAYS for epsilon in EPSILONS
    ]
    assert all(row.certified for row in rows)


@pytest.mark.parametrize("dealing", DEALINGS)
def test_no_record_comes_to_two_organisations(dealing):
    data = made_up_connections(train=1_500)
    dealt = np.concatenate(deal(data, dealing, np.random.default_rng(1)))
    assert len(set(dealt.tolist())) == len(dealt)


def test_votes_by_size_are_as_many_in_total_but_not_for_each(rows):
    even = find(rows, "alike, power-law sizes", "ten votes")
    by_size = find(rows, "alike, power-law sizes", "votes by size")
    assert even.votes_total == 200
    assert by_size.votes_total == pytest.approx(200, abs=10)
    assert by_size.records_most > 10 * by_size.records_least
    assert by_size.accuracy_mean != even.accuracy_mean


def test_only_the_silent_ways_have_a_threshold_and_silence(rows):
    for row in rows:
        assert (row.threshold == THRESHOLD) == ("silent" in row.way) == (row.silent > 0)
    assert [threshold_of(way) for way in WAYS] == [None, None, None, THRESHOLD, THRESHOLD]


def test_the_threshold_does_not_look_at_test_labels():
    """The same votes are silent when every test label is turned round."""
    data = made_up_connections(train=1_500, test=60)
    before = [each.silent for each in measure_split(data, dealings=DEALINGS[:1], seed=1)]
    data.test.labels[:] = 1 - data.test.labels
    after = [each.silent for each in measure_split(data, dealings=DEALINGS[:1], seed=1)]
    assert before == after
    assert max(before) > 0


def test_alone_is_every_organisation_by_itself(measured, rows):
    data = made_up_connections(train=1_500, test=60)
    learner = connections_learner(data)
    dealt = deal(data, DEALINGS[0], np.random.default_rng([1, 0]))
    alone = [float((learner.cast(own)[0] == learner.truth).mean()) for own in dealt]
    row = find(rows, DEALINGS[0], "one vote")
    assert row.alone_mean == pytest.approx(np.mean(alone))
    assert (row.alone_worst, row.alone_best) == (min(alone), max(alone))
    assert row.gainers == np.mean([each < row.accuracy_mean for each in alone])


def test_company_makes_a_sentence_a_table_and_a_figure(rows, tmp_path):
    sentence = summarise_company(rows)
    assert "20 organisations, by clusters: alone" in sentence
    assert "the worst" in sentence
    lines = write_table(rows, tmp_path / "company.csv").read_text().splitlines()
    assert len(lines) == 1 + len(rows)
    assert draw_company(rows, tmp_path / "company.png").stat().st_size > 5_000


def test_several_splits_are_averaged(measured):
    other = list(measure_split(made_up_connections(train=1_500, test=60, seed=23), seed=2))
    rows = company_rows([*measured, *other])
    assert {row.splits for row in rows} == {2}
    assert rows[0].teachers == company.TEACHERS
    assert rows[0].accuracy_mean == pytest.approx((measured[0].private + other[0].private) / 2)
