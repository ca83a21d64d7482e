"""kill -9 at random moments and at every write, fsync and send: what was sent is in the ledger.

The process says what it sent after the ledger returned it. Afterwards the ledger opens with its
remembered head, the whole chain checks, everything that was said is found in it, and who asks again
gets the same.
"""

import hashlib
import random
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.left_out import need_program
from tests.privacy.ledger.ledgers import STORES
from tests.service.stores.ledger_files import LedgerFiles, make_files
from tests.service.stores.ledger_process import WITHDRAWER, answer, batch_id, find, list_hash

from dppp.errors import AnswerGiven, SecondList, Withdrawn
from dppp.privacy.ledger.ledger import Ledger
from dppp.service.stores.ledgers import open_ledger

OTHER_LIST = list_hash(-1)
RANDOM_KILLS = {"sqlite": 7, "postgres": 3}


def assert_nothing_was_lost(files: LedgerFiles, said: list[str]) -> None:
    with open_ledger(files.location, head_path=files.head_path) as ledger:
        assert ledger.check() == ledger.head
        for line in said:
            what, number, digest = line.split()
            stored = find(ledger, what, int(number))
            assert stored is not None
            assert hashlib.sha256(stored).hexdigest() == digest
            if what != "ballot":
                with pytest.raises(SecondList):
                    ledger.record_endorsement(batch_id(int(number)), OTHER_LIST, b"x")
            assert_other_end_is_refused(ledger, what, int(number))


def assert_other_end_is_refused(ledger: Ledger, what: str, number: int) -> None:
    """Who has answered never withdraws, and who has withdrawn never answers."""
    if what == "answer":
        with pytest.raises(AnswerGiven):
            ledger.record_withdrawal(batch_id(number), 1, b"never")
    if what == "withdrawal":
        with pytest.raises(Withdrawn):
            ledger.record_answer(batch_id(number), list_hash(number), b"x")


@pytest.mark.parametrize("kind", STORES[1:])
def test_kill_9_at_random_moments_loses_nothing_that_was_sent(kind: str, tmp_path: Path) -> None:
    files = make_files(tmp_path, kind=kind)
    moments = random.Random(20261115)  # noqa: S311 - a test's seed
    said: list[str] = []
    for run in range(RANDOM_KILLS[kind]):
        name = WITHDRAWER if run % 2 else "a"
        process = files.start(files.command(name=name, first=1000 * run, count=1000, size=20_000))
        assert process.stdout is not None
        heard = [process.stdout.readline().strip() for _ in range(moments.randrange(1, 40))]
        process.send_signal(signal.SIGKILL)
        rest, error = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, error
        said += heard + rest.split("\n")[:-1]
        assert_nothing_was_lost(files, said)


@pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "write", "fsync", "rename", "unlink"])
def test_kill_9_at_every_write_fsync_and_send_loses_nothing_that_was_sent(
    call: str, tmp_path: Path
) -> None:
    template = make_files(tmp_path / "template")
    calls = _count_calls(call, _copy(template, tmp_path / "counted"), tmp_path / "trace")
    assert calls >= 2
    for when in range(1, calls + 1):
        files = _copy(template, tmp_path / str(when))
        inject = f"inject={call}:signal=SIGKILL:when={when}"
        process = _trace(call, files, "-o", "/dev/null", "-e", inject)
        assert process.returncode == -signal.SIGKILL, process.stderr
        said = process.stdout.split("\n")[:-1]
        assert_nothing_was_lost(files, said)
        assert_repeats_are_the_same(files, said)


