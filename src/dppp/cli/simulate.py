"""`dppp simulate`: the whole federation on your own CSV, without writing Python."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dppp.cli.optional_packages import require_scikit_learn
from dppp.cli.options import ColludersOption, DropoutsOption, JsonOption
from dppp.cli.output_files import make_folder
from dppp.cli.terminal import emit
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
    noise: Annotated[
        str,
        typer.Option(help="auto (least variance), binomial, discrete-gaussian, skellam or polya."),
    ] = "auto",
    cryptosystem: Annotated[
        str, typer.Option(help="masks (no dealer) or paillier (the paper's).")
    ] = "masks",
    cryptography: Annotated[
        bool,
        typer.Option(
            help="Encrypt for real. Without it: the same noisy sums, which protect nobody."
        ),
    ] = True,
    seed: Annotated[int, typer.Option(help="The same seed gives the same split and models.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the private labels to this CSV.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Deal your records to teachers, hold some out, and ask about those privately."""
    require_scikit_learn()
    from dppp.learning.csv_records import read_records  # noqa: PLC0415

    records = read_records(data, label)
    if len(records.rows) < teachers + queries:
        raise InputError(
            f"{len(records.rows)} records are too few for {teachers} teachers and {queries} "
            "queries",
            hint="lower one of them",
        )
    result, predicted = _run_trial(
        records,
        queries=queries,
        seed=seed,
        n_teachers=teachers,
        epsilon=epsilon,
        delta=delta,
        colluders=colluders,
        dropouts=dropouts,
        noise=noise,
        cryptosystem=cryptosystem,
        cryptography=cryptography,
    )
    if out is not None:
        _write_labels(out, records, predicted)
    emit(result, as_json=as_json, show=lambda console: _show(console, result))


def _run_trial(
    records: "Records", *, queries: int, seed: int, **parameters: Any
) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """Hold out `queries` records, train on the rest, ask; the figures, and the labels by record."""
    import numpy as np  # noqa: PLC0415
    from sklearn.utils import check_random_state  # noqa: PLC0415

    from dppp.learning.estimator import PrivateVotingClassifier  # noqa: PLC0415
    from dppp.learning.examples.local_models import table_model  # noqa: PLC0415

    order = check_random_state(seed).permutation(len(records.rows))
    asked, kept = order[:queries], order[queries:]
    private = PrivateVotingClassifier(
        table_model(), queries=queries, random_state=seed, **parameters
    )
    private.fit(records.rows[kept], records.labels[kept])
    truth = records.labels[asked]
    predicted = private.predict(records.rows[asked])
    votes = np.array([teacher.predict(records.rows[asked]) for teacher in private.teachers_])
    tally = np.stack([(votes == name).sum(axis=0) for name in private.classes_])
    centralised = table_model().fit(records.rows[kept], records.labels[kept])
    certificate = private.certificate_
    result = {
        "records": len(records.rows),
        "queries": queries,
        "accuracy_private": float(np.mean(predicted == truth)),
        "accuracy_plurality": float(np.mean(private.classes_[tally.argmax(axis=0)] == truth)),
        "accuracy_single": float(np.mean(votes == truth)),
        "accuracy_centralised": float(centralised.score(records.rows[asked], truth)),
        "epsilon_spent": private.privacy_spent_["epsilon"],
        "cryptosystem": private.cryptosystem,
        "simulated": certificate.is_simulated,
        **{
            name: certificate.to_json()[name]
            for name in ("noise", "variance", "epsilon", "delta", "teachers", "certified")
        },
    }
    return result, [(int(place), str(label)) for place, label in zip(asked, predicted, strict=True)]


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
