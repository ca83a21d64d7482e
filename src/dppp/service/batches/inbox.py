"""Messages that wait for the aggregator: a queue for each teacher, served in turn.

One teacher who sends without end fills its own queue, loses its own messages and has one turn in N.
Lives in one event loop.
"""

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from dppp.errors import Busy

MOST_MESSAGES = 256
"""Of one teacher: for each of 64 open batches a ballot, shares and a proof, and some more."""

MOST_BYTES = 16 * 2**20
"""Of one teacher, unless it is one message."""


@dataclass(slots=True)
class _Waiting:
    """What one teacher sent and nobody has read yet."""

    messages: deque[bytes] = field(default_factory=deque)
    size: int = 0


class Inbox:
    """Of all teachers."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, _Waiting] = OrderedDict()  # in the order of their turns
        self._news = asyncio.Event()

    def put(self, teacher: int, data: bytes) -> None:
        """Keep a message; raises `Busy` when too much of this teacher's is waiting."""
        own = self._waiting.setdefault(teacher, _Waiting())
        is_full = len(own.messages) >= MOST_MESSAGES or own.size + len(data) > MOST_BYTES
        if is_full and own.messages:
            raise Busy("too many waiting")
        own.messages.append(data)
        own.size += len(data)
        self._news.set()

    async def get(self) -> tuple[int, bytes]:
        """The first message of the teacher whose turn it is."""
        while not self._waiting:
            self._news.clear()
            await self._news.wait()
        teacher, own = self._waiting.popitem(last=False)
        data = own.messages.popleft()
        own.size -= len(data)
        if own.messages:
            self._waiting[teacher] = own
        return teacher, data
