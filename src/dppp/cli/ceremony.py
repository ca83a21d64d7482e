"""`dppp init`, `join`, `collect` and `setup`: from nothing to a federation.

In the order in which they are typed; under paillier `dppp keys deal` is between `collect` and
`setup`. The heavy imports are inside the commands, so that `dppp --help` answers at once.
"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dppp.cli.federation import votes_line
from dppp.cli.optional_packages import require_service
from dppp.cli.options import (
    ColludersOption,
    DeltaOption,
    DropoutsOption,
    EpsilonOption,
    JsonOption,
    MaxLabelsOption,
    QueriesOption,
    read_digits,
    read_votes,
)
from dppp.cli.output_files import require_folder_above
from dppp.cli.terminal import emit, say
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.service.ceremony.federation_file import FederationFile
    from dppp.service.ceremony.join_request import JoinRequest
    from dppp.service.ceremony.setup import SetUp
    from dppp.service.ceremony.terms import Feature
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
    data_id: Annotated[
        str, typer.Option(help="What the teachers call the data that their models learned from.")
    ],
    class_names: Annotated[
        list[str],
        typer.Option(
            "--class",
            help="A class to vote on; give one per class. With --max-labels a label, with --low "
            "and --high the name of the number.",
        ),
    ],
    epsilon: EpsilonOption,
    delta: DeltaOption,
    queries: QueriesOption,
    feature: Annotated[
        list[str] | None, typer.Option(help="A feature; give one per feature.")
    ] = None,
    features_from: Annotated[
        Path | None,
        typer.Option(
            help="A public table whose header names the features; where it has rows, they say what "
            "is a number, a category or a text, and what may be missing."
        ),
    ] = None,
    colluders: ColludersOption = None,
    dropouts: DropoutsOption = None,
    noise: Annotated[
        str,
        typer.Option(help="auto (least variance), binomial, discrete-gaussian, skellam or polya."),
    ] = "auto",
    cryptosystem: Annotated[
        str,
        typer.Option(
            help="How ballots are sealed: masks, which needs no dealer, or paillier, whose key "
            "somebody deals."
        ),
    ] = "masks",
    labels_per_batch: Annotated[
        int | None,
        typer.Option(help="Masks: queries asked at a time, for the ring. (default: all)"),
    ] = None,
    epoch_seconds: Annotated[
        int | None,
        typer.Option(help="Masks: how long teachers keep a sealing key. (default: a day)"),
    ] = None,
    modulus_bits: Annotated[
        int | None,
        typer.Option(help="Paillier: length of the key's modulus, 2048 or 3072. (default: 2048)"),
    ] = None,
    s: Annotated[
        int | None,
        typer.Option(help="Paillier: Damgard-Jurik's s, for more counts in one. (default: 4)"),
    ] = None,
    max_labels: MaxLabelsOption = None,
    label_share: Annotated[
        float | None,
        typer.Option(help="Labels: released from this share of the votes on. (default: 0.5)"),
    ] = None,
    low: Annotated[
        float | None,
        typer.Option(help="The question is a number, at least this; public, not from records."),
    ] = None,
    high: Annotated[float | None, typer.Option(help="A number: at most this.")] = None,
    levels: Annotated[
        int | None, typer.Option(help="A number: steps from --low to --high. (default: 100)")
    ] = None,
    abstain_below: Annotated[
        int | None, typer.Option(help="Give no label where the largest noisy count is below this.")
    ] = None,
    votes: Annotated[
        str,
        typer.Option(
            help="Votes of every teacher, each by a model of its own shard; or auto: by the noise, "
            "and by the records that each teacher says it has (`dppp join --records`)."
        ),
    ] = "1",
    votes_of: Annotated[
        list[str] | None,
        typer.Option(help="A teacher with another number of votes: NAME=NUMBER; may be repeated."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Whose change the promise covers: record, person or teacher. (default: teacher "
            "with one vote each, else record)"
        ),
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
        cryptosystem=cryptosystem,
        labels_per_batch=labels_per_batch,
        epoch_seconds=epoch_seconds,
        modulus_bits=modulus_bits,
        s=s,
        max_labels=max_labels,
        label_share=label_share,
        low=low,
        high=high,
        levels=levels,
        abstain_below=abstain_below,
        votes=read_votes(votes),
        votes_of=_votes_of(votes_of),
        unit=unit,
    )
    init_federation(folder, terms)
    result = {"folder": str(folder), **terms.model_dump(mode="json")}

    def show(console: Console) -> None:
        say(
            console,
            f"terms       {folder / 'terms.toml'}   to everybody",
            f"authority   {folder / 'authority.key'}   stays here, secret",
            "",
            "Every organisation runs `dppp join` on its own machine and sends its "
            "join-request.json.",
        )

    emit(result, as_json=as_json, show=show)


def _votes_of(given: list[str] | None) -> dict[str, int] | None:
    """Teachers with a number of votes of their own."""
    found = {}
    for each in given or ():
        name, _, number = each.rpartition("=")
        votes = read_digits(number)
        if not name or votes is None:
            raise InputError(
                f"{each[:80]!r} does not say how many votes a teacher has",
                hint="write --votes-of 'Clinic B=4'",
            )
        found[name] = votes
    return found or None


def join(
    *,
    home: Annotated[Path, typer.Argument(help="A new folder for the keys.", show_default=False)],
    name: Annotated[str, typer.Option(help="What the organisation is called.")],
    role: Annotated[RoleName, typer.Option(help="What the organisation does.")] = RoleName.TEACHER,
    host: Annotated[
        list[str] | None,
        typer.Option(help="Broker: a name or address where it is reached; may be repeated."),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            help="Teacher: how many records it has, for votes by size. Everybody sees it: round "
            "it down if it should not be known exactly."
        ),
    ] = None,
    together_with: Annotated[
        list[Path] | None,
        typer.Option(
            help="Another home of this organisation, which joined in another role: pack both "
            "requests into one file; may be repeated."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Every organisation: make its keys, which never leave it, and a request to join."""
    require_service()
    from dppp.service.ceremony.home import REQUEST, Home, make_home  # noqa: PLC0415
    from dppp.service.ceremony.identity import Role  # noqa: PLC0415
    from dppp.service.ceremony.parcel import PARCEL, write_parcel  # noqa: PLC0415
    from dppp.service.stores.new_files import PUBLIC, NewFile, write_new_files  # noqa: PLC0415

    others = [Home(folder=each).request() for each in together_with or ()]
    request = make_home(home, name=name, role=Role(role.value), hosts=host or (), records=records)
    if others:
        packed = write_parcel([*others, request])
        write_new_files(home, [NewFile(name=PARCEL, data=packed, mode=PUBLIC)])
    to_send = home / (PARCEL if others else REQUEST)
    result = {
        "home": str(home),
        "role": request.role.value,
        "name": request.name,
        "records": request.records,
        "request_file": str(to_send),
        "fingerprint": request.fingerprint,
    }

    def show(console: Console) -> None:
        say(
            console,
            f"request      {to_send}   to the coordinator",
            *(
                f"fingerprint  {each.spoken_fingerprint}   {each.role.value}, {each.name}"
                for each in others
            ),
            f"fingerprint  {request.spoken_fingerprint}",
            "",
            "All other files stay here. The coordinator sees the same fingerprint: compare it by "
            "telephone.",
        )

    emit(result, as_json=as_json, show=show)


