"""`dppp reproduce`: the paper's figures, tables and claims, and what others published, checked.

The heavy imports are inside the commands, so that `dppp --help` answers at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dppp.cli.optional_packages import load_pyplot
from dppp.cli.options import JsonOption
from dppp.cli.output_files import make_folder
from dppp.cli.terminal import counted_progress, emit, say
from dppp.errors import InputError, MissingExtraError
from dppp.whole_numbers import require_whole

if TYPE_CHECKING:
    from dppp.experiments.artefact import Artefact

app = typer.Typer(help="The paper's experiments (needs the extra `experiments`; MNIST also torch).")

# The experiments' own, again here since importing those takes seconds; a test compares them.
DATASETS = ("mnist", "nsl-kdd-20", "nsl-kdd-20-official-test", "breast-cancer")
SKEWED = ("mnist", "nsl-kdd-20")
SKEWED_BY = ("labels", "company")
COMPANY_DATASET = "nsl-kdd-20"
VOTED = ("nsl-kdd-20", "mnist")
REPETITIONS = 20
SEED = 1
TEACHERS = (20, 100, 250)
MODULUS_BITS = (1024, 2048)
SPLITS = 5

PATE_COLUMNS = (
    "dataset",
    "teachers",
    "asked",
    "answered",
    "σ",
    "δ",
    "ε published",
    "ε, all counts",
    "ε, selection",
    "ε, selection and answered",
    "ε, selection and all",
    "answers at ε published",
    "σ at ε published",
)
DRAFT_COLUMNS = (
    "ε",
    "δ",
    "counts",
    "s",
    "N by (7)",
    "its δ",
    "N enough",
    "ratio",
    "N by the quadratic",
    "its δ",
)

DatasetOption = Annotated[str, typer.Option(help=f"One of {', '.join(DATASETS)}.")]
OutOption = Annotated[Path, typer.Option(help="The folder for CSV, PNG and HTML.")]
RepetitionsOption = Annotated[int, typer.Option(help="Draws of the noise at every point.")]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same noise.", min=0)]
SplitsOption = Annotated[int, typer.Option(help="Ways to deal the records, each trained anew.")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="One split and 200 test records: a first look.")
]
EncryptionOption = Annotated[
    bool,
    typer.Option(
        "--encrypted/--no-encrypted", help="Also run points through the real protocol, 2048 bits."
    ),
]


@app.command("accuracy-epsilon")
def accuracy_epsilon(
    *,
    dataset: DatasetOption,
    out: OutOption,
    repetitions: RepetitionsOption = REPETITIONS,
    seed: SeedOption = SEED,
    encrypted: EncryptionOption = True,
    as_json: JsonOption = False,
) -> None:
    """Accuracy of every framework against ε, with δ = 1e-3 per query."""
    steps = _steps()
    _check(dataset, DATASETS, out, repetitions)
    with counted_progress(f"accuracy-epsilon {dataset}") as report:
        made = steps.reproduce_epsilon(
            dataset,
            out,
            repetitions=repetitions,
            seed=seed,
            with_encryption=encrypted,
            report=report,
        )
    _finish(made.to_json(), [made], as_json)


@app.command("accuracy-delta")
def accuracy_delta(
    *,
    dataset: DatasetOption,
    out: OutOption,
    repetitions: RepetitionsOption = REPETITIONS,
    seed: SeedOption = SEED,
    as_json: JsonOption = False,
) -> None:
    """Accuracy of every framework against δ, at ε = 0.05 (Breast Cancer 0.5) per query."""
    steps = _steps()
    _check(dataset, DATASETS, out, repetitions)
    with counted_progress(f"accuracy-delta {dataset}") as report:
        made = steps.reproduce_delta(
            dataset, out, repetitions=repetitions, seed=seed, report=report
        )
    _finish(made.to_json(), [made], as_json)


@app.command("overhead")
def overhead(
    *,
    out: OutOption,
    teachers: Annotated[
        list[int] | None,
        typer.Option(
            min=2, help=f"How many; may be repeated. (default: {', '.join(map(str, TEACHERS))})"
        ),
    ] = None,
    modulus_bits: Annotated[
        list[int] | None,
        typer.Option(
            help=f"Length; may be repeated. (default: {', '.join(map(str, MODULUS_BITS))})"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Time and bytes of a teacher and the aggregator, against N and the length of the key."""
    steps = _steps()
    _check(None, DATASETS, out, 1)
    with counted_progress("overhead") as report:
        made = steps.reproduce_overhead(
            out,
            teachers=teachers or TEACHERS,
            modulus_bits=modulus_bits or MODULUS_BITS,
            report=report,
        )
    _finish(made.to_json(), [made], as_json)


