"""A ledger of either kind with its head file, and processes that work on it."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.privacy.ledger.ledgers import DATA, PLENTY, TEACHER, new_location
from tests.service.stores import ledger_process

from dppp.privacy.ledger.agreement import AgreedTask, Agreement
from dppp.service.stores.ledgers import create_ledger, open_ledger
from dppp.service.stores.locations import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFiles:
    location: Location
    head_path: Path

    def command(self, *, name: str, first: int, count: int, size: int = 30_000) -> list[str]:
        numbers = [str(first), str(count), str(size)]
        script = str(Path(ledger_process.__file__))
        return [sys.executable, script, str(self.location), str(self.head_path), name, *numbers]

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - our own command
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


def make_files(
    folder: Path, *, kind: str = "sqlite", location: Location | None = None, queries: int = 5_000
) -> LedgerFiles:
    """A ledger with one accepted task of `queries` queries."""
    (folder / "other disk").mkdir(parents=True)
    location = location or new_location(kind, folder)
    files = LedgerFiles(location=location, head_path=folder / "other disk" / "head.json")
    create_ledger(files.location, teacher=TEACHER, head_path=files.head_path)
    task = AgreedTask(task_id=ledger_process.TASK, noise=PLENTY, queries=queries, classes=2)
    with open_ledger(files.location, head_path=files.head_path) as ledger:
        ledger.fix_cap(DATA, epsilon=100, delta=1e-3)
        ledger.accept(DATA, Agreement(tasks=(task,), epsilon=50, delta=1e-6))
    return files
