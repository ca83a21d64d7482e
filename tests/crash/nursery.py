"""Makes processes under test quickly: it has read everything, and forks one when asked.

Run as `python -m tests.crash.nursery`; says the id of its task when it is ready. Reads lines "role,
folder, socket" separated by tabs; answers with the process id at once and, when the process has
ended, with its wait status. A process that was made waits for the word "go" on its socket, so that
a tracer can take hold of it first.
"""

import ctypes
import os
import sys
import traceback
from multiprocessing.connection import Client
from pathlib import Path

from tests.crash.masked_setting import QUESTIONS, masked_setting
from tests.crash.roles import ROLES
from tests.crash.setting import crash_setting
from tests.small_federation import Setting

GO = b"go"
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, ctypes.c_ulong(-1)


def main() -> None:
    setting = crash_setting()
    assert setting.task.certificate.certified  # worked out here, once for all children
    for killed in QUESTIONS:
        assert masked_setting(killed).task.certificate.certified
    _say(setting.task.task_id.hex())
    for line in sys.stdin:
        role, folder, socket = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            _be(role, setting, Path(folder), socket)
        _say(str(child))
        _say(str(os.waitpid(child, 0)[1]))


def _be(role: str, setting: Setting, folder: Path, socket: str) -> None:
    """Never returns: whatever happens here, the fork must not go on as the nursery."""
    try:
        sys.stdin.close()
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)
        with Client(socket, family="AF_UNIX") as channel:
            assert channel.recv_bytes() == GO
            ROLES[role](setting, folder, channel)
    except BaseException:  # noqa: BLE001 - the status tells the conductor
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _say(word: str) -> None:
    print(word, flush=True)


if __name__ == "__main__":
    main()
