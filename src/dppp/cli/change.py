"""`dppp change`: members come, go, or get new keys, and the federation goes on.

In the order in which they are typed. The heavy imports are inside the commands.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dppp.cli.federation import show_federation
from dppp.cli.optional_packages import require_service
from dppp.cli.options import JsonOption
from dppp.cli.output_files import require_folder_above, write_bytes
from dppp.cli.terminal import emit, say
from dppp.errors import InputError, WrongTask

if TYPE_CHECKING:
    from dppp.service.ceremony.change import Change

app = typer.Typer(
    help="Add, remove or replace members, or give them new keys, on what is left of the budget."
)

HomeArgument = Annotated[
    Path, typer.Argument(help="The home in which the old task runs.", show_default=False)
]
ChangeArgument = Annotated[
    Path, typer.Argument(help="The change that the coordinator sent.", show_default=False)
]
HashOption = Annotated[
    str, typer.Option("--hash", help="The new federation hash, as all members compared it.")
]


@app.command()
def rotate(
    home: HomeArgument,
    *,
    out: Annotated[Path, typer.Option(help="A new folder for the new keys.")],
    as_json: JsonOption = False,
) -> None:
    """A member: make new keys, and a request for them that the old key signs."""
    require_service()
    require_folder_above(out)
    from dppp.service.ceremony.change_letters import ROTATION  # noqa: PLC0415
    from dppp.service.ceremony.changing import rotate_keys  # noqa: PLC0415
    from dppp.service.ceremony.home import Home  # noqa: PLC0415

    made = rotate_keys(Home(folder=home), out).request
    result = {
        "home": str(out),
        "name": made.name,
        "request_file": str(out / ROTATION),
        "fingerprint": made.fingerprint,
    }

    def show(console: Console) -> None:
        say(
            console,
            f"request      {out / ROTATION}   to the coordinator",
            f"fingerprint  {made.spoken_fingerprint}",
            "",
            "The coordinator sees the same fingerprint: compare it by telephone.",
        )

    emit(result, as_json=as_json, show=show)


@app.command()
def propose(
    folder: Annotated[
        Path, typer.Argument(help="The coordinator's folder of the old task.", show_default=False)
    ],
    requests: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Requests of who comes (`dppp join`) or rotates its keys (`dppp change rotate`).",
            show_default=False,
        ),
    ] = None,
    *,
    federation: Annotated[Path, typer.Option(help="The old federation file.")],
    queries: Annotated[
        int, typer.Option(help="Queries of the new task: at most what every teacher has left.")
    ],
    remove: Annotated[
        list[str] | None, typer.Option(help="A member who goes; may be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="A new coordinator's folder for the new task.")],
    as_json: JsonOption = False,
) -> None:
    """Coordinator: propose a change of members, for the teachers of the old task to sign."""
    require_service()
    require_folder_above(out)
    from dppp.service.ceremony.change import CHANGE  # noqa: PLC0415
    from dppp.service.ceremony.change_letters import Rotation  # noqa: PLC0415
    from dppp.service.ceremony.coordinator import read_request  # noqa: PLC0415
    from dppp.service.ceremony.federation_file import read_federation  # noqa: PLC0415
    from dppp.service.ceremony.proposing import Wanted, propose_change  # noqa: PLC0415
    from dppp.service.stores.new_files import read_file  # noqa: PLC0415

    rotating = [path for path in requests or () if Rotation.is_in(read_file(path))]
    wanted = Wanted(
        requests=tuple(read_request(path) for path in requests or () if path not in rotating),
        rotations=tuple(Rotation.from_bytes(read_file(path)) for path in rotating),
        removed=tuple(remove or ()),
        queries=queries,
    )
    change = propose_change(folder, read_federation(federation, None), wanted, out)
    prints = [(each.spoken_fingerprint, each.name) for each in wanted.newcomers]
    result = {**_describe(change), "change_file": str(out / CHANGE)}

    def show(console: Console) -> None:
        say(
            console,
            *(f"{fingerprint}  {name}" for fingerprint, name in prints),
            *_lines(change),
            "",
            f"change  {out / CHANGE}   to everybody",
            "",
            "Compare each fingerprint by telephone, and the federation hash with everybody. The "
            "teachers of the old task then run `dppp change sign`.",
        )

    emit(result, as_json=as_json, show=show)


@app.command()
def show(
    file: ChangeArgument,
    *,
    task: Annotated[
        str | None,
        typer.Option(help="Querier: the id of the task that you know; the change must be signed."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Anybody: check a change; show who comes and goes, and who signed it."""
    require_service()
    from dppp.service.ceremony.change import read_change  # noqa: PLC0415

    change = read_change(file)
    if task is not None:
        if change.old.task.task_id.hex() != task.lower():
            raise WrongTask(
                f"this change is of task {change.old.task.task_id.hex()}",
                hint="give the changes in between first, one after the other",
            )
        change.require_signed()

    def print_it(console: Console) -> None:
        show_federation(console, change.new, None)
        say(console, "", *_lines(change))

    emit(_describe(change), as_json=as_json, show=print_it)


