"""Units: whose change the promise covers, and what that demands of the votes.

A teacher casts one vote for each of its models, and each model learned from its own shard of the
records. With the unit `record` each record is in one shard, and with `person` all records of a
person are: changing one unit then moves one vote, however many there are. With the unit `teacher`
everything that a teacher has may change at once, so it casts one vote.
"""

from collections.abc import Sequence

from dppp.errors import TaskError

UNITS = ("record", "person", "teacher")

MOST_VOTES = 10_000
"""Of one teacher; more would widen every entry of every ballot for little."""


def require_unit(unit: str, votes: Sequence[int]) -> None:
    """Refuse an unknown unit, and several votes where one unit could move all of them."""
    if unit not in UNITS:
        raise TaskError(f"the unit is {', '.join(UNITS[:-1])} or {UNITS[-1]}, not {unit!r}")
    if unit == "teacher" and max(votes, default=1) > 1:
        raise TaskError(
            f"with the unit teacher everybody casts one vote, not {max(votes)}: all votes of a "
            "teacher could move at once, and the noise hides one",
            hint="take the unit record or person, or one vote for every teacher",
        )


def describe_unit(unit: str) -> str:
    """What the promise covers, in words for whoever accepts it."""
    return {
        "record": "one record of one teacher: whether it is there, and what it says",
        "person": "all records of one person at one teacher",
        "teacher": "everything that one teacher has",
    }[unit]
