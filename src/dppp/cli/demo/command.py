"""`dppp demo`: the whole story on one machine, with real cryptography, in under a minute.

What is computed is in learning/examples/, what is said in log.py and what is drawn in plot.py; of
the banks of the last two acts both are in banks.py.
Heavy imports are inside the functions.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dppp.cli.demo import log
from dppp.cli.demo.web import serve_demo
from dppp.cli.optional_packages import load_pyplot, require_scikit_learn
from dppp.cli.options import JsonOption
from dppp.cli.output_files import make_folder, write_bytes
from dppp.cli.terminal import emit, federation_progress, waiting
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.federation import Parties
    from dppp.learning.examples.hospital_batches import AnsweredBatch, Failure
    from dppp.learning.examples.hospitals import Accuracies, Hospitals
    from dppp.learning.verdict import Verdict
    from dppp.privacy.certificate import Certificate
    from dppp.privacy.ledger.ledger import Ledger
    from dppp.privacy.ledger.summary import Summary

EPSILON, DELTA = 8.0, 1e-5
FIRST_HOSPITAL = "teacher 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    batches: int
    batch_size: int
    compared_queries: tuple[int, ...]
    """Numbers of patients whose noise is worked out as well, to show the trade-off."""

    @property
    def asked(self) -> int:
        return self.batches * self.batch_size


FULL = _Settings(batches=4, batch_size=6, compared_queries=(6, 24, 60, 114))
QUICK = _Settings(batches=1, batch_size=6, compared_queries=(6,))
"""24 answers leave more right labels than one hospital alone has; 60 do not (docs/decisions.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Story:
    hospitals: "Hospitals"
    certificate: "Certificate"
    batches: "tuple[AnsweredBatch, ...]"
    transcripts: tuple[Path, ...]
    accuracies: "Accuracies"
    on_average: "Accuracies"
    verdict: "Verdict"
    refusals: tuple[str, ...]
    ledger: Path
    summary: "Summary"


def demo(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Six patients in one batch; no banks, no picture.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="A folder for the ledger, transcripts and picture.")
    ] = Path("out"),
    web: Annotated[bool, typer.Option("--web", help="Serve a page instead, until Ctrl-C.")] = False,
    data: Annotated[
        str, typer.Option(help="For --web: the records, breast-cancer or digits.")
    ] = "breast-cancer",
    port: Annotated[
        int,
        typer.Option(
            help="For --web: the port to listen on; 0 takes any free one.", min=0, max=65535
        ),
    ] = 0,
    browser: Annotated[bool, typer.Option(help="For --web: open a browser.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Twenty hospitals label patients together, privately; two of them fail mid-way."""
    require_scikit_learn()
    if data != "breast-cancer" and not web:
        raise InputError(
            f"the demo on a terminal is with breast-cancer, not with {data!r}",
            hint="add --web for the records digits, or leave --data out",
        )
    if web:
        serve_demo(data=data, port=port, is_browser_wanted=browser)
        return
    picture = None if quick else out / "demo.png"
    if picture is not None:
        load_pyplot()  # say at once that it is missing
    console = Console(highlight=False, quiet=as_json)
    story = _live_through(QUICK if quick else FULL, out, console)
    if picture is not None:
        from dppp.cli.demo.plot import draw_story  # noqa: PLC0415

        draw_story(
            story.accuracies, story.on_average, story.batches, story.certificate.promise, picture
        )
        console.print(f"Accuracy and spent budget are drawn in [bold]{escape(str(picture))}[/].")
    acts = None if picture is None else _live_through_more(picture, console)
    number = 8 if acts is None else 10
    log.tell_what_next(console, story.ledger, story.transcripts, _activation(), number=number)
    emit({**_to_json(story, picture), **(acts or {})}, as_json=as_json, show=lambda _: None)


def _live_through_more(picture: Path, console: Console) -> dict[str, object]:
    """Twenty banks, twice: what is said, drawn and to be printed as JSON."""
    from dppp.cli.demo.banks import ask_twice, draw_banks  # noqa: PLC0415

    acts = ask_twice(console)
    path = picture.with_name("demo-banks.png")
    draw_banks(acts, path)
    console.print(f"Both are drawn in [bold]{escape(str(path))}[/].")
    alike, apart = (each.to_json() for each in acts)
    return {"banks": {"alike": alike, "apart": apart, "picture": str(path)}}


def _activation() -> str | None:
    """What makes `dppp` known to the shell, as `make demo` cannot; None where it is known."""
    programs = Path(sys.prefix) / "bin"
    found = shutil.which("dppp")
    if not (programs / "activate").exists() or (found and Path(found).parent == programs):
        return None
    here = Path.cwd()
    return f". {programs.relative_to(here) if programs.is_relative_to(here) else programs}/activate"


def _to_json(story: _Story, picture: Path | None) -> dict[str, object]:
    answers = [answer for batch in story.batches for answer in batch.answers]
    names = story.hospitals.class_names
    return {
        "labels": [None if each.label is None else names[each.label] for each in answers],
        "diagnoses": [names[each] for each in story.hospitals.diagnoses[: len(answers)]],
        "counts": [list(answer.counts) for answer in answers],
        "accuracy": story.accuracies.to_json(),
        "accuracy_on_average": story.on_average.to_json(),
        "verdict": story.verdict.to_json(),
        "certificate": story.certificate.to_json(),
        "batches": [
            {
                "patients": len(batch.answers),
                "voters": list(batch.voters),
                "epsilon_spent": batch.epsilon_spent,
                "transcript": str(path),
            }
            for batch, path in zip(story.batches, story.transcripts, strict=True)
        ],
        "transcript": str(story.transcripts[-1]),
        "transcripts": [str(path) for path in story.transcripts],
        "refusals": list(story.refusals),
        "ledger": str(story.ledger),
        "spent": story.summary.to_json(),
        "picture": None if picture is None else str(picture),
    }


def _live_through(settings: _Settings, out: Path, console: Console) -> _Story:
    """The story in its order, each step told when it is done."""
    from dppp.learning.examples import hospitals as opened  # noqa: PLC0415

    _clear(out)
    hospitals = opened.open_hospitals()
    log.tell_split(console, hospitals, settings.asked)
    certificate = _choose_noise(hospitals, settings, console)
    ledger_path = out / "demo.ledger"
    with _new_ledger(ledger_path) as ledger:
        parties = _found(hospitals, certificate, ledger, console)
        failures = _failures(settings)
        batches = _ask_all(parties, hospitals, settings, failures, console)
        refusals = _ask_one_more(parties, hospitals, settings, failures)
        summary = ledger.summary()
    labels = [answer.label for batch in batches for answer in batch.answers]
    accuracies = opened.compare_in_this_run(hospitals, labels)
    on_average = opened.compare_on_average(hospitals, certificate.noise)
    verdict = opened.judge_hospitals(hospitals, certificate)
    log.tell_accuracies(console, accuracies, on_average, verdict)
    log.tell_ledger(console, summary, refusals)
    transcripts = _write_transcripts(batches, out)
    log.tell_verified(console, transcripts, _verify_all(transcripts))
    return _Story(
        hospitals=hospitals,
        certificate=certificate,
        batches=batches,
        transcripts=transcripts,
        accuracies=accuracies,
        on_average=on_average,
        verdict=verdict,
        refusals=refusals,
        ledger=ledger_path,
        summary=summary,
    )


def _failures(settings: _Settings) -> "tuple[Failure, ...]":
    """Hospital 7 falls silent before voting, 13 after it: in the second batch if there is one."""
    from dppp.learning.examples.hospital_batches import Failure  # noqa: PLC0415

    batch = min(2, settings.batches)
    return (
        Failure(hospital=7, batch=batch),
        Failure(hospital=13, batch=batch, is_after_ballot=True),
    )


def _choose_noise(hospitals: "Hospitals", settings: _Settings, console: Console) -> "Certificate":
    """The noise for the patients asked, and what other numbers of patients would have needed."""
    from dppp.learning.examples.hospitals import expected_accuracy  # noqa: PLC0415
    from dppp.privacy.calibration import calibrate  # noqa: PLC0415

    with waiting("working out how much noise the promise needs"):
        found = {
            queries: calibrate(
                "auto",
                epsilon=EPSILON,
                delta=DELTA,
                teachers=len(hospitals.models),
                queries=queries,
                classes=len(hospitals.class_names),
            )
            for queries in settings.compared_queries
        }
    expected = {
        queries: expected_accuracy(hospitals, certificate.noise)
        for queries, certificate in found.items()
    }
    log.tell_noise(console, found, expected, settings.asked)
    return found[settings.asked]


def _found(
    hospitals: "Hospitals", certificate: "Certificate", ledger: "Ledger", console: Console
) -> "Parties":
    from dppp.federation import create_federation  # noqa: PLC0415
    from dppp.learning.models import as_predict  # noqa: PLC0415

    with waiting("the hospitals make their keys"):
        parties = create_federation(
            name="demo",
            class_names=hospitals.class_names,
            features=hospitals.features,
            certificate=certificate,
            models=[
                as_predict(model, range(len(hospitals.class_names))) for model in hospitals.models
            ],
            ledgers={1: ledger},
        )
    log.tell_keys(console, parties)
    return parties


def _ask_all(
    parties: "Parties",
    hospitals: "Hospitals",
    settings: _Settings,
    failures: "Sequence[Failure]",
    console: Console,
) -> "tuple[AnsweredBatch, ...]":
    from dppp.learning.examples.hospital_batches import ask_batch  # noqa: PLC0415

    log.tell_how_a_batch_goes(console, parties.task.trust)
    batches: list[AnsweredBatch] = []
    for number in range(1, settings.batches + 1):
        before = (number - 1) * settings.batch_size
        with federation_progress() as progress:
            batch = ask_batch(
                parties,
                hospitals.patients[before : before + settings.batch_size],
                number=number,
                answered_before=before,
                failures=failures,
                progress=progress,
            )
        log.tell_batch(console, batch, failures, parties.task)
        batches.append(batch)
    log.tell_one_patient(console, hospitals, batches)
    return tuple(batches)


def _ask_one_more(
    parties: "Parties",
    hospitals: "Hospitals",
    settings: _Settings,
    failures: "Sequence[Failure]",
) -> tuple[str, ...]:
    from dppp.learning.examples.hospital_batches import ask_past_the_budget  # noqa: PLC0415

    row = hospitals.patients[settings.asked : settings.asked + 1]
    number = settings.batches + 1
    refusals = ask_past_the_budget(parties, row, number=number, failures=failures)
    assert refusals, "no ledger lets a query past what was agreed"
    return refusals


def _write_transcripts(batches: "Sequence[AnsweredBatch]", out: Path) -> tuple[Path, ...]:
    return tuple(
        write_bytes(out / f"demo-{batch.number}.transcript", batch.transcript.to_bytes())
        for batch in batches
    )


def _verify_all(transcripts: Sequence[Path]) -> tuple[str, ...]:
    """The checks that every transcript passed, read from its file as anyone would."""
    from dppp.protocol.transcript import verify_transcript  # noqa: PLC0415

    with waiting("verifying the transcripts"):
        (checks,) = {verify_transcript(path.read_bytes()).checks for path in transcripts}
    return checks


def _clear(out: Path) -> None:
    """Remove what an earlier demo left. A demo starts anew each time: nothing else should."""
    make_folder(out)
    for pattern in ("demo.ledger*", "demo-*.transcript", "demo.png", "demo-banks.png"):
        for leftover in out.glob(pattern):
            leftover.unlink()


@contextmanager
def _new_ledger(path: Path) -> "Iterator[Ledger]":
    """Hospital 1's ledger on disk."""
    from dppp.service.stores.ledgers import create_ledger, open_ledger  # noqa: PLC0415

    head_path = path.with_name(f"{path.name}.head")
    create_ledger(path, teacher=FIRST_HOSPITAL, head_path=head_path)
    with open_ledger(path, teacher=FIRST_HOSPITAL, head_path=head_path) as ledger:
        yield ledger
