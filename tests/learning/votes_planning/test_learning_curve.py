import pytest
from hypothesis import given
from hypothesis import strategies as st

from dppp.errors import InputError
from dppp.learning.votes_planning.learning_curve import LearningCurve, parse_curve

CURVE = parse_curve("1000:0.95, 10:0.75,100:0.85")


def test_points_may_come_in_any_order_and_are_on_the_curve() -> None:
    assert CURVE.points == ((10, 0.75), (100, 0.85), (1000, 0.95))
    assert [CURVE.accuracy(records) for records, _ in CURVE.points] == [0.75, 0.85, 0.95]


def test_between_two_points_it_is_a_line_over_the_logarithm() -> None:
    assert CURVE.accuracy(10**2 // 1) == 0.85
    assert parse_curve("1:0.5,10000:0.9").accuracy(100) == pytest.approx(0.7)


def test_past_its_ends_it_stays_or_is_called_a_guess() -> None:
    assert CURVE.accuracy(50_000) == 0.95
    assert not CURVE.reaches(1001)
    assert CURVE.reaches(1000)
    assert CURVE.covers(10)
    assert not CURVE.covers(9)
    assert CURVE.accuracy(1) == pytest.approx(0.65)
    assert CURVE.accuracy(1, least=0.7) == 0.7


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_more_records_never_make_a_model_worse(one: int, other: int) -> None:
    fewer, more = sorted((one, other))
    assert CURVE.accuracy(fewer, least=0.1) <= CURVE.accuracy(more, least=0.1) + 1e-12


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not a point"),
        ("ten", "not a point"),
        ("10;0.5,20:0.6", "not a point"),
        ("10:0.5", "two points"),
        ("0:0.5,10:0.6", "start at 1"),
        ("10:0,20:0.6", "above 0"),
        ("10:80,20:90", "at most 1"),
        ("10:nan,20:0.9", "above 0"),
        ("10:0.5,10:0.6", "two points at 10"),
        ("10:0.7,20:0.6", "falls"),
    ],
)
def test_what_is_not_a_curve_is_refused_in_words(text: str, word: str) -> None:
    with pytest.raises(InputError, match=word) as refusal:
        parse_curve(text)
    assert refusal.value.hint


def test_a_curve_in_python_checks_itself_too() -> None:
    with pytest.raises(InputError, match="two points"):
        LearningCurve(points=((10, 0.5),))