def collect(
    *,
    folder: Annotated[Path, typer.Argument(help="The coordinator's folder.", show_default=False)],
    requests: Annotated[
        list[Path] | None, typer.Argument(help="The join requests.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Masks: everybody has joined, and every fingerprint was compared; make "
            "federation.json in this folder."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Coordinator: check join requests and keep them; with --out, make the federation file."""
    require_service()
    if out is not None:
        require_folder_above(out)
    from dppp.service.ceremony.assembling import make_federation_file  # noqa: PLC0415
    from dppp.service.ceremony.coordinator import collect as keep  # noqa: PLC0415
    from dppp.service.ceremony.coordinator import read_requests, read_requests_of  # noqa: PLC0415
    from dppp.service.ceremony.terms import read_terms  # noqa: PLC0415

    if not requests and out is None:
        raise InputError("there is nothing to collect", hint="give join requests, or --out")
    keep(folder, [each for path in requests or () for each in read_requests_of(path)])
    joined, is_masked = read_requests(folder), read_terms(folder).cryptosystem == "masks"
    federation = None if out is None else make_federation_file(folder, out)
    rows = [
        {
            "role": each.role.value,
            "name": each.name,
            "fingerprint": each.fingerprint,
            "records": each.records,
        }
        for each in joined
    ]
    result: dict[str, object] = {"joined": rows}
    if federation is not None and out is not None:
        result |= _describe_made(federation, out)

    def show(console: Console) -> None:
        say(console, *_collected_lines(joined), "")
        if federation is not None and out is not None:
            say(console, *_made_lines(federation, out))
            return
        then = f"dppp collect {folder} --out FOLDER" if is_masked else "dppp keys deal"
        say(console, f"Compare each fingerprint by telephone. When all have joined: {then}")

    emit(result, as_json=as_json, show=show)


def _collected_lines(joined: "tuple[JoinRequest, ...]") -> list[str]:
    return [f"{each.spoken_fingerprint}  {each.role.value:<10}  {each.name}" for each in joined]


def _describe_made(federation: "FederationFile", out: Path) -> dict[str, object]:
    from dppp.service.ceremony.home import FEDERATION  # noqa: PLC0415

    return {
        "federation_hash": federation.hash.hex(),
        "federation_file": str(out / FEDERATION),
        "task_id": federation.task.task_id.hex(),
        "unit": federation.task.unit,
        "votes": list(federation.task.votes),
    }


def _made_lines(federation: "FederationFile", out: Path) -> list[str]:
    from dppp.service.ceremony.home import FEDERATION  # noqa: PLC0415

    return [
        f"federation file  {out / FEDERATION}   to everybody",
        f"federation hash  {federation.hash.hex()}",
        f"          votes  {votes_line(federation.task)}; the promise is for one "
        f"{federation.task.unit}",
        "",
        "Everybody compares the hash by telephone and gives it to `dppp setup`.",
    ]


def setup(
    *,
    home: Annotated[
        Path, typer.Argument(help="The home folder that `dppp join` made.", show_default=False)
    ],
    federation: Annotated[Path, typer.Option(help="The federation file that everybody got.")],
    share: Annotated[
        Path | None, typer.Option(help="Teacher under paillier: its share from the dealer.")
    ] = None,
    expected_hash: Annotated[
        str | None, typer.Option("--hash", help="The federation hash, as all members compared it.")
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(help="Where the broker is; may be repeated. (default: its hosts, port 4222)"),
    ] = None,
    listen: Annotated[
        str, typer.Option(help="Broker: the address and port to listen on.")
    ] = "0.0.0.0:4222",
    ledger: Annotated[
        Path | None,
        typer.Option(help="Teacher: the ledger. (default: one for this machine and user)"),
    ] = None,
    head: Annotated[
        Path | None, typer.Option(help="Teacher: the file that remembers the ledger's head.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Every organisation: check what it was sent, and add it to the home folder."""
    require_service()
    from dppp.service.ceremony.federation_file import read_federation, read_hash  # noqa: PLC0415
    from dppp.service.ceremony.home import Home  # noqa: PLC0415
    from dppp.service.ceremony.setup import set_up  # noqa: PLC0415
    from dppp.service.stores.new_files import read_file  # noqa: PLC0415

    if expected_hash is None:
        raise InputError(
            "there is no --hash to compare the federation file with",
            hint=(
                "give the federation hash, after you compared it with the others by telephone, "
                "not the one that came with the file"
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
        ledger=ledger_files(ledger, head),
    )
    result = {"home": str(home), "federation_hash": compared.hex(), **_describe_set_up(done)}
    emit(result, as_json=as_json, show=lambda console: say(console, *_set_up_lines(done)))


def _describe_set_up(done: "SetUp") -> dict[str, object]:
    return {
        "role": done.role.value,
        "name": done.name,
        "index": done.index,
        "checked": list(done.checked),
        "configuration": str(done.configuration),
        "certificate_valid_until": done.valid_until.isoformat(),
        "ledger": None if done.ledger is None else str(done.ledger.path),
        "head": None if done.ledger is None else str(done.ledger.head),
    }


def _set_up_lines(done: "SetUp") -> list[str]:
    return [
        *(f"checked: {check}" for check in done.checked),
        "",
        f"configuration  {done.configuration}   read it, and change what is yours",
        f"certificate    valid until {done.valid_until:%Y-%m-%d}",
        *_about_ledger(done),
    ]


def ledger_files(ledger: Path | None, head: Path | None) -> "LedgerFiles | None":
    """The ledger and its head as they were typed."""
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
    lines = [f"ledger         {done.ledger.path}", f"its head       {done.ledger.head}"]
    if done.ledger.is_on_one_disk:
        lines.append(
            "Both are on one disk, and whoever puts back an old copy of that disk puts back both: "
            "change head under [ledger] to a file on another disk."
        )
    lines.append("")
    accept = f"dppp teacher accept --config {done.configuration}"
    if done.ledger.path.exists():
        return [*lines, "This ledger is there already, and this task is charged to it:", accept]
    return [
        *lines,
        "There is no ledger there yet. If this data was used in another federation, set path and "
        "head under [ledger] to that ledger. If it never was:",
        f"{accept} --first-use-of-this-data",
    ]


def _features(names: list[str] | None, path: Path | None) -> "tuple[str | Feature, ...]":
    if bool(names) == (path is not None):
        raise InputError(
            "the features are named twice" if names else "the features are not named",
            hint="name them by --feature, repeated, or by --features-from FILE",
        )
    if path is None:
        return tuple(names or ())
    from dppp.learning.cells import understand  # noqa: PLC0415
    from dppp.learning.csv_table import read_table  # noqa: PLC0415
    from dppp.service.ceremony.terms import feature_of  # noqa: PLC0415

    table = read_table(path)
    found = understand(table, [name for name in table.columns if name])
    return tuple(feature_of(each.column) for each in found)
