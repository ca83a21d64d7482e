"""What `dppp keys deal` says in both its forms, and its form for a federation."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from dppp.cli.optional_packages import require_service
from dppp.cli.terminal import emit
from dppp.errors import WeakModulusWarning

_DEALER_NOTE = "the dealer's process knew the whole key until it ended; run it where all trust it"


@contextmanager
def dealing() -> Iterator[list[str]]:
    """Collects what is to be said of the key dealt inside."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WeakModulusWarning)
        yield notes
    notes += [str(warning.message) for warning in caught]
    notes.append(_DEALER_NOTE)


def tell(notes: Iterable[str]) -> None:
    """Say the notes to people."""
    for note in notes:
        sys.stderr.write(f"dppp: note: {note}\n")


def deal_to_federation(folder: Path, out: Path, *, as_json: bool) -> None:
    """Run the ceremony on a coordinator's folder."""
    require_service()
    from dppp.service.ceremony.dealing import deal_federation  # noqa: PLC0415
    from dppp.service.ceremony.home import FEDERATION  # noqa: PLC0415

    with dealing() as notes:
        dealt = deal_federation(folder, out)
    federation = dealt.federation
    result = {
        "federation_hash": federation.hash.hex(),
        "federation_file": str(out / FEDERATION),
        "key_id": federation.public.key_id.hex(),
        "task_id": federation.task.task_id.hex(),
        "teachers": [
            {"index": index, "name": member.name, "share_file": name}
            for index, (member, name) in enumerate(
                zip(federation.teachers, dealt.share_files, strict=True), start=1
            )
        ],
        "warnings": notes,
    }

    def show(console: Console) -> None:
        lines = [f"federation file  {out / FEDERATION}   to everybody"]
        for member, name in zip(federation.teachers, dealt.share_files, strict=True):
            lines.append(f"          share  {out / name}   to {member.name} only")
        lines.append(f"federation hash  {federation.hash.hex()}")
        lines.append("\nEverybody compares the hash by telephone and gives it to `dppp setup`.")
        console.print("\n".join(lines), soft_wrap=True, markup=False)

    tell(() if as_json else notes)
    emit(result, as_json=as_json, show=show)