@app.command()
def sign(
    home: HomeArgument,
    file: ChangeArgument,
    *,
    expected_hash: HashOption,
    out: Annotated[Path, typer.Option(help="The file for the consent.")] = Path("consent.json"),
    new_home: Annotated[
        Path | None, typer.Option(help="Your new home, if you asked for new keys.")
    ] = None,
    replaced: Annotated[
        list[str] | None,
        typer.Option(
            help="One who gets keys that its old key did not sign, and with whom you have spoken; "
            "may be repeated."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """A teacher of the old task: consent to a change. Nothing is closed by that yet."""
    require_service()
    require_folder_above(out)
    from dppp.service.ceremony.change import read_change  # noqa: PLC0415
    from dppp.service.ceremony.changing import sign_change  # noqa: PLC0415
    from dppp.service.ceremony.federation_file import read_hash  # noqa: PLC0415
    from dppp.service.ceremony.home import Home  # noqa: PLC0415

    change = read_change(file)
    consent = sign_change(
        Home(folder=home),
        change,
        read_hash(expected_hash),
        new_home=None if new_home is None else Home(folder=new_home),
        replaced=replaced or (),
    )
    write_bytes(out, consent.to_bytes())
    result = {**_describe(change), "consent_file": str(out), "signed_by": consent.signed.name}

    def show_it(console: Console) -> None:
        say(console, *_lines(change), "", f"consent  {out}   to the coordinator")

    emit(result, as_json=as_json, show=show_it)


@app.command()
def collect(
    folder: Annotated[
        Path, typer.Argument(help="The folder that `dppp change propose` made.", show_default=False)
    ],
    consents: Annotated[list[Path], typer.Argument(help="Consents.", show_default=False)],
    *,
    as_json: JsonOption = False,
) -> None:
    """Coordinator: put consents into the change; with enough of them it is good."""
    require_service()
    from dppp.service.ceremony.change import CHANGE  # noqa: PLC0415
    from dppp.service.ceremony.change_letters import Consent  # noqa: PLC0415
    from dppp.service.ceremony.proposing import collect_consents  # noqa: PLC0415
    from dppp.service.stores.new_files import read_file  # noqa: PLC0415

    change = collect_consents(folder, [Consent.from_bytes(read_file(each)) for each in consents])

    def show_it(console: Console) -> None:
        then = "to everybody" if change.is_signed else "not yet: it needs more signatures"
        say(console, *_lines(change), "", f"change  {folder / CHANGE}   {then}")

    result = {**_describe(change), "change_file": str(folder / CHANGE)}
    emit(result, as_json=as_json, show=show_it)


@app.command()
def install(
    home: Annotated[Path, typer.Argument(help="The home for the new task.", show_default=False)],
    file: ChangeArgument,
    *,
    expected_hash: HashOption,
    old_home: Annotated[
        Path | None,
        typer.Option(help="Your home of the old task: keys and configuration come from there."),
    ] = None,
    server: Annotated[
        list[str] | None, typer.Option(help="Newcomer: where the broker is; may be repeated.")
    ] = None,
    listen: Annotated[
        str, typer.Option(help="Broker: the address and port to listen on.")
    ] = "0.0.0.0:4222",
    ledger: Annotated[Path | None, typer.Option(help="Newcomer: the ledger.")] = None,
    head: Annotated[
        Path | None, typer.Option(help="Newcomer: the file that remembers the ledger's head.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Everybody who is in it: set up a home for the new task, once the change is signed."""
    require_service()
    from dppp.cli.ceremony import ledger_files  # noqa: PLC0415
    from dppp.service.ceremony.change import read_change  # noqa: PLC0415
    from dppp.service.ceremony.changing import install_change  # noqa: PLC0415
    from dppp.service.ceremony.federation_file import read_hash  # noqa: PLC0415
    from dppp.service.ceremony.home import Home  # noqa: PLC0415

    if old_home is not None and (server or ledger or head):
        raise InputError(
            "--old-home brings its own configuration",
            hint="leave out --server, --ledger and --head, and change what is written afterwards",
        )
    change = read_change(file)
    done = install_change(
        Home(folder=home),
        change,
        read_hash(expected_hash),
        old_home=None if old_home is None else Home(folder=old_home),
        servers=server or (),
        listen=listen,
        ledger=ledger_files(ledger, head),
    )
    result = {
        **_describe(change),
        "home": str(home),
        "role": done.role.value,
        "index": done.index,
        "configuration": str(done.configuration),
        "certificate_valid_until": done.valid_until.isoformat(),
    }

    def show_it(console: Console) -> None:
        say(
            console,
            f"configuration  {done.configuration}   read it, and change what is yours",
            f"certificate    valid until {done.valid_until:%Y-%m-%d}",
        )
        if done.index is not None:
            say(
                console,
                "",
                *_accept_next(done.configuration, is_newcomer=old_home is None),
            )

    emit(result, as_json=as_json, show=show_it)


def _accept_next(configuration: Path, *, is_newcomer: bool) -> tuple[str, str]:
    """What a teacher does next, and what follows from it."""
    accept = f"dppp teacher accept --config {configuration}"
    if is_newcomer:
        return (
            f"{accept} --first-use-of-this-data",
            "That is your word that no ledger ever counted this data. If one did, leave it out, "
            "and set path and head under [ledger] to that ledger.",
        )
    return accept, "From then on this teacher answers nothing new in the old task."


def _describe(change: "Change") -> dict[str, object]:
    return {
        "federation_hash": change.new.hash.hex(),
        "task_id": change.new.task.task_id.hex(),
        "old_task_id": change.old.task.task_id.hex(),
        "queries": change.new.task.queries,
        "members": [{"name": name, "change": what.value} for name, what in change.movements()],
        "signed_by": [each.name for each in change.consents],
        "signatures_needed": change.old.task.trust.threshold,
        "is_signed": change.is_signed,
    }


def _lines(change: "Change") -> list[str]:
    trust = change.new.task.trust
    words = {"replaced": "REPLACED: its old key did not sign the new one; telephone it"}
    return [
        f"federation hash  {change.new.hash.hex()}",
        f"       old task  {change.old.task.task_id.hex()}",
        f"       new task  {change.new.task.task_id.hex()}",
        f"        queries  {change.new.task.queries:,}, on what is left of the old reservation",
        f"          trust  {trust.teachers} teachers, {trust.colluders} may collude, "
        f"{trust.dropouts} may vanish",
        *(f"{name:>15}  {words.get(what.value, what.value)}" for name, what in change.movements()),
        f"      signed by  {', '.join(each.name for each in change.consents) or 'nobody yet'} "
        f"({len(change.consents)} of the {change.old.task.trust.threshold} that it takes)",
    ]
