"""Plans drawn from a seed: any faults at all, and only those that must be survived."""

from random import Random

from tests.protocol.parties import seeded
from tests.simulation.operations import (
    AGGREGATOR,
    EQUIVOCATIONS,
    FORGED,
    FORGERIES,
    MISBEHAVIOURS,
    Corrupt,
    CrashAtSend,
    CrashAtWrite,
    Delay,
    Drop,
    Duplicate,
    Equivocate,
    Forge,
    LinkFault,
    Misbehave,
    Operation,
    Plan,
    Reorder,
    Replace,
    Silence,
    TurnClock,
)


def plan_from(seed: int) -> Plan:
    """Any faults at all, with at most C byzantine teachers and D silent ones at once."""
    source = seeded("plan", seed)
    teachers, colluders, dropouts = _choose_trust(source)
    everybody = list(range(1, teachers + 1))
    source.shuffle(everybody)
    byzantine = sorted(everybody[: source.randint(0, colluders)])
    silent = everybody[colluders : colluders + source.randint(0, dropouts)]
    batches = tuple(source.randint(1, 16) for _ in range(source.randint(3, 8)))
    operations: list[Operation] = [
        Misbehave(teacher=each, how=source.choice(MISBEHAVIOURS)) for each in byzantine
    ]
    operations += [_silence(source, each) for each in silent]
    operations += [_link_fault(source, teachers) for _ in range(source.randint(0, 3 * teachers))]
    operations += [_crash(source, teachers) for _ in range(source.randint(0, teachers))]
    if source.random() < 0.3:
        operations += [
            _equivocation(source, everybody, len(batches)) for _ in range(source.randint(1, 2))
        ]
    operations += _forgeries(source, everybody, len(batches))
    if source.random() < 0.2:
        operations.append(_clock_jump(source, teachers))
    return Plan(
        seed=seed,
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        deadline_seconds=45,
        batches=batches,
        operations=tuple(operations),
    )


def gentle_plan_from(seed: int) -> Plan:
    """Only faults that the protocol promises to survive with a release of every batch.

    The channel loses, delays, doubles and reorders, roles crash and come back, D teachers are
    silent for good; somebody forges messages in the aggregator's name; and C colluders do what they
    like, where their endorsements and shares are not needed.
    """
    source = seeded("gentle plan", seed)
    while True:
        teachers, colluders, dropouts = _choose_trust(source)
        if (teachers + colluders) // 2 + 1 <= teachers - colluders - dropouts:
            break
    everybody = list(range(1, teachers + 1))
    source.shuffle(everybody)
    spoilt = ("oversize", "garbage", "copy", "replay", "bad proof", "impersonate")
    # A bad ballot is left out like a missing one, so those teachers are among the D.
    survivable = tuple(each for each in MISBEHAVIOURS if each not in spoilt)
    operations: list[Operation] = [
        Misbehave(teacher=each, how=source.choice(survivable)) for each in everybody[:colluders]
    ]
    operations += [
        Silence(teacher=each, since=0, until=10**6)
        for each in everybody[colluders : colluders + dropouts]
    ]
    lossy = (Drop, Delay, Duplicate, Reorder)
    faults = (_link_fault(source, teachers) for _ in range(6 * teachers))
    operations += [each for each in faults if isinstance(each, lossy)]
    operations += [_crash(source, teachers) for _ in range(source.randint(0, teachers))]
    batches = tuple(source.randint(1, 10) for _ in range(source.randint(2, 5)))
    operations += _forgeries(source, everybody, len(batches))
    return Plan(
        seed=seed,
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        deadline_seconds=600,
        batches=batches,
        operations=tuple(operations),
    )


def _choose_trust(source: Random) -> tuple[int, int, int]:
    """N = 4…20 with few (C, D) for each, so that settings can be kept between plans."""
    teachers = source.randint(4, 20)
    choices = [
        (colluders, dropouts)
        for colluders, dropouts in (
            (teachers // 5, teachers // 10),
            (teachers // 4, teachers // 5),
            ((teachers - 1) // 3, 0),
            (1, teachers // 4),
        )
        if (teachers + colluders) // 2 + 1 <= teachers - dropouts
    ]
    return (teachers, *source.choice(choices))


def _silence(source: Random, teacher: int) -> Silence:
    since = source.choice((0, source.randint(0, 40)))
    return Silence(teacher=teacher, since=since, until=since + source.choice((10, 60, 10**6)))


def _link_fault(source: Random, teachers: int) -> LinkFault:
    ends = [AGGREGATOR, source.randint(1, teachers)]
    source.shuffle(ends)
    link = {"sender": ends[0], "receiver": ends[1], "nth": source.randint(1, 18)}
    kind = source.choice(
        (Drop, Drop, Delay, Delay, Duplicate, Duplicate, Reorder, Corrupt, Replace)
    )
    if kind in (Delay, Duplicate):
        return kind(**link, seconds=source.choice((1, 5, 30, 90)))
    if kind is Corrupt:
        return Corrupt(**link, bit=source.randrange(10**6))
    if kind is Replace:
        return Replace(**link, length=source.choice((0, 1, 64, 1000)))
    return kind(**link)


def _crash(source: Random, teachers: int) -> Operation:
    role = source.choice((AGGREGATOR, source.randint(1, teachers)))
    down_seconds = source.choice((0, 1, 5, 20))
    if source.random() < 0.6:
        return CrashAtWrite(
            role=role,
            write=source.randint(1, 24),
            is_durable=source.random() < 0.5,
            down_seconds=down_seconds,
        )
    sends = source.randint(1, 90 if role == AGGREGATOR else 15)
    return CrashAtSend(role=role, send=sends, down_seconds=down_seconds)


def _equivocation(source: Random, everybody: list[int], batches: int) -> Equivocate:
    victims = source.sample(everybody, source.randint(1, max(1, len(everybody) // 2)))
    return Equivocate(
        batch=source.randrange(batches),
        victims=tuple(sorted(victims)),
        how=source.choice(EQUIVOCATIONS),
        times=source.randint(1, 4),
        is_instead=source.random() < 0.5,
    )


def _forgeries(source: Random, everybody: list[int], batches: int) -> list[Operation]:
    if source.random() < 0.5:
        return []
    return [
        Forge(
            batch=source.randrange(batches),
            victims=tuple(sorted(source.sample(everybody, source.randint(1, len(everybody))))),
            kind=source.choice(FORGED),
            how=source.choice(FORGERIES),
            times=source.randint(1, 3),
        )
        for _ in range(source.randint(1, 3))
    ]


def _clock_jump(source: Random, teachers: int) -> TurnClock:
    return TurnClock(
        role=source.choice((AGGREGATOR, source.randint(1, teachers))),
        at=source.randint(0, 60),
        seconds=source.choice((-300, -30, 30, 300)),
    )
