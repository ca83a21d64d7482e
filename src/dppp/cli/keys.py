"""`dppp keys`: deal a federation's key, or look at a teacher's share; under paillier only.

`dppp keys deal` is the dealer's process: it makes the key, writes every share sealed to its
teacher, and ends. Nothing is ever overwritten.
"""

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dppp.cli.optional_packages import require_service
from dppp.cli.options import JsonOption
from dppp.cli.output_files import require_folder_above
from dppp.cli.terminal import emit, say
from dppp.errors import WeakModulusWarning

if TYPE_CHECKING:
    from dppp.service.ceremony.dealing import DealtFederation

app = typer.Typer(help="Under paillier: deal a federation's key, or look at a share of it.")

_DEALER_NOTE = "the dealer's process knew the whole key until it ended; run it where all trust it"


@app.command("deal")
def deal_key(
    *,
    federation: Annotated[
        Path,
        typer.Option(help="The coordinator's folder: its terms, and the requests of all members."),
    ],
    out: Annotated[Path, typer.Option(help="A folder for the files; made if missing.")],
    as_json: JsonOption = False,
) -> None:
    """Dealer: make federation.json, and a share for each teacher that only it can open."""
    require_service()
    require_folder_above(out)
    from dppp.service.ceremony.dealing import deal_federation  # noqa: PLC0415

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WeakModulusWarning)
        dealt = deal_federation(federation, out)
    notes = [*(str(warning.message) for warning in caught), _DEALER_NOTE]
    if not as_json:
        sys.stderr.writelines(f"dppp: note: {note}\n" for note in notes)
    result = _describe(dealt, out) | {"warnings": notes}
    emit(result, as_json=as_json, show=lambda console: say(console, *_lines(dealt, out)))


@app.command("inspect")
def inspect_share(
    file: Annotated[Path, typer.Argument(help="A share from `dppp keys deal`.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Anybody: which teacher a share is for, and in which task. It stays sealed."""
    from dppp.service.ceremony.share_envelope import read_envelope_header  # noqa: PLC0415
    from dppp.service.stores.new_files import read_file  # noqa: PLC0415

    task_id, index = read_envelope_header(read_file(file))
    result = {"kind": "share of a federation", "task_id": task_id.hex(), "index": index}
    lines = [f"{name:>8}  {value}" for name, value in result.items()]
    emit(result, as_json=as_json, show=lambda console: say(console, *lines))


def _describe(dealt: "DealtFederation", out: Path) -> dict[str, object]:
    from dppp.service.ceremony.home import FEDERATION  # noqa: PLC0415

    federation = dealt.federation
    assert federation.public is not None, "a dealt federation has a key"
    members = zip(federation.teachers, dealt.share_files, strict=True)
    return {
        "federation_hash": federation.hash.hex(),
        "federation_file": str(out / FEDERATION),
        "key_id": federation.public.key_id.hex(),
        "task_id": federation.task.task_id.hex(),
        "teachers": [
            {"index": index, "name": member.name, "share_file": name}
            for index, (member, name) in enumerate(members, start=1)
        ],
    }


def _lines(dealt: "DealtFederation", out: Path) -> list[str]:
    from dppp.service.ceremony.home import FEDERATION  # noqa: PLC0415

    members = zip(dealt.federation.teachers, dealt.share_files, strict=True)
    return [
        f"federation file  {out / FEDERATION}   to everybody",
        *(f"          share  {out / name}   to {member.name} only" for member, name in members),
        f"federation hash  {dealt.federation.hash.hex()}",
        "",
        "Everybody compares the hash by telephone and gives it to `dppp setup`.",
    ]
