"""Faults as data: a simulation is a plan, and a plan is a seed and a list of operations.

Every operation prints as the Python that makes it, so a failing plan can be copied out of a log,
thinned out and run again. Role 0 is the aggregator, 1…N are the teachers. Messages are named by
their link and their place on it: the latency of each comes from the seed and that name, so taking
one operation out of a plan does not move the others.
"""

from dataclasses import dataclass
from typing import TypeAlias

AGGREGATOR = 0

MISBEHAVIOURS = (
    "garbage",  # random bytes for a ballot
    "bias",  # any entries within a slot's range: allowed, and counted as they are
    "oversize",  # an entry that overflows its slot
    "copy",  # another's ballot raised to a power
    "replay",  # another's ballot, or an old one
    "bad proof",  # a ballot whose proof is bound to something else
    "impersonate",  # a ballot in another's name, signed by itself
    "two ballots",  # a new ballot at every request
    "wrong statement",  # endorses the list with other tallies than it has
    "bad signature",  # an endorsement that it did not sign itself
    "two endorsements",  # of the list, and of another one of the batch
    "replayed endorsement",  # its own of another batch, or another teacher's
    "withhold endorsement",
    "wrong shares",  # random decryption shares, and a proof that cannot hold
    "unproven shares",  # random decryption shares, and no proof
    "withhold shares",
    "other list",  # decryption shares said to be of another list
)
EQUIVOCATIONS = (
    "without one",  # still a quorum, if there is one to spare
    "below quorum",
    "alone",  # the victim's ballot and nobody else's
    "twice",  # one ballot two times, to look like a quorum
    "colluder votes anew",  # another ballot of a byzantine teacher
    "other input",  # the request holds another input under the same nonces
    "too few endorsers",  # a certified list with t - 1 endorsements
    "endorser twice",  # t - 1 endorsements and one of them again
    "foreign endorser",  # t - 1 endorsements and one by nobody in the list
    "endorsed elsewhere",  # t endorsements, all of them of another list
    "other tallies",  # t endorsements, and the victim's ballot alone in place of the tallies
    "another list certified",  # t endorsements of the list under the name of another list
    "other tallies to prove",  # a proof request about something else than the list
)
FORGERIES = (
    "unsigned",
    "signed by a teacher",
    "signature of another",  # the aggregator's, from another message
)
FORGED = ("ballot request", "ballot list", "certified list", "proof request")
"""The kinds of messages that somebody may make up in the aggregator's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Lose the nth message of a link."""

    sender: int
    receiver: int
    nth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    sender: int
    receiver: int
    nth: int
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Deliver it now, and once more later."""

    sender: int
    receiver: int
    nth: int
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder:
    """Hold it back until the next one of the same link has gone."""

    sender: int
    receiver: int
    nth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt:
    """Flip one bit, counted around the message's length."""

    sender: int
    receiver: int
    nth: int
    bit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """Put random bytes in its place."""

    sender: int
    receiver: int
    nth: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A teacher that nothing reaches and nothing leaves for a while."""

    teacher: int
    since: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehave:
    """A byzantine teacher, one of the colluders."""

    teacher: int
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivocate:
    """The aggregator tells these teachers something else about a batch, this many times.

    Instead of the truth, or beside it.
    """

    batch: int
    victims: tuple[int, ...]
    how: str
    times: int
    is_instead: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forge:
    """The broker says this to these teachers in the aggregator's name, whose key it does not have.

    Beside the truth, and as often as the truth is told, up to this many times.
    """

    batch: int
    victims: tuple[int, ...]
    kind: str
    how: str
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashAtWrite:
    """The role dies in its nth write, just before or just after that is durable."""

    role: int
    write: int
    is_durable: bool
    down_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashAtSend:
    """The role dies when it is about to send its nth message."""

    role: int
    send: int
    down_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnClock:
    """The clock of a role jumps, either way."""

    role: int
    at: int
    seconds: int


LinkFault: TypeAlias = Drop | Delay | Duplicate | Reorder | Corrupt | Replace
Operation: TypeAlias = (
    LinkFault | Silence | Misbehave | Equivocate | Forge | CrashAtWrite | CrashAtSend | TurnClock
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole simulation: `batches` says how many queries each batch holds."""

    seed: int
    teachers: int
    colluders: int
    dropouts: int
    deadline_seconds: int
    batches: tuple[int, ...]
    operations: tuple[Operation, ...]

    @property
    def byzantine(self) -> dict[int, str]:
        return {each.teacher: each.how for each in self.operations if isinstance(each, Misbehave)}

    @property
    def queries(self) -> int:
        return sum(self.batches)

    def __str__(self) -> str:
        lines = "".join(f"        {operation!r},\n" for operation in self.operations)
        return (
            f"Plan(\n    seed={self.seed},\n    teachers={self.teachers},\n"
            f"    colluders={self.colluders},\n    dropouts={self.dropouts},\n"
            f"    deadline_seconds={self.deadline_seconds},\n"
            f"    batches={self.batches},\n    operations=(\n{lines}    ),\n)"
        )
