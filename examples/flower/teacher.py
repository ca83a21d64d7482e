"""A teacher that answers at a Unix socket instead of a broker: teacher.py TEACHER.TOML SOCKET."""

import sys
import time
from contextlib import suppress
from multiprocessing.connection import Listener
from pathlib import Path

from dppp.errors import DpppError
from dppp.protocol.teacher import Teacher
from dppp.service.process.config import TeacherConfig, read_config
from dppp.service.teacher.process import open_teacher

sys.path.insert(0, str(Path(__file__).parent / "app"))
from dppp_over_flower.line import receive_parcels, send_parcels


def answer(teacher: Teacher, message: bytes) -> bytes | None:
    now = int(time.time())
    try:
        return teacher.handle(message, now=now)
    except DpppError as refusal:
        print(f"refused: {refusal.one_line}", flush=True)
        return teacher.notice_of(message, refusal, now=now)


def main(config: str, socket: str) -> None:
    settings = read_config(Path(config), TeacherConfig)
    with open_teacher(settings) as ready, Listener(socket, "AF_UNIX") as listener:
        index = ready.teacher.index
        print(f"teacher {index} is listening", flush=True)
        while True:
            with suppress(OSError, EOFError, ValueError, KeyError), listener.accept() as line:
                messages = receive_parcels(line)[index]
                answers = [answer(ready.teacher, each) for each in messages]
                send_parcels(line, {index: [each for each in answers if each is not None]})


if __name__ == "__main__":
    main(*sys.argv[1:])
