"""A real PostgreSQL server, started by the tests that want one; one for each process of pytest.

It listens on a socket in its own folder only. PostgreSQL refuses to run as root, so root runs it as
another user. It stops with the tests, also when they are killed.
"""

import contextlib
import functools
import glob
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from tests.left_out import leave_out, need_program

PASSWORD = "hunter2"  # noqa: S105 - the server asks for none; the tests look where it appears
_numbers = itertools.count(1)


class PostgresServer:
    """A server with a data folder of its own."""

    def __init__(self) -> None:
        self._programs = _find_programs()
        self._user = _user()
        self._folder = Path(tempfile.mkdtemp(prefix="dppp-postgres-", dir="/tmp"))
        os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None
        initdb: list[str | Path] = [
            self._programs / "initdb",
            "-U",
            "dppp",
            "-A",
            "trust",
            "-N",
            "-k",
        ]
        self._run([*initdb, "-E", "UTF8", "--no-locale", "-D", self.data]).communicate()
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("listen_addresses = ''\nmax_connections = 40\nshared_buffers = 16MB\n")
            file.write(f"unix_socket_directories = '{self._folder}'\n")

    @property
    def data(self) -> Path:
        return self._folder / "data"

    def start(self, *settings: str) -> None:
        """Start, also after a crash, when the last remains of the old server are gone."""
        options = [word for setting in settings for word in ("-c", setting)]
        for _ in range(100):
            self._process = self._run([self._programs / "postgres", "-D", self.data, *options])
            if self._is_ready():
                return
            time.sleep(0.1)
        raise AssertionError((self._folder / "log").read_text())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends it in order, SIGQUIT at once, SIGKILL as a crash does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def fresh_url(self) -> str:
        """A place where nothing is yet."""
        return self.url(schema=f"test_{os.getpid()}_{next(_numbers)}")

    def url(self, *, schema: str, role: str = "dppp") -> str:
        return f"postgresql://{role}:{PASSWORD}@/postgres?host={self._folder}&schema={schema}"

    @contextlib.contextmanager
    def connect(self) -> Iterator[psycopg.Connection]:
        """As somebody who owns everything."""
        place = f"host={self._folder} user=dppp dbname=postgres"
        with contextlib.closing(psycopg.connect(place, autocommit=True)) as connection:
            yield connection

    def _is_ready(self) -> bool:
        assert self._process is not None
        while self._process.poll() is None:
            with contextlib.suppress(psycopg.OperationalError), self.connect():
                return True
            time.sleep(0.02)
        return False

    def _run(self, command: list[str | Path]) -> subprocess.Popen[bytes]:
        who = [f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}", "--clear-groups"]
        wrapped = ["setpriv", *(who if os.getuid() == 0 else []), "--pdeathsig=INT", *command]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own command
                wrapped, cwd=self._folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )


def _find_programs() -> Path:
    """The newest of PostgreSQL's folders; Debian's are not on the path."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=_version)
    found = shutil.which("initdb", path=os.pathsep.join([os.environ["PATH"], *folders[::-1]]))
    if found is None:
        leave_out("initdb is missing; install it with: apt-get install postgresql")
    need_program("setpriv", package="util-linux")
    return Path(found).resolve().parent


def _version(folder: str) -> float:
    return float(folder.split("/")[-2])


def _user() -> pwd.struct_passwd:
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid())
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


@functools.cache
def shared_server() -> PostgresServer:
    """The server of this process; tests/conftest.py removes it."""
    server = PostgresServer()
    server.start()
    return server


def remove_shared_server() -> None:
    if shared_server.cache_info().currsize:
        shared_server().remove()
