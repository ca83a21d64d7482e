"""`dppp simulate`: the whole federation on your own CSV, without writing Python."""

import csv
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dppp.cli.optional_packages import require_scikit_learn
from dppp.cli.options import (
    ColludersOption,
    DropoutsOption,
    JsonOption,
    read_votes,
    split_names,
)
from dppp.cli.output_files import require_place
from dppp.cli.terminal import emit, say_notes, steps_progress
from dppp.errors import InputError, NotWorthItWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dppp.learning.csv_records import Records


_MOST_HELD_OUT = 1_000
"""A fifth of the records is held out, up to this many, though fewer may be asked.

The verdict is on all of them: it costs nothing here, where all votes are in one process, and a
hundred records alone cannot tell 76 % from 82 %.
"""

_ROWS = (
    ("accuracy_expected", "all teachers together, privately, on average over the noise"),
    ("accuracy_plurality", "all teachers together, votes in the clear"),
    ("accuracy_majority", "nobody: always the majority class"),
    ("accuracy_local", "one teacher under local privacy, which adds all the noise itself"),
    ("accuracy_single", "one teacher alone, its own model, on average"),
    ("accuracy_single_worst", "the worst teacher alone"),
    ("accuracy_centralised", "one model on everybody's records"),
)


def simulate(
    *,
    data: Annotated[
        Path,
        typer.Option(
            help="A table with a header: CSV (comma, semicolon or tab), packed by gzip or not, or "
            "Parquet. Numbers, texts, dates, cells without a value."
        ),
    ],
    label: Annotated[str, typer.Option(help="The column to predict.")],
    teachers: Annotated[int, typer.Option(help="Teachers to deal the records to.", min=2)] = 20,
    epsilon: Annotated[float, typer.Option(help="Total ε for all queries.")] = 8.0,
    delta: Annotated[float, typer.Option(help="Total δ for all queries.")] = 1e-5,
    queries: Annotated[int, typer.Option(help="Records to hold out and ask about.", min=1)] = 50,
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
    votes: Annotated[
        str, typer.Option(help="Votes of every teacher, or auto: by noise and records.")
    ] = "auto",
    person: Annotated[
        str | None,
        typer.Option(
            help="The column that says whom a record is about: the promise covers all of a person, "
            "and nobody is both trained on and asked about."
        ),
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="Columns to leave out, by their names: a,b,c.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--columns", help="Columns to learn from, by their names. (default: all)"),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(help="The same seed gives the same split and models.", min=0, max=2**32 - 1),
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the private labels to this CSV.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Deal your records to teachers, hold some out, and ask about those privately."""
    require_scikit_learn()
    require_place(out)
    from dppp.learning.csv_records import read_records  # noqa: PLC0415

    records = read_records(
        data, label, person=person, drop=split_names(drop), only=split_names(only)
    )
    if not as_json:
        say_notes(records.notes)
    if len(records.labels) < teachers + queries:
        raise InputError(
            f"{len(records.labels)} records are too few for {teachers} teachers and {queries} "
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
        votes=read_votes(votes),
        unit="record" if person is None else "person",
    )
    if out is not None:
        _write_labels(out, records, predicted)
    emit(result, as_json=as_json, show=lambda console: _show(console, result))


def _run_trial(
    records: "Records", *, queries: int, seed: int, **parameters: Any
) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """Hold records out, train on the rest, ask about some; figures, and labels by record."""
    import numpy as np  # noqa: PLC0415

    from dppp.learning.default_model import default_model  # noqa: PLC0415
    from dppp.learning.estimator import PrivateVotingClassifier  # noqa: PLC0415
    from dppp.learning.frames import take  # noqa: PLC0415

    looked_at, kept = _hold_out(records, queries, parameters["n_teachers"], seed)
    asked = looked_at[:queries]
    private = PrivateVotingClassifier(queries=queries, random_state=seed, **parameters)
    persons = None if records.persons is None else records.persons[kept]
    shown = take(records.rows, looked_at)
    with steps_progress(4) as begin, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotWorthItWarning)  # the verdict below says more
        begin("training every teacher's models")
        private.fit(take(records.rows, kept), records.labels[kept], persons=persons)
        begin("asking privately")
        predicted = private.predict(take(records.rows, asked))
        begin("training one model on everybody's records")
        centralised = default_model(records.rows)
        centralised.fit(take(records.rows, kept), records.labels[kept])
        begin("comparing with less private ways")
        verdict = private.verdict(shown, records.labels[looked_at])
    certificate = private.certificate_
    result = {
        "records": len(records.labels),
        "notes": list(records.notes),
        "queries": queries,
        "held_out": len(looked_at),
        "accuracy_private": float(np.mean(predicted == records.labels[asked])),
        **verdict.to_json(),
        "accuracy_centralised": float(centralised.score(shown, records.labels[looked_at])),
        "epsilon_spent": private.privacy_spent_["epsilon"],
        "cryptosystem": private.cryptosystem,
        "simulated": certificate.is_simulated,
        **{
            name: certificate.to_json()[name]
            for name in (
                "noise",
                "variance",
                "epsilon",
                "delta",
                "teachers",
                "certified",
                "unit",
                "votes",
                "votes_reason",
            )
        },
    }
    return result, [(int(place), str(label)) for place, label in zip(asked, predicted, strict=True)]


def _hold_out(
    records: "Records", queries: int, teachers: int, seed: int
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Places of records to ask about, and of those to train on; no person is on both sides."""
    import numpy as np  # noqa: PLC0415
    from sklearn.utils import check_random_state  # noqa: PLC0415

    random = check_random_state(seed)
    wanted = max(queries, min(_MOST_HELD_OUT, len(records.labels) // 5))
    if records.persons is None:
        order = random.permutation(len(records.labels))
        return order[:wanted], order[wanted:]
    people, of_record, sizes = np.unique(records.persons, return_inverse=True, return_counts=True)
    shuffled = random.permutation(len(people))
    # As few persons as hold the records that are wanted.
    taken = shuffled[: int(np.searchsorted(np.cumsum(sizes[shuffled]), wanted)) + 1]
    if len(people) - len(taken) < teachers:
        raise InputError(
            f"the records are about {len(people)} persons, {len(taken)} of them are held out, and "
            f"the others are too few for {teachers} teachers",
            hint="lower --teachers or --queries, or leave --person out if records are independent",
        )
    is_held_out = np.isin(of_record, taken)
    return (
        random.permutation(np.flatnonzero(is_held_out)),
        random.permutation(np.flatnonzero(~is_held_out)),
    )


def _write_labels(path: Path, records: "Records", predicted: "list[tuple[int, str]]") -> None:
    from dppp.learning.frames import rows_as_lists  # noqa: PLC0415

    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["record", "private_label", *records.features])
            rows = rows_as_lists(records.rows, [place for place, _ in predicted])
            for (place, label), row in zip(predicted, rows, strict=True):
                writer.writerow([place + 1, label, *row])
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}", hint="choose another place"
        ) from error


def _show(console: Console, result: dict[str, Any]) -> None:
    """A private accuracy never stands alone."""
    table = Table(title=f"Right answers on {result['held_out']} records that were held out")
    table.add_column("who answers")
    table.add_column("right", justify="right")
    for name, text in _ROWS:
        table.add_row(text, f"{100 * result[name]:.1f} %")
    console.print(table)
    console.print(
        f"The {result['queries']} that were asked privately: "
        f"{100 * result['accuracy_private']:.1f} % right. Noise alone moves that by "
        f"± {200 * result['spread_noise']:.1f} points."
    )
    for sentence in result["verdict"]:
        console.print(sentence, markup=False)
    for each in result["advice"]:
        console.print(f"  {each['text']}", markup=False)
    console.print(
        f"{result['noise']} noise, variance {result['variance']:.4g}; ε = "
        f"{result['epsilon_spent']:.3g} of {result['epsilon']:g} spent at δ = {result['delta']:g}."
    )
    console.print(f"The promise is for one {result['unit']}. Votes: {result['votes_reason']}.")
    if result["simulated"]:
        console.print("[bold red]Simulated:[/] nothing was encrypted; this protected nobody.")
