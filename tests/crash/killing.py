"""Starting a process under test, and killing it with SIGKILL at a system call of choice.

strace takes hold of the process and injects the signal as it enters the k-th call of a kind: the
call itself does not happen, everything before it did. Where strace cannot be used, the process is
killed at a random moment instead, which finds less; tests say so loudly.

SIGKILL takes a process, not the machine: what was written but not synced is still there for the
next process. That data is synced before anything is sent is checked on the order of the calls.
"""

import functools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import IO

from tests.crash.nursery import GO
from tests.crash.setting import crash_setting

CALLS = (
    "write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync_file_range,sendto,sendmsg,"
    "ftruncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,openat,fallocate"
)
"""Every way to change a file or to say something, and openat, which may make a file."""

_CALL = re.compile(r"^\d+ +(\w+)\(")
_FILE = re.compile(r"\(\d+<([^>]*)")


@dataclass(frozen=True)
class Point:
    """Where to kill: at the `count`-th `call`; without strace, after `count` milliseconds."""

    call: str
    count: int

    def __str__(self) -> str:
        return f"{self.call} {self.count}"


RANDOM_MOMENT = "a random moment, in milliseconds"


@functools.cache
def has_strace() -> bool:
    """Whether strace is here and may take hold of a running process."""
    strace = shutil.which("strace")
    if strace is None:
        return False
    sleeper = subprocess.Popen(["sleep", "30"])  # noqa: S607
    try:
        tracer = _attach(sleeper.pid, Path(os.devnull), None)
    except RuntimeError:
        return False
    finally:
        sleeper.kill()
        sleeper.wait()
    tracer.communicate()
    return True


class Nursery:
    """The process that makes processes under test; one at a time."""

    def __init__(self, sockets: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        self._sockets = sockets
        self._made = 0
        assert self._hear() == crash_setting().task.task_id.hex()

    def make(self, role: str, folder: Path) -> tuple[int, Connection]:
        """A process that waits for "go", and the channel to it."""
        self._made += 1
        address = str(self._sockets / f"{self._made}")
        with Listener(address, family="AF_UNIX") as listener:
            print(role, folder, address, sep="\t", file=_open(self._process.stdin), flush=True)
            child = int(self._hear())
            channel = listener.accept()
        return child, channel

    def was_killed(self) -> bool:
        """Waits for the process to end; whether SIGKILL ended it. Any other failure is one."""
        status = int(self._hear())
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return True
        assert status == 0, f"the process under test ended with the wait status {status}"
        return False

    def close(self) -> None:
        _open(self._process.stdin).close()
        self._process.wait(timeout=30)
        _open(self._process.stdout).close()

    def _hear(self) -> str:
        return _open(self._process.stdout).readline().rstrip("\n")


@dataclass
class UnderTest:
    """One role of the federation through all its lives."""

    nursery: Nursery
    role: str
    folder: Path
    points: list[Point] = field(default_factory=list)
    """Where its next lives end; when there is none left, it lives on."""
    kills: int = 0
    log: Path | None = None
    is_alive: bool = False

    def live(self) -> list[bytes]:
        """Start it, until it is up; the frames that it says as it starts."""
        point = self.points.pop(0) if self.points else None
        child, self._channel = self.nursery.make(self.role, self.folder)
        self._child = child
        self._tracer: subprocess.Popen[str] | None = None
        self._timer: threading.Timer | None = None
        if point is not None and point.call == RANDOM_MOMENT:
            self._timer = threading.Timer(point.count / 1000, _kill_if_there, (child,))
            self._timer.start()
        elif point is not None or self.log is not None:
            self._tracer = _attach(child, self.log or Path(os.devnull), point)
        self.is_alive = True
        return self._ask(GO)

    def ask(self, request: bytes) -> list[bytes]:
        """The frames that came: all or, if it died over it, some."""
        assert self.is_alive
        return self._ask(request)

    def leave(self) -> None:
        """Ask it to end, if it lives."""
        if self.is_alive:
            with suppress(OSError):  # killed at the very end
                self._channel.send_bytes(b"")
            self._bury()

    def abandon(self) -> None:
        """End it whatever it does, after a test that failed."""
        if self.is_alive:
            _kill_if_there(self._child)
            self._bury()

    def _ask(self, request: bytes) -> list[bytes]:
        frames: list[bytes] = []
        try:
            self._channel.send_bytes(request)
            while frame := self._channel.recv_bytes():
                frames.append(frame)
        except (EOFError, OSError):
            self._bury()
        return frames

    def _bury(self) -> None:
        self.is_alive = False
        self.kills += self.nursery.was_killed()
        if self._timer is not None:
            self._timer.cancel()
        if self._tracer is not None:
            self._tracer.communicate(timeout=30)
        self._channel.close()


def calls_of(log: Path) -> list[str]:
    """The names of the traced calls, in order."""
    found = (_CALL.match(line) for line in log.read_text(errors="replace").splitlines())
    return [match[1] for match in found if match]


def unsynced_sends(log: Path) -> tuple[int, list[str]]:
    """How many writes to the socket there were, and those that came before a sync of a file."""
    unsynced: set[str] = set()
    sends, early = 0, []
    for line in log.read_text(errors="replace").splitlines():
        call = _CALL.match(line)
        file = _FILE.search(line)
        match call and call[1]:
            case "fsync" | "fdatasync" if file:
                unsynced.discard(file[1])
            case "rename":
                unsynced.add(str(Path(line.split('"')[3]).parent))
            case "write" | "pwrite64" if file and file[1].startswith(("socket:", "UNIX")):
                sends += 1
                early += [f"{line} before {unsynced}"] if unsynced else []
            case "write" | "pwrite64" if file and not file[1].endswith("-shm"):
                unsynced.add(file[1])
    return sends, early


def points_of(log: Path) -> list[Point]:
    """Every place at which a run that was logged can be killed, in order."""
    counts: dict[str, int] = {}
    points = []
    for call in calls_of(log):
        counts[call] = counts.get(call, 0) + 1
        points.append(Point(call, counts[call]))
    return points


def random_points(count: int, *, within_ms: int, seed: int) -> list[Point]:
    """The fallback: moments instead of calls."""
    chosen = random.Random(seed)  # noqa: S311 - a schedule, not a secret
    return [Point(RANDOM_MOMENT, chosen.randrange(within_ms)) for _ in range(count)]


def _attach(process: int, log: Path, point: Point | None) -> subprocess.Popen[str]:
    """strace holding a process; raises RuntimeError if it may not."""
    inject = [] if point is None else ["-e", f"inject={point.call}:signal=KILL:when={point.count}"]
    tracer = subprocess.Popen(  # noqa: S603 - strace on a process of ours
        ["strace", "-f", "-y", "-o", str(log), "-e", f"trace={CALLS}", *inject, "-p", str(process)],  # noqa: S607
        stderr=subprocess.PIPE,
        text=True,
    )
    said = _open(tracer.stderr).readline()
    if "attached" not in said:
        tracer.kill()
        tracer.communicate()
        raise RuntimeError(f"strace cannot take hold of a process: {said}")
    return tracer


def _kill_if_there(process: int) -> None:
    with suppress(ProcessLookupError):  # it was done before its moment
        os.kill(process, signal.SIGKILL)


def _open(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@contextmanager
def nursery(sockets: Path) -> Iterator[Nursery]:
    made = Nursery(sockets)
    try:
        yield made
    finally:
        made.close()
