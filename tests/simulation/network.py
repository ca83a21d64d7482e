"""The wire: links that lose, delay, double, reorder and change bytes as a plan says."""

import heapq
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.protocol.parties import seeded
from tests.simulation.operations import (
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    LinkFault,
    Plan,
    Reorder,
    Replace,
    Silence,
)

LINK_FAULTS = (Drop, Delay, Duplicate, Reorder, Corrupt, Replace)
_LEAST_LATENCY, _MOST_LATENCY = 5, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Bytes on their way. The sender is known from the channel."""

    sender: int
    receiver: int
    data: bytes = field(repr=False)


class Network:
    """Messages in flight, in milliseconds of the true time, which no role can read."""

    def __init__(self, plan: Plan) -> None:
        self._seed = plan.seed
        self._faults: dict[tuple[int, int, int], list[LinkFault]] = {}
        for each in plan.operations:
            if isinstance(each, LINK_FAULTS):
                place = (each.sender, each.receiver, each.nth)
                self._faults.setdefault(place, []).append(each)
        self._silences = [each for each in plan.operations if isinstance(each, Silence)]
        self._counts: Counter[tuple[int, int]] = Counter()
        self._held: dict[tuple[int, int], list[Message]] = {}
        self._flying: list[tuple[int, int, Message]] = []
        self._order = itertools.count()
        self._forged = 0
        self.left: list[Message] = []
        """Everything that ever left a role, which an eavesdropper has."""
        self.delivered: list[Message] = []
        """Everything that arrived, after its faults."""
        self.history: list[tuple[bool, Message]] = []
        """All that left and arrived, in order, and whether it arrived."""
        self.struck: list[tuple[LinkFault, bytes]] = []
        """The faults that happened, and what they happened to."""

    def send(self, message: Message, time: int) -> None:
        """Put a message on its link; its faults happen to it."""
        self.left.append(message)
        self.history.append((False, message))
        link = (message.sender, message.receiver)
        self._counts[link] += 1
        nth = self._counts[link]
        arrival = time + seeded(self._seed, link, nth).randint(_LEAST_LATENCY, _MOST_LATENCY)
        waiting = self._held.pop(link, [])
        arrivals = [arrival]
        for fault in self._faults.get((*link, nth), []):
            self.struck.append((fault, message.data))
            match fault:
                case Drop():
                    arrivals = []
                case Delay():
                    arrivals = [each + 1000 * fault.seconds for each in arrivals]
                case Duplicate():
                    arrivals += [each + 1000 * fault.seconds for each in arrivals]
                case Reorder():
                    self._held.setdefault(link, []).append(message)
                    arrivals = []
                case Corrupt() | Replace():
                    message = _changed(message, fault)
        for each in arrivals:
            self._fly(each, message)
        for held in waiting:
            self._fly(arrival + 1, held)

    def forge(self, message: Message, time: int) -> None:
        """Put a message on a link that its sender never sent; no place on the link is taken."""
        self._forged += 1
        latency = seeded(self._seed, "forged", self._forged).randint(_LEAST_LATENCY, _MOST_LATENCY)
        self._fly(time + latency, message)

    def arrived(self, time: int) -> Iterator[Message]:
        """What arrives up to this time, in order; silent teachers neither send nor receive."""
        while self._flying and self._flying[0][0] <= time:
            moment, _, message = heapq.heappop(self._flying)
            if not self._is_silent(message, moment):
                self.delivered.append(message)
                self.history.append((True, message))
                yield message

    def next_arrival(self) -> int | None:
        return self._flying[0][0] if self._flying else None

    def _fly(self, arrival: int, message: Message) -> None:
        heapq.heappush(self._flying, (arrival, next(self._order), message))

    def _is_silent(self, message: Message, moment: int) -> bool:
        return any(
            each.teacher in (message.sender, message.receiver)
            and 1000 * each.since <= moment < 1000 * each.until
            for each in self._silences
        )


def _changed(message: Message, fault: Corrupt | Replace) -> Message:
    data = message.data
    if isinstance(fault, Replace):
        data = seeded(fault).randbytes(fault.length)
    elif data:
        changed = bytearray(data)
        place = fault.bit % (8 * len(changed))
        changed[place // 8] ^= 1 << place % 8
        data = bytes(changed)
    return Message(sender=message.sender, receiver=message.receiver, data=data)