@pytest.mark.parametrize("call", ["sendto", "recvfrom"])
def test_kill_9_around_every_insert_and_commit_loses_nothing_that_was_sent(
    call: str, tmp_path: Path
) -> None:
    """In PostgreSQL: before the server hears of it, and before the client hears that it is done."""
    counted = make_files(tmp_path / "counted", kind="postgres")
    process = _trace(call, counted, "-s", "300", "-o", str(tmp_path / "trace"))
    assert process.returncode == 0, process.stderr
    talk = (tmp_path / "trace").read_text().splitlines()
    moments = [when for when, line in enumerate(talk, 1) if re.search(r"INSERT|COMMIT\\0", line)]
    assert len(moments) == 11
    for when in moments[2:]:  # the first two commits have read only
        files = make_files(tmp_path / str(when), kind="postgres")
        inject = f"inject={call}:signal=SIGKILL:when={when}"
        process = _trace(call, files, "-o", "/dev/null", "-e", inject)
        assert process.returncode == -signal.SIGKILL, process.stderr
        said = process.stdout.split("\n")[:-1]
        assert_nothing_was_lost(files, said)
        assert_repeats_are_the_same(files, said)


@pytest.mark.parametrize(
    "fault", ["fdatasync:error=EIO", "fsync:error=EIO", "pwrite64:error=ENOSPC"]
)
def test_a_disk_that_fails_or_fills_up_loses_nothing_that_was_sent(
    fault: str, tmp_path: Path
) -> None:
    call = fault.partition(":")[0]
    template = make_files(tmp_path / "template")
    calls = _count_calls(call, _copy(template, tmp_path / "counted"), tmp_path / "trace")
    refused = 0
    for when in range(1, calls + 1, 1 + calls // 12):
        files = _copy(template, tmp_path / str(when))
        inject = f"inject={fault}:when={when}+"
        process = _trace(call, files, "-o", "/dev/null", "-e", inject)
        refused += process.returncode
        assert process.returncode == ("LedgerUnavailable" in process.stderr), process.stderr
        said = process.stdout.splitlines()
        assert_nothing_was_lost(files, said)
        assert_repeats_are_the_same(files, said)
    assert refused >= 2


def test_everything_is_on_disk_before_it_is_sent(tmp_path: Path) -> None:
    """A kill keeps what the system has not yet written to disk; a power cut does not."""
    files, trace = make_files(tmp_path / "files"), tmp_path / "trace"
    calls = "write,pwrite64,fsync,fdatasync,rename"
    assert _trace(calls, files, "-y", "-o", str(trace)).returncode == 0
    sent = 0
    unsynced: set[str] = set()
    for line in trace.read_text().splitlines():
        call, target = re.match(r'(\w+)\((?:\d+<|")([^>"]*)', line).groups()  # type: ignore[union-attr]
        if line.startswith("write(1<"):
            assert not unsynced
            sent += 1
        elif call in ("fsync", "fdatasync"):
            unsynced.discard(target)
        elif not target.endswith("-shm"):  # made anew after a crash
            unsynced.add(str(Path(target).parent) if call == "rename" else target)
    assert sent == 3


def assert_repeats_are_the_same(files: LedgerFiles, said: list[str]) -> None:
    with open_ledger(files.location, head_path=files.head_path) as ledger:
        again = list(answer(ledger, 1, b"fresh noise"))
        assert again[: len(said)] == said
        assert ledger.summary().data[0].tasks[0].answered == 2


def _count_calls(call: str, files: LedgerFiles, trace: Path) -> int:
    process = _trace(call, files, "-o", str(trace))
    assert process.returncode == 0, process.stderr
    return len(trace.read_text().splitlines())


def _trace(call: str, files: LedgerFiles, *options: str) -> subprocess.CompletedProcess[str]:
    strace = need_program("strace", package="strace")
    command = files.command(name="a", first=1, count=1, size=5_000)
    return subprocess.run(  # noqa: S603 - our own command
        [strace, "-qq", "-e", f"trace={call}", *options, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _copy(template: LedgerFiles, folder: Path) -> LedgerFiles:
    assert isinstance(template.location, Path)
    shutil.copytree(template.location.parent, folder)
    head_path = folder / template.head_path.relative_to(template.location.parent)
    return LedgerFiles(location=folder / template.location.name, head_path=head_path)
