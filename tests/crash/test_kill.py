"""Kill -9 at every write, fsync and send of a teacher and of an aggregator.

Whatever the moment, the process comes back on its files, the batch ends in a release or a named
abort, and: released never exceeds charged, one charge for each query, no teacher says two different
ballots, endorsements or answers for a batch, no answer comes before t endorsements, no two lists
are opened, the ledger's chain holds after every death.

CI takes a fixed sample of the places; DPPP_SOAK=1 takes every one, and a sample of pairs of places:
killed once at work and once more while coming back.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.crash.killing import (
    Nursery,
    Point,
    UnderTest,
    calls_of,
    has_strace,
    nursery,
    points_of,
    random_points,
    unsynced_sends,
)
from tests.crash.masked_runs import (
    run_with_masked_aggregator_killed,
    run_with_masked_teacher_killed,
)
from tests.crash.masked_setting import masked_setting
from tests.crash.roles import UNDER_TEST
from tests.crash.runs import run_with_aggregator_killed, run_with_teacher_killed
from tests.crash.setting import BATCHES, crash_setting
from tests.left_out import IS_SOAK, leave_out, need_program, only_in_soak

from dppp.privacy.ledger.ledger import Ledger
from dppp.protocol.receipt import Receipt
from dppp.protocol.transcript import Transcript
from dppp.service.stores.ledgers import create_ledger, open_ledger

PLACES_IN_CI = 24
PAIRS_IN_SOAK = 400
Say = Callable[[str, object], None]
RUNS: dict[str, Callable[[UnderTest], Sequence[object]]] = {
    "teacher": lambda role: run_with_teacher_killed(crash_setting(), role),
    "aggregator": lambda role: run_with_aggregator_killed(crash_setting(), role),
    "teacher under masks": lambda role: run_with_masked_teacher_killed(masked_setting(), role),
    "aggregator under masks": lambda role: run_with_masked_aggregator_killed(
        masked_setting("aggregator"), role
    ),
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Short, since the path of a socket may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dppp") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def made(folder: Path) -> Iterator[Nursery]:
    (folder / "sockets").mkdir()
    with nursery(folder / "sockets") as made:
        yield made


@pytest.fixture(scope="module")
def new_ledger(folder: Path) -> Path:
    """A ledger as its operator made it, before the first batch."""
    setting = crash_setting()
    return _make_ledger(folder / "new ledger", setting.name(UNDER_TEST), setting.accept)


@pytest.fixture(scope="module")
def new_masked_ledger(folder: Path) -> Path:
    setting = masked_setting()
    return _make_ledger(folder / "new masked ledger", setting.name(UNDER_TEST), setting.accept)


def _make_ledger(made: Path, name: str, accept: Callable[[Ledger], Ledger]) -> Path:
    made.mkdir()
    head_path = made / "head"
    create_ledger(made / "ledger", teacher=name, head_path=head_path)
    with open_ledger(made / "ledger", teacher=name, head_path=head_path) as ledger:
        accept(ledger)
    return made


class Sweep:
    """Runs of one role, each on fresh files."""

    def __init__(self, role: str, made: Nursery, files: Path, tmp_path: Path) -> None:
        self.role, self._made = role, made
        self._files, self._tmp_path, self._runs = files, tmp_path, 0

    def run(self, points: Sequence[Point] = (), *, log: Path | None = None) -> int:
        """How often the process was killed; asserts everything else."""
        self._runs += 1
        folder = self._tmp_path / f"run {self._runs}"
        shutil.copytree(self._files, folder)
        under_test = UnderTest(self._made, self.role, folder, points=list(points), log=log)
        try:
            outcomes = RUNS[self.role](under_test)
        finally:
            under_test.abandon()
        assert len(outcomes) == BATCHES
        for outcome in outcomes:  # nobody else failed, so a kill must not cost the release
            assert isinstance(outcome, Receipt | Transcript), outcome
        shutil.rmtree(folder)
        return under_test.kills


@pytest.fixture(params=RUNS)
def sweep(
    request: pytest.FixtureRequest,
    made: Nursery,
    new_ledger: Path,
    new_masked_ledger: Path,
    tmp_path: Path,
) -> Sweep:
    (tmp_path / "nothing").mkdir()
    files = {"teacher": new_ledger, "teacher under masks": new_masked_ledger}
    return Sweep(request.param, made, files.get(request.param, tmp_path / "nothing"), tmp_path)


def test_a_batch_survives_a_kill_at_any_write_sync_or_send(
    sweep: Sweep, tmp_path: Path, record_property: Say
) -> None:
    places = _places(sweep, tmp_path, record_property)
    chosen = places if IS_SOAK else _sample(places, PLACES_IN_CI)
    killed = 0
    for place in chosen:
        try:
            killed += sweep.run([place])
        except BaseException as error:
            error.add_note(f"killed at {place} of {sweep.role}")
            raise
    record_property("say", f"{sweep.role}: {killed} kills at {len(chosen)} of {len(places)} places")
    assert killed >= len(chosen) * (0.9 if has_strace() else 0.1)


@only_in_soak
def test_a_batch_survives_a_second_kill_while_coming_back(
    sweep: Sweep, tmp_path: Path, record_property: Say
) -> None:
    places = _places(sweep, tmp_path, record_property)
    for step in range(PAIRS_IN_SOAK):
        first = places[step * 7919 % len(places)]
        second = places[step * 104_729 % (len(places) // 2)]
        try:
            sweep.run([first, second])
        except BaseException as error:
            error.add_note(f"killed at {first} and then at {second} of {sweep.role}")
            raise


def test_what_is_written_is_synced_before_anything_is_sent(sweep: Sweep, tmp_path: Path) -> None:
    if not has_strace():
        need_program("strace", package="strace")
        leave_out("strace may not take hold of a process here; allow ptrace")
    sweep.run(log=tmp_path / "log")
    sends, early = unsynced_sends(tmp_path / "log")
    assert sends > 6 * BATCHES
    assert not early


def _places(sweep: Sweep, tmp_path: Path, record_property: Say) -> list[Point]:
    """Every place at which a run can be killed, found by a run that is not."""
    if not has_strace():
        record_property(
            "say",
            "*** strace cannot be used here: killed at RANDOM MOMENTS instead of at every write, "
            "fsync and send. This finds less; install strace and allow ptrace. ***",
        )
        started = time.monotonic()
        assert sweep.run() == 0
        within_ms = int(1000 * (time.monotonic() - started))
        return random_points(20 * PLACES_IN_CI, within_ms=within_ms, seed=4)
    assert sweep.run(log=tmp_path / "all calls") == 0
    assert {"pwrite64", "fdatasync", "write"} <= set(calls_of(tmp_path / "all calls"))
    return points_of(tmp_path / "all calls")


def _sample(places: Sequence[Point], size: int) -> list[Point]:
    """Evenly over the run, and the first and the last of every kind."""
    by_call: dict[str, list[Point]] = {}
    for place in places:
        by_call.setdefault(place.call, []).append(place)
    ends = {each for found in by_call.values() for each in (found[0], found[-1])}
    step = max(1, len(places) // size)
    return [each for each in places if each in ends or places.index(each) % step == 0]
