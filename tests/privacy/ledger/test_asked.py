import pytest
from hypothesis import given
from hypothesis import strategies as st

from dppp.privacy.ledger import asked
from dppp.privacy.ledger.asked import AskedQueries, QueryIds, has_repeated

# Few marks, so that ids which differ often share one; some too short to fill a mark.
IDS = st.builds(
    lambda mark, rest: mark + rest,
    st.sampled_from([b"", b"\0", b"a", bytes(8), b"12345678"]),
    st.binary(max_size=2),
).filter(lambda each: each != b"")
BATCHES = st.lists(st.lists(IDS, min_size=1, max_size=6), max_size=6)


@pytest.mark.parametrize("most_recent", [0, 3, 4096])
@given(batches=BATCHES, ids=st.lists(IDS, min_size=1, max_size=8))
def test_what_was_asked_is_found_as_in_a_set(
    most_recent: int, batches: list[list[bytes]], ids: list[bytes]
) -> None:
    queries, known = AskedQueries(), set()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(asked, "_MOST_RECENT", most_recent)
        for each in batches:
            assert queries.find(each) == next((one for one in each if one in known), None)
            assert queries.add(each).as_tuple() == tuple(each)
            known.update(each)
        assert queries.find(ids) == next((one for one in ids if one in known), None)


@given(ids=st.lists(IDS, min_size=1, max_size=8))
def test_an_id_that_occurs_twice_is_seen_also_beside_others_of_its_mark(ids: list[bytes]) -> None:
    assert has_repeated(ids) == (len(set(ids)) < len(ids))
    assert has_repeated([*ids, ids[0]])


@given(ids=st.lists(IDS, max_size=6), others=st.lists(IDS, max_size=6))
def test_ids_in_one_piece_are_the_ids(ids: list[bytes], others: list[bytes]) -> None:
    joined = QueryIds(ids)
    assert (len(joined), joined.as_tuple()) == (len(ids), tuple(ids))
    assert joined.are(ids)
    assert joined.are(others) == (ids == others)
    assert all(joined.holds(each) for each in ids)
    assert all(joined.holds(each) == (each in ids) for each in others)


def test_ids_that_differ_only_where_they_are_cut_are_others() -> None:
    assert not QueryIds([b"ab", b"c"]).are([b"a", b"bc"])
    assert not QueryIds([b"ab", b"c"]).holds(b"bc")


def test_thousands_of_queries_are_known_whether_they_wait_or_are_sorted_in() -> None:
    queries = AskedQueries()
    ids = [number.to_bytes(8, "big") + bytes(24) for number in range(9_000)]
    for first in (0, 3_000, 6_000):
        queries.add(ids[first : first + 1])
        queries.add(ids[first + 1 : first + 2_999])
    for place in (0, 1, 2_998, 3_000, 5_998, 6_000, 8_998):
        assert queries.find([ids[place]]) == ids[place]
        assert queries.find([bytes(31) + b"x", ids[place]]) == ids[place]
    assert queries.find([ids[2_999], ids[5_999]]) is None
    assert queries.find(ids) == ids[0]
