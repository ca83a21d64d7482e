"""What happens again and again is told ten times in ten seconds, and then counted."""

from dppp.service.process.log_throttle import MOST_LOGGED, WINDOW_SECONDS, LogThrottle


def test_every_time_is_told_or_counted_in_what_is_told_later() -> None:
    now = 100.0
    drops = LogThrottle(lambda: now)
    told = [drops.times("teacher 1") for _ in range(1_000)]
    assert told == [1] * MOST_LOGGED + [0] * (1_000 - MOST_LOGGED)
    assert drops.times("teacher 2") == 1
    now += WINDOW_SECONDS
    assert drops.times("teacher 1") == 1_000 - MOST_LOGGED + 1
    assert drops.times("teacher 1") == 1


def test_a_log_may_want_it_once_a_minute() -> None:
    now = 100.0
    errors = LogThrottle(lambda: now, most=1, window_seconds=60)
    assert [errors.times("refused") for _ in range(30)] == [1] + [0] * 29
    now += 60
    assert errors.times("refused") == 30
