"""Hosts on one machine: a network namespace for each, joined by a switch in one more.

Nothing of it is in the machine's own network: names and addresses end with the namespaces. Needs
the right to make them (root), and `ip` and `tc`.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.left_out import leave_out

_NAMES = Path("/etc/netns")
"""Where `ip netns exec` finds a namespace's own /etc/hosts."""
_PREFIX = "dppp-test-"


class Network:
    """Hosts with a name and an address each, who find each other by these names."""

    def __init__(self, hosts: Mapping[str, Sequence[str]]) -> None:
        self._prefix = f"{_PREFIX}{os.getpid()}-"
        self._switch = f"{self._prefix}switch"
        self._started: list[subprocess.Popen[bytes]] = []
        self._ip("netns", "add", self._switch)
        self._in(self._switch, "link", "add", "switch", "type", "bridge")
        self._in(self._switch, "link", "set", "switch", "up")
        names = [
            f"10.99.0.{number} {' '.join(own)}" for number, own in enumerate(hosts.values(), 1)
        ]
        lines = "\n".join(["127.0.0.1 localhost", *names, ""])
        for number, host in enumerate(hosts, start=1):
            self._add(host, f"10.99.0.{number}/24", lines)

    def _add(self, host: str, address: str, names: str) -> None:
        namespace = self._prefix + host
        self._ip("netns", "add", namespace)
        line = (
            "link",
            "add",
            _port(host),
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            namespace,
        )
        self._in(self._switch, *line)
        self._in(self._switch, "link", "set", _port(host), "master", "switch", "up")
        self._in(namespace, "addr", "add", address, "dev", "eth0")
        for device in ("lo", "eth0"):
            self._in(namespace, "link", "set", device, "up")
        (_NAMES / namespace).mkdir(parents=True)
        (_NAMES / namespace / "hosts").write_text(names, encoding="utf-8")

    def make_slow(self, host: str, kilobits_per_second: int) -> None:
        """Both directions of a host's line."""
        for namespace, device in ((self._switch, _port(host)), (self._prefix + host, "eth0")):
            limit = (
                "tbf",
                "rate",
                f"{kilobits_per_second}kbit",
                "burst",
                "32kb",
                "latency",
                "400ms",
            )
            _run(["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", *limit])

    def on(self, host: str, *command: str) -> list[str]:
        """The command, at that host; it becomes the command's own process."""
        return ["ip", "netns", "exec", self._prefix + host, *command]

    def start(
        self, host: str, *command: str, folder: Path, log: Path, environment: Mapping[str, str]
    ) -> None:
        """Start a process at a host; it ends with the network."""
        with log.open("ab") as out:
            self._started.append(
                subprocess.Popen(  # noqa: S603 - our own command
                    self.on(host, *command), cwd=folder, env=environment, stdout=out, stderr=out
                )
            )

    def require_running(self) -> None:
        """Nobody has ended."""
        assert all(process.poll() is None for process in self._started), self._started

    def listening(self, host: str) -> list[str]:
        """The addresses on which something listens at a host, as the kernel writes them."""
        tables = _run(self.on(host, "cat", "/proc/net/tcp", "/proc/net/tcp6")).splitlines()
        return [fields[1] for fields in map(str.split, tables) if fields[3] == "0A"]

    def end(self) -> None:
        """Every process that was started here, and then every namespace."""
        for process in self._started:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=10)
        _remove(self._prefix)

    def _ip(self, *words: str) -> None:
        _run(["ip", *words])

    def _in(self, namespace: str, *words: str) -> None:
        _run(["ip", "-n", namespace, *words])


@contextlib.contextmanager
def network(hosts: Mapping[str, Sequence[str]]) -> Iterator[Network]:
    """Hosts, each with the names by which the others find it; or the test is left out."""
    for program in ("ip", "tc"):
        if shutil.which(program) is None:  # it calls others by their names: the path must have it
            leave_out(f"{program} is missing; install it with: apt-get install iproute2")
    _remove_those_of_the_dead()
    tried = f"{_PREFIX}{os.getpid()}-tried"
    try:
        _run(["ip", "netns", "add", tried])
    except subprocess.CalledProcessError as error:
        leave_out(f"no network namespace can be made here ({error.stderr.strip()})")
    _run(["ip", "netns", "del", tried])
    made = None
    try:
        made = Network(hosts)
        yield made
    finally:
        if made is None:
            _remove(f"{_PREFIX}{os.getpid()}-")
        else:
            made.end()


def _port(host: str) -> str:
    """The end of a host's line at the switch."""
    return f"to-{host}"


def _remove(prefix: str) -> None:
    for namespace in _namespaces():
        if namespace.startswith(prefix):
            _run(["ip", "netns", "del", namespace])
            shutil.rmtree(_NAMES / namespace, ignore_errors=True)


def _remove_those_of_the_dead() -> None:
    """Of runs that were killed: their namespaces would stay until the next start."""
    for namespace in _namespaces():
        pid = namespace.removeprefix(_PREFIX).partition("-")[0]
        if namespace.startswith(_PREFIX) and not Path("/proc", pid).exists():
            _remove(f"{_PREFIX}{pid}-")


def _namespaces() -> list[str]:
    return [line.split()[0] for line in _run(["ip", "netns", "list"]).splitlines()]


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(  # noqa: S603 - ip and tc
        command, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout
