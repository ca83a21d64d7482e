"""A disk that is full: for another process by strace, for this one by a limit on its files."""

import contextlib
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.left_out import need_program


@contextlib.contextmanager
def full_disk(pid: int, path: Path) -> Iterator[None]:
    """No write of this process to this file succeeds."""
    strace = need_program("strace", package="strace")
    calls = "pwrite64,pwritev,fallocate,write"
    command = [strace, "-p", str(pid), "-P", str(path), "-e", f"trace={calls}"]
    tracer = subprocess.Popen(  # noqa: S603 - our own command
        [*command, "-e", f"inject={calls}:error=ENOSPC"], stderr=subprocess.PIPE, text=True
    )
    assert tracer.stderr is not None
    while "attached" not in (line := tracer.stderr.readline()):
        assert line, "strace could not attach"
    yield
    tracer.terminate()
    tracer.communicate(timeout=60)


@contextlib.contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """A disk that is full: in a write-ahead log, that is noticed by a commit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
