"""A task from a file that somebody has: a federation file, a receipt or a transcript.

Read by the commands that tell or test what a task promises: `dppp card` and `dppp audit`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from dppp.cli.optional_packages import require_service

if TYPE_CHECKING:
    from dppp.protocol.task import Task
    from dppp.service.ceremony.card.facts import Names


def read_task(source: Path) -> "tuple[Task, Names | None]":
    """The task, and who runs what if the file says so."""
    require_service()
    from dppp.protocol.transcript import verify_release  # noqa: PLC0415
    from dppp.service.ceremony.card.facts import Names  # noqa: PLC0415
    from dppp.service.ceremony.federation_file import read_federation  # noqa: PLC0415
    from dppp.service.stores.new_files import read_file  # noqa: PLC0415

    data = read_file(source)
    if not data.lstrip().startswith(b"{"):
        return verify_release(data).task, None
    found = read_federation(source, None)
    names = Names(
        aggregator=found.aggregator.name, broker=found.broker.name, hosts=found.broker.hosts
    )
    return found.task, names
