"""`dppp demo`: the story so far on one machine, in a few seconds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from dppp.cli.output import JsonOption, emit
from dppp.cli.privacy import show_certificate, show_compared

if TYPE_CHECKING:
    from dppp.privacy.certificate import Certificate

HOSPITALS = 20
VOTES_FOR_BENIGN = 17
CLASS_NAMES = ("malignant", "benign")
QUERIES = 100


def demo(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the picture.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out"),
    as_json: JsonOption = False,
) -> None:
    """Twenty hospitals and one question: how much noise, what is learnt, what it costs."""
    from dppp.cli.privacy_plot import draw_promised_against_delivered  # noqa: PLC0415
    from dppp.privacy.accounting import Spending, account  # noqa: PLC0415
    from dppp.privacy.calibration import calibrate, compare  # noqa: PLC0415
    from dppp.privacy.certificate import Promise  # noqa: PLC0415
    from dppp.privacy.trust import Trust  # noqa: PLC0415

    promise = Promise(epsilon=1.0, delta=1e-3, classes=len(CLASS_NAMES))
    compared = compare(promise, Trust.with_defaults(HOSPITALS))
    counts = _noisy_counts(compared[0])
    many = calibrate("auto", epsilon=8, delta=1e-5, teachers=250, queries=QUERIES)
    halfway = account([Spending(noise=many.noise, queries=QUERIES // 2)], 1e-5)
    picture = None if quick else out / "demo.png"
    if picture is not None:
        draw_promised_against_delivered(compared, picture)
    result = {
        "compared": [each.to_json() for each in compared],
        "counts": dict(zip(CLASS_NAMES, counts, strict=True)),
        "label": CLASS_NAMES[counts.index(max(counts))],
        "many_queries": many.to_json(),
        "epsilon_after_half": halfway,
        "picture": None if picture is None else str(picture),
    }
    emit(
        result,
        as_json=as_json,
        show=lambda console: _tell(
            console, compared=compared, counts=counts, many=many, halfway=halfway, picture=picture
        ),
    )


def _noisy_counts(certificate: "Certificate") -> list[int]:
    """The sum of every hospital's vote and noise share, drawn by the real sampler."""
    from dppp.privacy.sampling import sampling_table  # noqa: PLC0415

    table = sampling_table(certificate.noise)
    centre = certificate.noise.one_share().centre
    shares = table.draw(HOSPITALS * len(CLASS_NAMES)).reshape(HOSPITALS, -1) - centre
    votes = (HOSPITALS - VOTES_FOR_BENIGN, VOTES_FOR_BENIGN)
    return [int(count) for count in shares.sum(axis=0) + votes]


def _tell(
    console: Console,
    *,
    compared: "list[Certificate]",
    counts: list[int],
    many: "Certificate",
    halfway: float,
    picture: Path | None,
) -> None:
    console.rule("1  How much noise does one answer need?")
    console.print(
        f"{HOSPITALS} hospitals vote. {compared[0].trust.colluders} of them may collude with the "
        f"aggregator and {compared[0].trust.dropouts} may vanish;\nthe noise of the other "
        f"{compared[0].trust.honest_shares} alone must keep the promise. Every family, by exact "
        "search and by the paper's formula:\n"
    )
    show_compared(console, compared)
    console.rule("2  One question")
    _show_counts(console, counts)
    console.rule(f"3  {QUERIES} answers under one promise, 250 teachers")
    show_certificate(console, many)
    console.print(
        f"\nAfter {QUERIES // 2} of them ε = {halfway:.3f} is spent at δ = {many.promise.delta:g}; "
        "a ledger counts the rest."
    )
    if picture is not None:
        console.rule("4  Promised against delivered")
        console.print(f"The picture is in {picture}.")


def _show_counts(console: Console, counts: list[int]) -> None:
    table = Table(show_edge=False)
    for heading in ("class", "votes (known to nobody)", "noisy count (all that is learnt)"):
        table.add_column(heading, justify="left" if heading == "class" else "right")
    votes = (HOSPITALS - VOTES_FOR_BENIGN, VOTES_FOR_BENIGN)
    for name, true, noisy in zip(CLASS_NAMES, votes, counts, strict=True):
        table.add_row(name, str(true), str(noisy))
    console.print(table)
    console.print(f"The label is [bold]{CLASS_NAMES[counts.index(max(counts))]}[/].")
