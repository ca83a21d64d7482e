"""What processes use, from Linux' /proc: processor seconds and memory, of somebody else's too."""

import os
from collections.abc import Iterable
from pathlib import Path


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor seconds of these processes together since they started, all threads."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # in user mode and in the kernel
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int) -> float:
    """Memory of a process that is in RAM now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
