"""`dppp simulate`: the whole federation on your own CSV, without writing Python."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dppp.cli.extras import require_scikit_learn
from dppp.cli.files import make_folder
from dppp.cli.output import JsonOption, emit
from dppp.cli.promise_options import ColludersOption, DropoutsOption
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.learning.csv_records import Records


def simulate(
    *,
    data: Annotated[Path, typer.Option(help="A CSV file with a header; features are numbers.")],
    label: Annotated[str, typer.Option(help="The column to predict.")],
    teachers: Annotated[int, typer.Option(help="Teachers to deal the records to.")] = 20,
    epsilon: Annotated[float, typer.Option(help="Total ε for all queries.")] = 8.0,
    delta: Annotated[float, typer.Option(help="Total δ for all queries.")] = 1e-5,
    queries: Annotated[int, typer.Option(help="Records to hold out and ask about.")] = 50,
    colluders: ColludersOption = None,
    dropouts: DropoutsOption = None,
    noise: Annotated[str, typer.Option(help="auto or one of the four families.")] = "auto",
    cryptography: Annotated[
        bool, typer.Option(help="--no-cryptography: the same noisy sums, protecting nobody.")
    ] = True,
    seed: Annotated[int, typer.Option(help="For the split and the models.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the private labels to this CSV.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Deal your records to teachers, hold some out, and ask about those privately."""
    require_scikit_learn()
    from dppp.learning.csv_records import read_records  # noqa: PLC0415
    from dppp.learning.trial import run_trial  # noqa: PLC0415

    records = read_records(data, label)
    if len(records.rows) < teachers + queries:
        raise InputError(
            f"{len(records.rows)} records are too few for {teachers} teachers and {queries} "
            "queries",
            hint="lower one of them",
        )
    result, predicted = run_trial(
        records,
        queries=queries,
        seed=seed,
        n_teachers=teachers,
        epsilon=epsilon,
        delta=delta,
        colluders=colluders,
        dropouts=dropouts,
        noise=noise,
        cryptography=cryptography,
    )
    if out is not None:
        _write_labels(out, records, predicted)
    emit(result, as_json=as_json, show=lambda console: _show(console, result))


def _write_labels(path: Path, records: "Records", predicted: "list[tuple[int, str]]") -> None:
    make_folder(path.parent)
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["record", "private_label", *records.features])
            for place, label in predicted:
                writer.writerow([place + 1, label, *records.rows[place]])
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _show(console: Console, result: dict[str, Any]) -> None:
    table = Table(title=f"Accuracy on {result['queries']} records that were held out")
    table.add_column("who answers")
    table.add_column("accuracy", justify="right")
    for name, text in (
        ("accuracy_private", "all teachers together, privately"),
        ("accuracy_plurality", "all teachers together, votes in the clear"),
        ("accuracy_single", "one teacher alone, on average"),
        ("accuracy_centralised", "one model on everybody's records"),
    ):
        table.add_row(text, f"{100 * result[name]:.1f} %")
    console.print(table)
    console.print(
        f"{result['noise']} noise, variance {result['variance']:.4g}; ε = "
        f"{result['epsilon_spent']:.3g} of {result['epsilon']:g} spent at δ = {result['delta']:g}."
    )
    if result["simulated"]:
        console.print("[bold red]Simulated:[/] nothing was encrypted; this protected nobody.")
