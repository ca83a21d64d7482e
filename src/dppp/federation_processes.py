"""Teachers of an embedded federation spread over processes, so that all cores work.

Each worker process holds some of the teachers, with their ledgers, for as long as it lives; bytes
go to it and come back, as on a network. Used by the embedded federation when there is much to do.
"""

import multiprocessing
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Self

import msgpack

from dppp.federation import Progress, Reply, deliver_here
from dppp.protocol.aggregator import Send
from dppp.protocol.teacher import Teacher
from dppp.protocol.wire import kind_of

_STOP = b""


class TeacherProcesses:
    """Delivers to teachers in worker processes. Use it in a ``with`` block."""

    def __init__(
        self,
        teachers: Mapping[int, Teacher],
        processes: int,
        *,
        progress: Progress = lambda *_: None,
    ) -> None:
        context = multiprocessing.get_context("fork")
        self._pipes: list[Connection] = []
        self._workers = []
        self._progress = progress
        count = max(1, min(processes, len(teachers)))
        self._home = {index: place % count for place, index in enumerate(sorted(teachers))}
        for place in range(count):
            held = {index: teachers[index] for index in teachers if self._home[index] == place}
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(theirs, held), daemon=True)
            worker.start()
            theirs.close()
            self._pipes.append(ours)
            self._workers.append(worker)

    def __call__(self, sends: Sequence[Send], now: int) -> list[Reply]:
        """Carry the messages, and wait for all answers."""
        busy: list[Connection] = []
        for place, pipe in enumerate(self._pipes):
            here = [send for send in sends if self._home.get(send.teacher) == place]
            if here:
                # The same bytes go to many teachers: send them once.
                places = {data: place for place, data in enumerate({send.data for send in here})}
                wanted = [(send.teacher, places[send.data]) for send in here]
                pipe.send_bytes(msgpack.packb((now, wanted, list(places))))
                busy.append(pipe)
        return self._collect(busy, sends)

    def _collect(self, busy: list[Connection], sends: Sequence[Send]) -> list[Reply]:
        """Replies as they come, one at a time from each worker, until all say they are done."""
        replies: list[Reply] = []
        done = 0
        while busy:
            for pipe in wait(busy):
                assert isinstance(pipe, Connection)
                reply = msgpack.unpackb(pipe.recv_bytes())
                if reply is None:
                    busy.remove(pipe)
                    continue
                done += 1
                replies += [(teacher, data) for teacher, data in reply]
                self._progress(kind_of(sends[0].data), done, len(sends))
        return replies

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers; their teachers' ledgers in memory go with them."""
        # A message, not a closed pipe: later workers hold copies of the earlier ones' pipes.
        for pipe in self._pipes:
            pipe.send_bytes(_STOP)
            pipe.close()
        for worker in self._workers:
            worker.join()


def _work(pipe: Connection, teachers: Mapping[int, Teacher]) -> None:
    deliver = deliver_here(teachers)
    while (order := pipe.recv_bytes()) != _STOP:
        now, wanted, messages = msgpack.unpackb(order)
        for teacher, place in wanted:
            replies = deliver([Send(teacher=teacher, data=messages[place])], now)
            pipe.send_bytes(msgpack.packb(replies))
        pipe.send_bytes(msgpack.packb(None))
