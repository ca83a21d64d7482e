"""`dppp init`, `join`, `collect`, `setup` and `federation`: from nothing to a federation.

In the order in which they are typed; between `collect` and `setup` is `dppp keys deal`. The heavy
imports are inside the commands, so that `dppp --help` answers at once.
"""

import csv
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dppp.cli.extras import require_service
from dppp.cli.federation_tables import describe_federation, show_federation
from dppp.cli.output import JsonOption, emit
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.service.ceremony.setup import SetUp
    from dppp.service.stores.locations import LedgerFiles


class RoleName(StrEnum):
    """The roles of `dppp join`; the same names as in the service, without loading it."""

    TEACHER = "teacher"
    AGGREGATOR = "aggregator"
    BROKER = "broker"


def init(
    *,
    folder: Annotated[Path, typer.Argument(help="The coordinator's folder.", show_default=False)],
    name: Annotated[str, typer.Option(help="What the federation is called.")],
    data_id: Annotated[str, typer.Option(help="What the teachers call the data asked about.")],
    class_names: Annotated[
        list[str], typer.Option("--class", help="A class to vote on; repeat it.")
    ],
    epsilon: Annotated[float, typer.Option(help="Total ε, greater than 0.")],
    delta: Annotated[float, typer.Option(help="Total δ, between 0 and 1.")],
    queries: Annotated[int, typer.Option(help="Queries that the total covers.")],
    feature: Annotated[list[str] | None, typer.Option(help="A feature; repeat it.")] = None,
    features_from: Annotated[
        Path | None, typer.Option(help="A CSV file whose header names the features.")
    ] = None,
    colluders: Annotated[
        int | None,
        typer.Option(help="Teachers who may collude. (default: teachers // 5, at least 1)"),
    ] = None,
    dropouts: Annotated[
        int | None, typer.Option(help="Teachers who may vanish. (default: teachers // 10)")
    ] = None,
    noise: Annotated[
        str, typer.Option(help="auto (least variance) or one of the four families.")
    ] = "auto",
    modulus_bits: Annotated[int, typer.Option(help="2048 or 3072.")] = 2048,
    s: Annotated[int, typer.Option(help="Damgard-Jurik's s.")] = 4,
    abstain_below: Annotated[
        int | None, typer.Option(help="Give no label below so many votes.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Coordinator: propose the terms of a federation, and make its certificate authority."""
    require_service()
    from dppp.service.ceremony.coordinator import init_federation  # noqa: PLC0415
    from dppp.service.ceremony.terms import make_terms  # noqa: PLC0415

    terms = make_terms(
        name=name,
        data_id=data_id,
        class_names=tuple(class_names),
        features=_features(feature, features_from),
        epsilon=epsilon,
        delta=delta,
        queries=queries,
        colluders=colluders,
        dropouts=dropouts,
        noise=noise,
        modulus_bits=modulus_bits,
        s=s,
        abstain_below=abstain_below,
    )
    init_federation(folder, terms)
    result = {"folder": str(folder), **terms.model_dump(mode="json")}

    def show(console: Console) -> None:
        _say(
            console,
            f"terms       {folder / 'terms.toml'}   to everybody",
            f"authority   {folder / 'authority.key'}   stays here, secret",
            "",
            "Every organisation runs `dppp join` on its own machine and sends its "
            "join-request.json.",
        )

    emit(result, as_json=as_json, show=show)


def join(
    *,
    home: Annotated[Path, typer.Argument(help="A new folder for the keys.", show_default=False)],
    name: Annotated[str, typer.Option(help="What the organisation is called.")],
    role: Annotated[RoleName, typer.Option(help="What it is.")] = RoleName.TEACHER,
    host: Annotated[
        list[str] | None,
        typer.Option(help="Broker: a name or address by which it is reached; repeat it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Every organisation: make the own keys, which stay at home, and a request to join."""
    require_service()
    from dppp.service.ceremony.home import REQUEST, make_home  # noqa: PLC0415
    from dppp.service.ceremony.identity import Role  # noqa: PLC0415

    request = make_home(home, name=name, role=Role(role.value), hosts=host or ())
    result = {
        "home": str(home),
        "role": request.role.value,
        "name": request.name,
        "request_file": str(home / REQUEST),
        "fingerprint": request.fingerprint,
    }

    def show(console: Console) -> None:
        _say(
            console,
            f"request      {home / REQUEST}   to the coordinator",
            f"fingerprint  {request.spoken_fingerprint}",
            "",
            "All other files stay here. The coordinator sees the same fingerprint: compare it by "
            "telephone.",
        )

    emit(result, as_json=as_json, show=show)


def collect(
    *,
    folder: Annotated[Path, typer.Argument(help="The coordinator's folder.", show_default=False)],
    requests: Annotated[list[Path], typer.Argument(help="Join requests.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Coordinator: check join requests and keep them."""
    require_service()
    from dppp.service.ceremony.coordinator import collect as keep  # noqa: PLC0415
    from dppp.service.ceremony.coordinator import read_request, read_requests  # noqa: PLC0415

    keep(folder, [read_request(path) for path in requests])
    joined = read_requests(folder)
    rows = [
        {"role": each.role.value, "name": each.name, "fingerprint": each.fingerprint}
        for each in joined
    ]

    def show(console: Console) -> None:
        lines = [
            f"{each.spoken_fingerprint}  {each.role.value:<10}  {each.name}" for each in joined
        ]
        _say(console, *lines, "", "Compare each fingerprint by telephone before you deal the key.")

    emit({"joined": rows}, as_json=as_json, show=show)


def setup(
    *,
    home: Annotated[Path, typer.Argument(help="The folder of `dppp join`.", show_default=False)],
    federation: Annotated[Path, typer.Option(help="The federation file from the dealer.")],
    share: Annotated[Path | None, typer.Option(help="Teacher: the own sealed share.")] = None,
    expected_hash: Annotated[
        str | None, typer.Option("--hash", help="The federation hash that all compared.")
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(help="Where the broker is; repeat it. (default: its hosts, port 4222)"),
    ] = None,
    listen: Annotated[str, typer.Option(help="Broker: where to listen.")] = "0.0.0.0:4222",
    ledger: Annotated[
        Path | None,
        typer.Option(help="Teacher: the ledger. (default: the only one of this machine and user)"),
    ] = None,
    head: Annotated[
        Path | None, typer.Option(help="Teacher: the file that remembers the ledger's head.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Every organisation: check what the dealer sent, and take it into the home."""
    require_service()
    from dppp.service.ceremony.federation_file import read_federation, read_hash  # noqa: PLC0415
    from dppp.service.ceremony.home import Home  # noqa: PLC0415
    from dppp.service.ceremony.setup import set_up  # noqa: PLC0415
    from dppp.service.stores.new_files import read_file  # noqa: PLC0415

    if expected_hash is None:
        raise InputError(
            "there is no --hash to compare the federation file with",
            hint=(
                "give the federation hash, after you compared it with the dealer and the others "
                "by telephone, not the one that came with the file"
            ),
        )
    compared = read_hash(expected_hash)
    done = set_up(
        Home(folder=home),
        read_federation(federation, compared),
        compared,
        share=None if share is None else read_file(share),
        servers=server or (),
        listen=listen,
        ledger=_ledger_files(ledger, head),
    )
    result = {
        "home": str(home),
        "role": done.role.value,
        "name": done.name,
        "index": done.index,
        "federation_hash": compared.hex(),
        "checked": list(done.checked),
        "configuration": str(done.configuration),
        "certificate_valid_until": done.valid_until.isoformat(),
        "ledger": None if done.ledger is None else str(done.ledger.path),
        "head": None if done.ledger is None else str(done.ledger.head),
    }

    def show(console: Console) -> None:
        _say(
            console,
            *(f"checked: {check}" for check in done.checked),
            "",
            f"configuration  {done.configuration}   read it, and change what is yours",
            f"certificate    valid until {done.valid_until:%Y-%m-%d}",
            *_about_ledger(done),
        )

    emit(result, as_json=as_json, show=show)


def federation(
    file: Annotated[Path, typer.Argument(help="A federation file.", show_default=False)],
    *,
    as_json: JsonOption = False,
) -> None:
    """Anybody: what a federation file says, checked, its hash, and when certificates end."""
    require_service()
    from dppp.service.ceremony.federation_file import read_federation  # noqa: PLC0415
    from dppp.service.ceremony.home import TLS_CERTIFICATE, Home  # noqa: PLC0415

    found = read_federation(file, None)
    is_in_home = (file.parent / TLS_CERTIFICATE).exists()
    end = Home(folder=file.parent).tls_certificate().not_valid_after_utc if is_in_home else None
    result = describe_federation(found, end)
    emit(result, as_json=as_json, show=lambda console: show_federation(console, found, end))


def _ledger_files(ledger: Path | None, head: Path | None) -> "LedgerFiles | None":
    from dppp.service.stores.locations import LedgerFiles  # noqa: PLC0415

    if ledger is None and head is None:
        return None
    if ledger is None or head is None:
        raise InputError(
            "--ledger and --head go together: a head is that of one ledger", hint="give both"
        )
    return LedgerFiles(path=ledger.absolute(), head=head.absolute())


def _about_ledger(done: "SetUp") -> list[str]:
    """Where a teacher counts, and what it says to accept."""
    if done.ledger is None:
        return []
    lines = [f"ledger         {done.ledger.path}", f"its head       {done.ledger.head}", ""]
    accept = f"dppp teacher accept --config {done.configuration}"
    if done.ledger.path.exists():
        return [*lines, "This ledger is there already, and this task is charged to it:", accept]
    return [
        *lines,
        "There is no ledger there yet. If this data was used in another federation, set path and "
        "head under [ledger] to that ledger. If it never was:",
        f"{accept} --first-use-of-this-data",
    ]


def _features(names: list[str] | None, path: Path | None) -> tuple[str, ...]:
    if bool(names) == (path is not None):
        raise InputError(
            "the features are not named, or twice",
            hint="name them by --feature, repeated, or by --features-from FILE",
        )
    if path is None:
        return tuple(names or ())
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return tuple(name.strip() for name in next(csv.reader(file), []))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", hint="check the path") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file in UTF-8: {error}") from error


def _say(console: Console, *lines: str) -> None:
    console.print("\n".join(lines), soft_wrap=True, markup=False)
