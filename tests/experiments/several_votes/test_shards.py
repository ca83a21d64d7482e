"""Every record in one shard of one organisation; votes in proportion to records."""

import numpy as np
import pytest

from dppp.errors import InputError
from dppp.experiments.several_votes.shards import (
    LEAST_RECORDS,
    deal_alike,
    deal_by_clusters,
    find_clusters,
    split_into_shards,
    votes_by_size,
)


def test_no_record_is_in_two_shards_and_none_is_lost():
    random = np.random.default_rng(1)
    dealt = deal_alike(1_000, 20, "equal", random)
    shards = [shard for own in dealt for shard in split_into_shards(own, 7, random)]
    assert len(shards) == 140
    assert sorted(np.concatenate(shards).tolist()) == list(range(1_000))


def test_a_shard_holds_records_of_one_organisation_only():
    random = np.random.default_rng(1)
    for own in deal_alike(300, 5, "power-law", random):
        for shard in split_into_shards(own, 4, random):
            assert set(shard.tolist()) <= set(own.tolist())


def test_an_organisation_has_no_more_votes_than_records():
    shards = split_into_shards(np.arange(3), 10, np.random.default_rng(1))
    assert [len(shard) for shard in shards] == [1, 1, 1]


def test_votes_follow_sizes_and_nobody_has_none():
    assert votes_by_size([1_000, 500, 500], 10) == [15, 8, 8]
    assert votes_by_size([10_000, 1], 10) == [20, 1]
    assert votes_by_size([70] * 20, 10) == [10] * 20


def test_a_dealing_by_clusters_keeps_every_record_and_shows_few_organisations_a_cluster():
    clusters = np.repeat(np.arange(50), 80)
    dealt = deal_by_clusters(clusters, 8, 0.1, np.random.default_rng(2))
    assert sorted(np.concatenate(dealt).tolist()) == list(range(len(clusters)))
    assert min(len(own) for own in dealt) >= LEAST_RECORDS
    seen = np.mean([len(np.unique(clusters[own])) for own in dealt])
    alike = deal_by_clusters(clusters, 8, 100, np.random.default_rng(2))
    assert seen < 30
    assert np.mean([len(np.unique(clusters[own])) for own in alike]) == 50


def test_clusters_are_found_where_they_are():
    random = np.random.default_rng(3)
    rows = np.concatenate([random.normal(place, 0.1, (30, 2)) for place in (0.0, 5.0, 10.0)])
    found = find_clusters(rows, 3, 1)
    assert [len(set(part.tolist())) for part in np.split(found, 3)] == [1, 1, 1]
    assert len(set(found.tolist())) == 3


def test_what_cannot_be_dealt_by_clusters_is_refused():
    with pytest.raises(InputError, match="alpha must be above 0"):
        deal_by_clusters(np.zeros(100, np.int64), 2, 0, np.random.default_rng(1))
    with pytest.raises(InputError, match="too few for 4 teachers"):
        deal_by_clusters(np.zeros(50, np.int64), 4, 1, np.random.default_rng(1))