@app.command("skew")
def skew(
    *,
    out: OutOption,
    by: Annotated[
        str | None,
        typer.Option(
            help="labels (skewed classes) or company (sizes and clusters). (default: both)"
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="mnist or nsl-kdd-20; company is of the latter. (default: both)"),
    ] = None,
    repetitions: RepetitionsOption = REPETITIONS,
    splits: SplitsOption = SPLITS,
    seed: SeedOption = SEED,
    quick: QuickOption = False,
    as_json: JsonOption = False,
) -> None:
    """Accuracy when teachers hold unequal and unlike records, remedies, and each teacher alone."""
    steps = _steps()
    _check(dataset, SKEWED, out, repetitions)
    parts = _parts_of_skew(by, dataset, quick)
    require_whole("splits", splits)
    made = []
    if "labels" in parts:
        with counted_progress("skew") as report:
            made.append(
                steps.reproduce_skew(
                    (dataset,) if dataset else SKEWED,
                    out,
                    repetitions=repetitions,
                    seed=seed,
                    report=report,
                )
            )
    if "company" in parts:
        from dppp.experiments.several_votes.artefacts import reproduce_company  # noqa: PLC0415

        with counted_progress("company") as report:
            made.append(
                reproduce_company(
                    out, splits=1 if quick else splits, seed=seed, quick=quick, report=report
                )
            )
    _finish({"artefacts": [each.to_json() for each in made]}, made, as_json)


def _parts_of_skew(by: str | None, dataset: str | None, quick: bool) -> tuple[str, ...]:
    """Company is measured on one dataset; a quick run trains no ensemble of hundreds."""
    if by is not None and by not in SKEWED_BY:
        raise InputError(f"unknown skew {by!r}", hint=f"choose one of {', '.join(SKEWED_BY)}")
    if by == "labels" and quick:
        raise InputError(
            "label skew has no quick run: it trains ensembles of hundreds",
            hint="use --by company, or leave --quick out",
        )
    if by == "company" and dataset not in {None, COMPANY_DATASET}:
        raise InputError(
            f"company is not measured on {dataset}", hint=f"use --dataset {COMPANY_DATASET}"
        )
    parts = SKEWED_BY if by is None else (by,)
    if quick:
        parts = ("company",)
    if dataset not in {None, COMPANY_DATASET}:
        parts = ("labels",)
    return parts


@app.command("votes")
def votes(
    *,
    out: OutOption,
    dataset: Annotated[
        str | None, typer.Option(help="mnist or nsl-kdd-20. (default: both)")
    ] = None,
    splits: SplitsOption = SPLITS,
    seed: SeedOption = SEED,
    quick: QuickOption = False,
    as_json: JsonOption = False,
) -> None:
    """Accuracy against the number of votes per organisation."""
    _steps()
    _check(dataset, VOTED, out, 1)
    require_whole("splits", splits)
    from dppp.experiments.several_votes.artefacts import reproduce_votes  # noqa: PLC0415

    with counted_progress("votes") as report:
        made = reproduce_votes(
            (dataset,) if dataset else VOTED,
            out,
            splits=1 if quick else splits,
            seed=seed,
            quick=quick,
            report=report,
        )
    _finish(made.to_json(), [made], as_json)


