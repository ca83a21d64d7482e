"""The processes of a local federation: started, waited for, and stopped by their ids.

An id is used only while it is the process that was started: after a restart of the machine the
same number may be somebody else's. Used by `dppp local` and `dppp bench --deployment`.
"""

import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from dppp.errors import InputError, LocalFailure, message_of
from dppp.service.local.federation import LOCALHOST, LocalFederation

PROCESSES = "processes.json"
LOGS = "logs"
_STOP_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A process that was started, and when, by the kernel's clock."""

    name: str
    pid: int
    since: int

    def __post_init__(self) -> None:
        numbers = (self.pid, self.since)
        if any(type(each) is not int or each < 1 for each in numbers):  # kill(-1) ends everything
            raise InputError(
                f"no process has the id and the start time {numbers}", hint="remove the file"
            )

    @property
    def is_running(self) -> bool:
        """Whether it still is the process that was started."""
        return _start_time(self.pid) == self.since


def find_nats_server() -> str:
    """The path of nats-server, or a word on how to get it."""
    found = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin:/sbin")
    if found is None:
        raise InputError(
            "nats-server is missing",
            hint="install it with: apt-get install nats-server (or from nats.io)",
        )
    return found


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on now."""
    sockets = [socket.create_server((LOCALHOST, 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def commands_of(local: LocalFederation) -> dict[str, list[str]]:
    """What to start, by name, in this order."""
    dppp = [sys.executable, "-m", "dppp"]
    commands = {"broker": [find_nats_server(), "-c", str(local.broker_config)]}
    commands["aggregator"] = [*dppp, "aggregator", "run", "--config", str(local.aggregator_config)]
    for config in local.teacher_configs:
        commands[config.parent.name] = [*dppp, "teacher", "run", "--config", str(config)]
    return commands


def start_all(
    local: LocalFederation, commands: Mapping[str, Sequence[str]] | None = None
) -> list[Started]:
    """Start every process that is not running, and write down which they are.

    Without other commands, those of `commands_of`: a process for each party.
    """
    running = {each.name: each for each in read_processes(local.folder) if each.is_running}
    for name, command in (commands or commands_of(local)).items():
        if name not in running:
            running[name] = start_process(local.folder, name, command)
    processes = list(running.values())
    write_processes(local.folder, processes)
    return processes


def start_process(folder: Path, name: str, command: Sequence[str]) -> Started:
    """Start one process in a session of its own, with its log in the folder."""
    (folder / LOGS).mkdir(exist_ok=True)
    log = folder / LOGS / f"{name}.log"
    appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawn(  # not subprocess, which would want to see the end of it
        command[0],
        list(command),
        os.environ,
        setsid=True,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), appending, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    since = _start_time(pid)
    if since is None:
        raise LocalFailure(f"{name} ended at once", hint=f"read {log}")
    return Started(name=name, pid=pid, since=since)


def wait_until_ready(local: LocalFederation, teachers: int, timeout_seconds: float) -> None:
    """Wait for the gateway to see this number of teachers."""
    until = time.monotonic() + timeout_seconds
    seen: object = "nothing"
    while time.monotonic() < until:
        try:
            seen = httpx.get(f"{local.gateway}/health", timeout=5).json()
            if isinstance(seen, dict) and seen.get("teachers_online", 0) >= teachers:
                return
        except (httpx.HTTPError, ValueError) as error:
            seen = type(error).__name__
        _require_running(local)
        time.sleep(0.2)
    raise LocalFailure(
        f"not ready after {timeout_seconds:.0f} s (health: {seen})",
        hint=f"read {local.folder / LOGS}",
    )


def stop_all(folder: Path) -> list[str]:
    """Stop what runs, teachers first, gently and then for good; the names of what was stopped."""
    running = [each for each in reversed(read_processes(folder)) if each.is_running]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for each in running:
            if each.is_running:
                os.kill(each.pid, number)
        _wait_for_end(running)
    (folder / PROCESSES).unlink(missing_ok=True)
    return [each.name for each in running]


def read_processes(folder: Path) -> list[Started]:
    """What was started, whether or not it still runs."""
    try:
        plain = json.loads((folder / PROCESSES).read_text(encoding="utf-8"))
        return [Started(**each) for each in plain]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, InputError) as error:
        raise InputError(
            f"cannot read {folder / PROCESSES}: {message_of(error)}",
            hint="end the processes by hand, and remove it",
        ) from error


def write_processes(folder: Path, processes: Sequence[Started]) -> None:
    """Write down what was started."""
    plain = [{"name": each.name, "pid": each.pid, "since": each.since} for each in processes]
    (folder / PROCESSES).write_text(json.dumps(plain, indent=2), encoding="utf-8")


def _wait_for_end(processes: Sequence[Started]) -> None:
    until = time.monotonic() + _STOP_SECONDS
    while any(each.is_running for each in processes) and time.monotonic() < until:
        time.sleep(0.05)


def _require_running(local: LocalFederation) -> None:
    for each in read_processes(local.folder):
        if not each.is_running:
            log = local.folder / LOGS / f"{each.name}.log"
            last = _last_words(log.read_text(encoding="utf-8", errors="replace"))
            raise LocalFailure(f"{each.name} ended: {last}", hint=f"read {log}")


def _last_words(logged: str) -> str:
    """The last line of a log, and the one before if that is only the hint to it."""
    lines = logged.strip().splitlines()
    return "; ".join(lines[-2:] if lines and lines[-1].startswith("hint: ") else lines[-1:])


def _start_time(pid: int) -> int | None:
    """When a process started, in ticks since boot; None if it is gone, or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])
