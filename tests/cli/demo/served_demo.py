"""`dppp demo --web` as it is typed, in a process of its own, with its address and token."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

COMMAND = (sys.executable, "-m", "dppp", "demo", "--web", "--no-browser")


@dataclass(frozen=True)
class ServedDemo:
    process: subprocess.Popen[str]
    address: str
    token: str

    @property
    def url(self) -> str:
        return f"{self.address}/#token={self.token}"


@contextmanager
def serve_demo(*options: str) -> Iterator[ServedDemo]:
    """The demo, until the block ends."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        (*COMMAND, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        found = next(
            filter(None, (re.search(r"(http://\S+)/#token=(\S+)", line) for line in lines))
        )
        yield ServedDemo(process, *found.groups())
    finally:
        process.kill()
        process.communicate()
