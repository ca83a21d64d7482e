"""A browser as a person has it: nobody inspects it, so nothing is kept for an inspector."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.left_out import need_program
from tests.page.browsers import FLAGS


@contextmanager
def open_plainly(url: str) -> Iterator["PlainBrowser"]:
    """A page in a browser of its own, until the block ends."""
    program = need_program("chromium", package="chromium")
    with tempfile.TemporaryDirectory() as profile:
        process = subprocess.Popen(  # noqa: S603 - Debian's own
            [program, "--headless=new", *FLAGS, f"--user-data-dir={profile}", url],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield PlainBrowser(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class PlainBrowser:
    """Told from outside, by its processes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def page_bytes(self) -> int:
        """What the process that draws the page holds of memory: heap, pictures and all else."""
        return max(_resident_bytes(folder) for folder in self._drawing())

    def _drawing(self) -> list[Path]:
        """The folders in /proc of those that draw; an empty one in reserve is among them."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = os.getsid(int(folder.name)) == self._process.pid
                if is_ours and b"--type=renderer" in (folder / "cmdline").read_bytes():
                    found.append(folder)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended just now
        return found


def _resident_bytes(folder: Path) -> int:
    for line in (folder / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
