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
    ("expected", "all teachers together, privately, on average over the noise"),
    ("plurality", "all teachers together, votes in the clear"),
    ("majority", "nobody: always the majority class"),
    ("local", "one teacher under local privacy, which adds all the noise itself"),
    ("single", "one teacher alone, its own model, on average"),
    ("single_worst", "the worst teacher alone"),
    ("centralised", "one model on everybody's records"),
)
_ALWAYS = {
    "labels": "nobody: always the most usual labels",
    "number": "nobody: always the mean",
}
"""Instead of the majority class, where there is none."""


def simulate(
    *,
    data: Annotated[
        Path,
        typer.Option(
            help="A table with a header: CSV (comma, semicolon, tab or bar), packed by gzip or "
            "not, or Parquet. Numbers, texts, dates, cells without a value."
        ),
    ],
    label: Annotated[
        str,
        typer.Option(
            help="The column to predict: classes, or numbers with --low and --high. With "
            "--max-labels the columns a,b,c of 0 and 1, one for each label."
        ),
    ],
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
    max_labels: Annotated[
        int | None,
        typer.Option(help="The most labels of one vote, from public knowledge.", min=1),
    ] = None,
    label_share: Annotated[
        float | None,
        typer.Option(help="Part of the votes from which on a label is released. (default: 0.5)"),
    ] = None,
    low: Annotated[
        float | None,
        typer.Option(help="The least that the number can be, from public knowledge."),
    ] = None,
    high: Annotated[float | None, typer.Option(help="The most that it can be.")] = None,
    levels: Annotated[
        int | None, typer.Option(help="Even steps in that range. (default: 100)", min=1)
    ] = None,
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

    asked = _question(max_labels, label_share, low, high, levels)
    records = read_records(
        data,
        label if max_labels is None else split_names(label),
        is_number="low" in asked,
        person=person,
        drop=split_names(drop),
        only=split_names(only),
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
        **asked,
    )
    if out is not None:
        _write_labels(out, records, predicted)
    emit(result, as_json=as_json, show=lambda console: _show(console, result))


def _question(
    max_labels: int | None,
    label_share: float | None,
    low: float | None,
    high: float | None,
    levels: int | None,
) -> dict[str, Any]:
    """Parameters of the estimator for the kind of question that the options are of."""
    of_labels = {"max_labels": max_labels, "label_share": label_share}
    of_number = {"low": low, "high": high, "levels": levels}
    labels = {name: value for name, value in of_labels.items() if value is not None}
    number = {name: value for name, value in of_number.items() if value is not None}
    if labels and number:
        raise InputError(
            "the question is of several labels or of a number, not of both",
            hint="leave out --max-labels, or --low, --high and --levels",
        )
    if labels and max_labels is None:
        raise InputError("--label-share is for several labels", hint="give --max-labels too")
    if number and (low is None or high is None):
        raise InputError(
            "a number needs both ends of its range",
            hint="give --low and --high, from public knowledge and never from the records",
        )
    return {**labels, **number}


def _run_trial(
    records: "Records", *, queries: int, seed: int, **parameters: Any
) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """Hold records out, train on the rest, ask about some; figures, and answers by record."""
    from dppp.learning.default_model import default_model_for  # noqa: PLC0415
    from dppp.learning.frames import take  # noqa: PLC0415
    from dppp.learning.trials import compare_trial, make_private, name_answers  # noqa: PLC0415

    looked_at, kept = _hold_out(records, queries, parameters["n_teachers"], seed)
    asked = looked_at[:queries]
    private, kind = make_private(queries=queries, random_state=seed, **parameters)
    persons = None if records.persons is None else records.persons[kept]
    shown = take(records.rows, looked_at)
    with steps_progress(4) as begin, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotWorthItWarning)  # the verdict below says more
        begin("training every teacher's models")
        private.fit(take(records.rows, kept), records.labels[kept], persons=persons)
        begin("asking privately")
        predicted = private.predict(take(records.rows, asked))
        begin("training one model on everybody's records")
        centralised = default_model_for(kind, records.rows)
        centralised.fit(take(records.rows, kept), records.labels[kept])
        begin("comparing with less private ways")
        verdict = private.verdict(shown, records.labels[looked_at])
        compared = compare_trial(
            kind,
            predicted,
            records.labels[asked],
            centralised=centralised.predict(shown),
            truth=records.labels[looked_at],
        )
    certificate = private.certificate_
    result = {
        "question": kind,
        "records": len(records.labels),
        "notes": list(records.notes),
        "queries": queries,
        "held_out": len(looked_at),
        **verdict.to_json(),
        **compared,
        **({"standard_error": private.standard_error_} if kind == "number" else {}),
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
    named = name_answers(kind, predicted, records.label_names)
    return result, [(int(place), text) for place, text in zip(asked, named, strict=True)]


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


def _add_rows(table: Table, kind: str, figures: list[str]) -> None:
    table.add_column("who answers")
    table.add_column("error" if kind == "number" else "right", justify="right")
    for (name, text), figure in zip(_ROWS, figures, strict=True):
        table.add_row(_ALWAYS.get(kind, text) if name == "majority" else text, figure)


def _show(console: Console, result: dict[str, Any]) -> None:
    """A private figure never stands alone."""
    held_out = f"{result['held_out']} records that were held out"
    if result["question"] == "number":
        table = Table(title=f"Errors on {held_out} (root mean square)")
        _add_rows(table, "number", [f"{result[f'error_{name}']:.4g}" for name, _ in _ROWS])
        last = (
            f"off by {result['error_private']:.4g} (R² {result['r2_private']:.2f}). Noise alone "
            f"moves 19 of 20 by less than {2 * result['standard_error']:.4g}."
        )
    else:
        of_labels = result["question"] == "labels"
        what = "Labels right (those released and true, of those either)" if of_labels else ""
        table = Table(title=f"{what or 'Right answers'} on {held_out}")
        shares = [f"{100 * result[f'accuracy_{name}']:.1f} %" for name, _ in _ROWS]
        _add_rows(table, result["question"], shares)
        last = f"{100 * result['accuracy_private']:.1f} % right"
        if of_labels:
            last += f", {100 * result['subset_accuracy_private']:.1f} % of the rows wholly"
        last += f". Noise alone moves that by ± {200 * result['spread_noise']:.1f} points."
    console.print(table)
    console.print(f"The {result['queries']} that were asked privately: {last}")
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
