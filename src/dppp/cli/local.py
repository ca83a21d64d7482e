"""`dppp local`: a real federation of processes on this machine, for trying."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dppp.cli.optional_packages import require_scikit_learn, require_service
from dppp.cli.options import ColludersOption, DropoutsOption, JsonOption, split_names
from dppp.cli.terminal import emit
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.learning.csv_records import Records
    from dppp.service.ceremony.terms import Terms
    from dppp.service.local.federation import LocalFederation

app = typer.Typer(help="Try a whole federation on this machine, with a real broker.")

FolderOption = Annotated[Path, typer.Option(help="Where its keys, ledgers and logs are.")]
DEFAULT_FOLDER = Path("dppp-local")
_READY_SECONDS = 300


@app.command()
def up(
    *,
    teachers: Annotated[int, typer.Option(help="How many teacher processes.", min=2)] = 20,
    folder: FolderOption = DEFAULT_FOLDER,
    data: Annotated[
        Path | None, typer.Option(help="A CSV file (default: Breast Cancer, of scikit-learn).")
    ] = None,
    label: Annotated[
        str,
        typer.Option(
            help="The column of the CSV file to predict: classes, or numbers with --low and "
            "--high. With --max-labels the columns a,b,c of 0 and 1."
        ),
    ] = "label",
    max_labels: Annotated[
        int | None, typer.Option(help="The question is of labels: at most so many in a vote.")
    ] = None,
    low: Annotated[
        float | None, typer.Option(help="The question is a number, at least this.")
    ] = None,
    high: Annotated[float | None, typer.Option(help="A number: at most this.")] = None,
    levels: Annotated[
        int | None, typer.Option(help="A number: steps from --low to --high. (default: 100)")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Total ε for all queries.")] = 8.0,
    delta: Annotated[float, typer.Option(help="Total δ for all queries.")] = 1e-5,
    queries: Annotated[int, typer.Option(help="Queries that the total covers.")] = 100,
    colluders: ColludersOption = None,
    dropouts: DropoutsOption = None,
    cryptosystem: Annotated[
        str, typer.Option(help="How ballots are sealed: masks or paillier.")
    ] = "masks",
    s: Annotated[
        int | None,
        typer.Option(
            help="Paillier: Damgard-Jurik's s; more counts fit one ciphertext, 4 for large "
            "batches. (default: 1)"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Start broker, aggregator and teachers. With the same folder, the same federation starts."""
    require_service()
    from dppp.service.ceremony.terms import feature_of, make_terms  # noqa: PLC0415
    from dppp.service.local.federation import (  # noqa: PLC0415
        PLACES,
        cryptosystem_of,
        read_local,
    )
    from dppp.service.local.processes import start_all, wait_until_ready  # noqa: PLC0415

    progress = Console(stderr=True)
    if (folder / PLACES).exists():
        local = read_local(folder)
    else:
        is_number = any(each is not None for each in (low, high, levels))
        labels = label if max_labels is None else split_names(label)
        records = _records(data, labels, is_number=is_number)
        terms = make_terms(
            name="local",
            data_id="local",
            class_names=_names(records, labels, is_number=is_number),
            max_labels=max_labels,
            low=low,
            high=high,
            levels=levels,
            features=tuple(map(feature_of, records.columns)) or records.features,
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            colluders=colluders,
            dropouts=dropouts,
            cryptosystem=cryptosystem,
            s=1 if s is None and cryptosystem == "paillier" else s,
        )
        local = _make(folder, records, terms, teachers, progress)
    with progress.status(f"starting a broker, an aggregator and {local.teachers} teachers"):
        processes = start_all(local)
        wait_until_ready(local, local.teachers, _READY_SECONDS)
    result = {
        "folder": str(folder),
        "gateway": local.gateway,
        "token_file": str(local.token_file),
        "rows_to_ask": str(folder / "ask.csv"),
        "teachers": local.teachers,
        "cryptosystem": cryptosystem_of(local),
        "processes": {each.name: each.pid for each in processes},
    }
    emit(result, as_json=as_json, show=lambda console: _show(console, local))


@app.command()
def down(*, folder: FolderOption = DEFAULT_FOLDER, as_json: JsonOption = False) -> None:
    """Stop all processes. Keys, ledgers and releases stay; `up` goes on with them."""
    require_service()
    from dppp.service.local.federation import read_local  # noqa: PLC0415
    from dppp.service.local.processes import stop_all  # noqa: PLC0415

    read_local(folder)
    stopped = stop_all(folder)
    emit(
        {"stopped": stopped},
        as_json=as_json,
        show=lambda console: console.print(f"{len(stopped)} processes stopped."),
    )


def _records(data: Path | None, label: str | tuple[str, ...], *, is_number: bool) -> "Records":
    require_scikit_learn()
    from dppp.learning.csv_records import read_records  # noqa: PLC0415
    from dppp.learning.examples.local_models import breast_cancer  # noqa: PLC0415

    if data is not None:
        return read_records(data, label, is_number=is_number)
    if is_number or not isinstance(label, str):
        raise InputError(
            "Breast Cancer has classes, and no labels or numbers to ask for",
            hint="give --data and --label",
        )
    return breast_cancer()


def _names(records: "Records", label: str | tuple[str, ...], *, is_number: bool) -> tuple[str, ...]:
    """Of the task's counts: the number, the labels or the classes."""
    if not isinstance(label, str):
        return label
    return (label,) if is_number else tuple(sorted(set(records.labels.tolist())))


def _make(
    folder: Path, records: "Records", terms: "Terms", teachers: int, progress: Console
) -> "LocalFederation":
    from dppp.learning.examples.local_models import split_and_train, write_rows  # noqa: PLC0415
    from dppp.service.local.federation import make_local  # noqa: PLC0415
    from dppp.service.local.processes import find_nats_server, free_ports  # noqa: PLC0415

    find_nats_server()
    if folder.exists() and any(folder.iterdir()):
        raise InputError(
            f"{folder} is not empty and holds no local federation", hint="choose another folder"
        )
    broker_port, gateway_port = free_ports(2)
    with progress.status(f"training {teachers} models"):
        models, asked = split_and_train(records, teachers, kind=terms.question.kind)
    is_dealt = terms.cryptosystem == "paillier"
    with progress.status("key ceremony: a 2048-bit key of safe primes" if is_dealt else "ceremony"):
        local = make_local(
            folder,
            terms=terms,
            models=models,
            broker_port=broker_port,
            gateway_port=gateway_port,
        )
    write_rows(folder / "ask.csv", records, asked[: terms.queries])
    return local


def _show(console: Console, local: "LocalFederation") -> None:
    folder = local.folder
    console.print(
        f"{local.teachers} teachers are online. Ask about the records that were held out:\n\n"
        f"  dppp query --gateway {local.gateway} --token-file {local.token_file} "
        f"--input {folder / 'ask.csv'} --out {folder / 'labels.csv'}\n\n"
        f"The page is at {local.gateway}. Logs are in {folder / 'logs'}. Stop with: "
        f"dppp local down --folder {folder}",
        soft_wrap=True,
        markup=False,
    )