@app.command("questions")
def questions(
    *,
    out: OutOption,
    seed: SeedOption = SEED,
    quick: Annotated[
        bool, typer.Option("--quick", help="A tenth of the records: a first look.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Several labels and numbers against ε, beside what one has without the federation."""
    _steps()
    _check(None, DATASETS, out, 1)
    from dppp.experiments.questions.artefacts import reproduce_questions  # noqa: PLC0415

    with counted_progress("questions") as report:
        made = reproduce_questions(out, seed=seed, quick=quick, report=report)
    _finish(made.to_json(), [made], as_json)


@app.command("pate")
def pate(*, as_json: JsonOption = False) -> None:
    """What PATE's published answers cost if nobody is trusted with the votes."""
    from dppp.experiments.published.pate import price_of_trust  # noqa: PLC0415

    rows = price_of_trust()

    def show(console: Console) -> None:
        table = Table(*PATE_COLUMNS, box=None)
        for row in rows:
            table.add_row(
                row.dataset,
                f"{row.teachers}",
                f"{row.asked}",
                _whole(row.answered) or "not found",
                f"{row.answer_sigma:g}",
                f"{row.delta:g}",
                _two_digits(row.published_epsilon),
                f"{row.all_counts_epsilon:.2f}",
                f"{row.selection_epsilon:.2f}",
                _two_digits(row.selection_and_answers_epsilon),
                f"{row.selection_and_all_answers_epsilon:.2f}",
                _whole(row.answers_at_published_epsilon),
                _whole(row.sigma_at_published_epsilon),
            )
        console.print(table)

    emit({"settings": [asdict(row) for row in rows]}, as_json=as_json, show=show)


@app.command("binomial-draft")
def binomial_draft(*, as_json: JsonOption = False) -> None:
    """Whether the expired Internet-Draft on binomial noise keeps what it promises."""
    from dppp.experiments.published.binomial_draft import check_draft  # noqa: PLC0415

    rows = check_draft()

    def show(console: Console) -> None:
        table = Table(*DRAFT_COLUMNS, box=None)
        for row in rows:
            printed = "no root" if row.printed_tosses is None else f"{row.printed_tosses:,}"
            table.add_row(
                f"{row.epsilon:g}",
                f"{row.delta:.2g}",
                f"{row.dimension}",
                f"{1 / row.steps:g}",
                f"{row.formula_tosses:,}",
                _small(row.formula_delta),
                f"{row.least_tosses:,}",
                f"{row.formula_tosses / row.least_tosses:.1f}",
                printed,
                "" if row.printed_delta is None else _small(row.printed_delta),
            )
        console.print(table)

    result = [
        {
            **asdict(row),
            "is_formula_certified": row.is_formula_certified,
            "is_printed_refuted": row.is_printed_refuted,
        }
        for row in rows
    ]
    emit({"promises": result}, as_json=as_json, show=show)


def _two_digits(value: float | None) -> str:
    return "not found" if value is None else f"{value:.2f}"


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def _small(delta: float) -> str:
    return "below 1e-15" if delta < 1e-15 else f"{delta:.1e}"


@app.command("all")
def everything(
    *,
    out: OutOption,
    dataset: Annotated[str | None, typer.Option(help="Only this one. (default: all)")] = None,
    repetitions: RepetitionsOption = REPETITIONS,
    seed: SeedOption = SEED,
    encrypted: EncryptionOption = True,
    as_json: JsonOption = False,
) -> None:
    """Everything, and one HTML report with figures, tables and text."""
    _steps()
    _check(dataset, DATASETS, out, repetitions)
    from dppp.experiments.report import reproduce_all  # noqa: PLC0415

    with counted_progress("all") as report:
        made = reproduce_all(
            (dataset,) if dataset else DATASETS,
            out,
            repetitions=repetitions,
            seed=seed,
            with_encryption=encrypted,
            report=report,
        )
    _finish(made.to_json(), made.artefacts, as_json, last=f"report: {made.report}")


def _steps() -> Any:
    """The experiments, or what to install; said before any work is done."""
    load_pyplot()
    try:
        from dppp.experiments import reproduce  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(
            "the experiments need scikit-learn",
            extra="experiments",
        ) from error
    return reproduce


def _check(dataset: str | None, known: tuple[str, ...], out: Path, repetitions: int) -> None:
    if dataset is not None and dataset not in known:
        raise InputError(
            f"unknown dataset {dataset!r}",
            hint=f"choose one of {', '.join(known)}",
        )
    require_whole("repetitions", repetitions)
    make_folder(out)


def _finish(
    result: Mapping[str, object], made: "Sequence[Artefact]", as_json: bool, last: str = ""
) -> None:
    """Print, and fail where the real protocol does not agree with the stored votes."""

    def show(console: Console) -> None:
        for artefact in made:
            _show(console, artefact)
        if last:
            say(console, last)

    emit(result, as_json=as_json, show=show)
    if not all(point.agrees for artefact in made for point in artefact.encrypted):
        raise typer.Exit(1)


def _show(console: Console, made: "Artefact") -> None:
    console.print(f"[bold]{made.command} {made.dataset or ''}[/bold]  {made.summary}")
    if made.claims:
        true = sum(claim.holds for claim in made.claims)
        console.print(f"{true} of {len(made.claims)} claims of the paper hold; these do not:")
        table = Table("calibration", "claim", "measured", box=None)
        for claim in made.claims:
            if not claim.holds:
                table.add_row(claim.calibration, claim.claim, claim.detail)
        console.print(table)
    for point in made.encrypted:
        console.print(
            f"encrypted, {point.modulus_bits} bits, {point.noise} ({point.calibration}), "
            f"ε = {point.epsilon:g}: {point.accuracy:.1%} of {point.queries} right, "
            f"{point.expected_accuracy:.1%} expected; variance {point.variance:.4g}, "
            f"{point.expected_variance:.4g} expected: {'agrees' if point.agrees else 'DISAGREES'}"
        )
    say(console, f"{made.table}\n{made.figure}")
