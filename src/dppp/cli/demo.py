"""`dppp demo`: the whole story on one machine, with real cryptography, in seconds."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from dppp.cli.demo_web import serve_demo
from dppp.cli.files import make_folder, write_bytes
from dppp.cli.output import JsonOption, emit
from dppp.cli.privacy_tables import show_certificate, show_compared
from dppp.cli.progress import federation_progress

if TYPE_CHECKING:
    from dppp.federation import Founded, Outcome
    from dppp.privacy.certificate import Certificate
    from dppp.privacy.ledger import Ledger
    from dppp.privacy.ledger_summary import Summary

HOSPITALS = 20
FIRST_HOSPITAL = "teacher 1"
SILENT = (7, 13)
CLASS_NAMES = ("malignant", "benign")
PATIENTS = (17, 4, 12)
"""For each of three patients, how many of the twenty hospitals' models say benign."""
QUERIES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Story:
    compared: "list[Certificate]"
    outcome: "Outcome"
    summary: "Summary"
    ledger: Path
    many: "Certificate"
    halfway: float
    transcript: Path
    picture: Path | None


def demo(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the picture.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for transcript and picture.")] = Path("out"),
    web: Annotated[bool, typer.Option("--web", help="Serve the page until Ctrl-C.")] = False,
    data: Annotated[
        str, typer.Option(help="For --web: breast-cancer or digits.")
    ] = "breast-cancer",
    port: Annotated[int, typer.Option(help="For --web: 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="For --web: open a browser.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Twenty hospitals, three patients: noise, ballots, a tally, labels, and what it cost."""
    if web:
        serve_demo(data=data, port=port, is_browser_wanted=browser)
        return
    story = _live_through(quick=quick, out=out)
    result = {
        "compared": [each.to_json() for each in story.compared],
        "labels": _labels(story.outcome),
        "counts": [list(answer.counts) for answer in story.outcome.answers],
        "transcript": str(story.transcript),
        "many_queries": story.many.to_json(),
        "epsilon_after_half": story.halfway,
        "ledger": str(story.ledger),
        "spent": story.summary.to_json(),
        "picture": None if story.picture is None else str(story.picture),
    }
    emit(result, as_json=as_json, show=lambda console: _tell(console, story))


def _live_through(*, quick: bool, out: Path) -> _Story:
    from dppp.cli.privacy_plot import draw_promised_against_delivered  # noqa: PLC0415
    from dppp.federation import found  # noqa: PLC0415
    from dppp.privacy.accounting import Spending, account  # noqa: PLC0415
    from dppp.privacy.calibration import calibrate, compare  # noqa: PLC0415
    from dppp.privacy.certificate import Promise  # noqa: PLC0415
    from dppp.privacy.trust import Trust  # noqa: PLC0415

    promise = Promise(epsilon=3.0, delta=1e-3, queries=len(PATIENTS), classes=len(CLASS_NAMES))
    compared = compare(promise, Trust.with_defaults(HOSPITALS))
    many = calibrate("auto", epsilon=8, delta=1e-5, teachers=250, queries=QUERIES)
    picture = None if quick else out / "demo.png"
    if picture is not None:
        draw_promised_against_delivered(compared, picture)
    ledger_path = out / "demo.ledger"
    with _new_ledger(ledger_path) as ledger:
        founded = found(
            name="demo",
            class_names=CLASS_NAMES,
            features=["patient"],
            certificate=compared[0],
            models=[functools.partial(_opinions, hospital=each) for each in range(HOSPITALS)],
            s=1,
            ledgers={1: ledger},
        )
        outcome = _ask(founded)
        summary = ledger.summary()
    assert outcome.transcript is not None, "every patient is new"
    return _Story(
        compared=compared,
        outcome=outcome,
        many=many,
        halfway=account([Spending(noise=many.noise, queries=QUERIES // 2)], 1e-5),
        summary=summary,
        ledger=ledger_path,
        transcript=write_bytes(out / "demo.transcript", outcome.transcript.to_bytes()),
        picture=picture,
    )


def _ask(founded: "Founded") -> "Outcome":
    from dppp.federation import Federation, deliver_here  # noqa: PLC0415

    awake = {index: each for index, each in founded.teachers.items() if index not in SILENT}
    with federation_progress() as progress:
        deliver = deliver_here(awake, progress=progress)
        federation = Federation(aggregator=founded.aggregator, deliver=deliver)
        return federation.ask([[patient] for patient in range(len(PATIENTS))])


@contextmanager
def _new_ledger(path: Path) -> "Iterator[Ledger]":
    """Hospital 1's ledger on disk. The demo starts anew each time: nothing else should."""
    from dppp.service.ledger_file import create_ledger, open_ledger  # noqa: PLC0415

    make_folder(path.parent)
    for leftover in path.parent.glob(f"{path.name}*"):
        leftover.unlink()
    head_path = path.with_name(f"{path.name}.head")
    create_ledger(path, teacher=FIRST_HOSPITAL, head_path=head_path)
    with open_ledger(path, teacher=FIRST_HOSPITAL, head_path=head_path) as ledger:
        yield ledger


def _opinions(rows: object, hospital: int) -> list[int]:
    """A hospital's model: here simply the given opinion on each of the three patients."""
    return [int(hospital < PATIENTS[int(row[0])]) for row in rows]  # type: ignore[attr-defined]


def _labels(outcome: "Outcome") -> list[str]:
    return [CLASS_NAMES[answer.label or 0] for answer in outcome.answers]


def _tell(console: Console, story: _Story) -> None:
    trust, compared = story.compared[0].trust, story.compared
    console.rule("1  How much noise do three answers need?")
    console.print(
        f"{HOSPITALS} hospitals vote. {trust.colluders} of them may collude with the aggregator "
        f"and {trust.dropouts} may vanish; the noise of the other {trust.honest_shares} alone "
        "must keep the promise. Every family, by exact search and by the paper's formula:\n"
    )
    show_compared(console, compared)
    console.rule("2  Ballots, a tally, labels")
    console.print(
        f"A 2048-bit key, of which any {trust.threshold} hospitals decrypt together. Each hospital "
        f"adds its share of {compared[0].noise.name} noise, encrypts, proves and signs. Hospitals "
        f"{' and '.join(map(str, SILENT))} do not answer; {trust.ballots_needed} ballots are "
        "enough.\n"
    )
    _show_counts(console, story.outcome)
    console.print(f"\nAnyone can check this: [bold]dppp verify {story.transcript}[/]")
    console.rule("3  What is left")
    for task in story.summary.data[0].tasks:
        console.print(
            f"Hospital 1's ledger: {task.answered} of {task.queries} queries of this task "
            f"answered, {task.left} left. The next one would be refused: [bold]dppp ledger show "
            f"{story.ledger}[/]"
        )
    console.rule(f"4  {QUERIES} answers under one promise, 250 teachers")
    show_certificate(console, story.many)
    console.print(
        f"\nAfter {QUERIES // 2} of them ε = {story.halfway:.3f} is spent at "
        f"δ = {story.many.promise.delta:g}."
    )
    if story.picture is not None:
        console.print(f"δ promised against delivered is drawn in {story.picture}.")


def _show_counts(console: Console, outcome: "Outcome") -> None:
    table = Table(show_edge=False)
    for heading in ("patient", "votes (secret)", "noisy counts (public)"):
        table.add_column(heading, justify="right")
    table.add_column("label")
    for patient, (answer, label) in enumerate(zip(outcome.answers, _labels(outcome), strict=True)):
        voted = [hospital for hospital in range(HOSPITALS) if hospital + 1 not in SILENT]
        benign = sum(hospital < PATIENTS[patient] for hospital in voted)
        table.add_row(
            str(patient + 1),
            f"{len(voted) - benign} : {benign}",
            " : ".join(map(str, answer.counts)),
            label,
        )
    console.print(table)
