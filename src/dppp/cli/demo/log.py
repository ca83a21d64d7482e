"""What `dppp demo` says, step by step, to somebody who sees this for the first time."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from dppp.cli.calibrate import show_certificate

if TYPE_CHECKING:
    from dppp.federation import Parties
    from dppp.learning.examples.hospital_batches import AnsweredBatch, Failure
    from dppp.learning.examples.hospitals import Accuracies, Hospitals
    from dppp.learning.verdict import Verdict
    from dppp.privacy.certificate import Certificate
    from dppp.privacy.ledger.summary import Summary
    from dppp.privacy.trust import Trust
    from dppp.protocol.task import Task

_BAR_CELLS = 16


def tell_split(console: Console, hospitals: "Hospitals", asked: int) -> None:
    """Who has what."""
    counts, held_out = hospitals.record_counts, len(hospitals.patients)
    console.rule("1  Twenty hospitals, each with its own patients")
    console.print(
        f"Breast Cancer, as it ships with scikit-learn: {sum(counts) + held_out} records of "
        f"{len(hospitals.features)} measurements, {' or '.join(hospitals.class_names)}. "
        f"{sum(counts)} are dealt at random to {len(counts)} hospitals, {min(counts)} or "
        f"{max(counts)} to each; {held_out} are held out. Every hospital trains a model of its own "
        "(an RBF SVM, scaled by its own records). No record and no model leaves its hospital.\n"
        f"The hospitals are asked about {asked} of the held-out patients."
    )


def tell_noise(
    console: Console,
    found: "Mapping[int, Certificate]",
    expected: Mapping[int, float],
    asked: int,
) -> None:
    """The promise, the noise that keeps it, and what more or fewer questions would mean."""
    chosen = found[asked]
    promise, trust = chosen.promise, chosen.trust
    console.rule("2  How much noise?")
    console.print(
        "The promise: changing one patient's record makes nothing that is seen more than e^ε times "
        f"as likely, but for a chance of δ; ε = {promise.epsilon:g} and δ = {promise.delta:g} for "
        f"all {asked} answers together. It must hold even if {trust.colluders} hospitals tell the "
        f"aggregator all they know and {trust.dropouts} vanish, so the noise of the other "
        f"{trust.honest_shares} alone must be enough for it. Each hospital adds a share.\n"
    )
    show_certificate(console, chosen)
    if len(found) > 1:
        console.print(
            "\nMore questions under the same promise need more noise, which costs accuracy; so "
            f"{asked} patients are asked about and not all. Right on average, of all patients "
            "held out (worked out from the votes, which only a demo may look at):"
        )
        console.print(_trade_off(found, expected, asked))


def _trade_off(
    found: "Mapping[int, Certificate]", expected: Mapping[int, float], asked: int
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("questions", "variance", "right on average"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for queries, certificate in found.items():
        table.add_row(
            str(queries),
            f"{certificate.noise.variance:.1f}",
            _percent(expected[queries]),
            "← this demo" if queries == asked else "",
        )
    return table


def tell_keys(console: Console, parties: "Parties") -> None:
    """What is made before the first batch."""
    trust, terms = parties.task.trust, parties.task.masks
    assert terms is not None, "the demo is on masks"
    console.rule("3  Keys, and nobody who deals them")
    console.print(
        "Each hospital makes a signing key, and a key to seal with: a new one every "
        f"{terms.epoch_seconds // 3600} hours, and old ones are deleted. No key opens a ballot: "
        "every ballot gets a mask of its own, whose secret is cut into sealed rows, one for each "
        "hospital. Fewer than "
        f"{trust.threshold} hospitals learn nothing from theirs. Each hospital reserves the "
        "whole promise in its own ledger."
    )


def tell_how_a_batch_goes(console: Console, trust: "Trust") -> None:
    """One batch, before the first."""
    console.rule("4  The patients, batch by batch")
    console.print(
        "In a batch every hospital lets its model vote on each patient, adds its share of the "
        "noise, masks the sum, seals the rows of the mask's secret, signs, charges its ledger, and "
        "only then sends this ballot. The aggregator lists the ballots and adds them up. "
        f"At least {trust.threshold} hospitals must sign the list; then they give the sum of the "
        "masks' secrets, which opens the sum of the ballots, and nothing but the sum.\n"
    )


def tell_batch(
    console: Console, batch: "AnsweredBatch", failures: "Sequence[Failure]", task: "Task"
) -> None:
    """Who was there, and what has been spent so far."""
    for failure in failures:
        if failure.batch == batch.number:
            console.print(f"[yellow]{_failure_text(failure, task.trust)}[/]")
    missing = [each for each in range(1, task.trust.teachers + 1) if each not in batch.voters]
    absent = f" (without {_listed(missing)})" if missing else ""
    first = batch.answered - len(batch.answers) + 1
    console.print(
        f"[bold]batch {batch.number}[/]  patients {first} to {batch.answered}: "
        f"{len(batch.voters)} ballots{absent}, opened and labelled; "
        f"ε = {batch.epsilon_spent:.2f} of {task.epsilon:g} spent"
    )


def _failure_text(failure: "Failure", trust: "Trust") -> str:
    if failure.is_after_ballot:
        return (
            f"Hospital {failure.hospital} votes and vanishes before the list is opened; its vote "
            "counts, and the others open the list."
        )
    return (
        f"Hospital {failure.hospital} does not answer any more; {trust.ballots_needed} ballots "
        "still hold enough noise."
    )


def tell_one_patient(
    console: Console, hospitals: "Hospitals", batches: "Sequence[AnsweredBatch]"
) -> None:
    """The patient whom the hospitals disagree most about: the secret, and what was released."""
    cast = _votes_cast(hospitals, batches)
    patient = min(range(len(cast)), key=lambda each: abs(cast[each][0] - cast[each][1]))
    answer = [answer for batch in batches for answer in batch.answers][patient]
    names = hospitals.class_names
    label = "none" if answer.label is None else names[answer.label]
    console.print(
        f"\nThe closest vote was on patient {patient + 1} ({' : '.join(names)}):\n"
        f"  votes         {_ratio(cast[patient])}   [dim]secret: nobody saw this[/]\n"
        f"  noisy counts  {_ratio(answer.counts)}   [dim]all that the aggregator saw[/]\n"
        f"  label         {label}   [dim]really {names[hospitals.diagnoses[patient]]}[/]"
    )


def _votes_cast(
    hospitals: "Hospitals", batches: "Sequence[AnsweredBatch]"
) -> list[tuple[int, ...]]:
    """Votes for each class, patient by patient, of those who voted: only a demo may look."""
    votes = iter(hospitals.votes(batches[-1].answered).tolist())
    cast = []
    for batch in batches:
        for row in itertools.islice(votes, len(batch.answers)):
            voted = [row[voter - 1] for voter in batch.voters]
            cast.append(tuple(voted.count(each) for each in range(len(hospitals.class_names))))
    return cast


def tell_accuracies(
    console: Console, now: "Accuracies", on_average: "Accuracies", verdict: "Verdict"
) -> None:
    """Side by side, on the same patients; and on average, which one run cannot show."""
    console.rule("5  Was it worth it?")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("right labels")
    table.add_column(f"these {now.patients} patients", no_wrap=True)
    table.add_column(f"all {on_average.patients}, on average", justify="right", no_wrap=True)
    for name, text in (
        ("centralised", "one model of all records"),
        ("plurality", "hospitals, votes in the clear"),
        ("private", "[bold]hospitals with dppp[/]"),
        ("single_mean", "one hospital alone"),
    ):
        part = getattr(now, name)
        bar = "█" * round(_BAR_CELLS * part)
        table.add_row(
            text, f"{bar:<{_BAR_CELLS}} {_percent(part)}", _percent(getattr(on_average, name))
        )
    console.print(table)
    console.print(
        f"One patient is {_percent(1 / now.patients)}, and the noise is new in every run: the "
        "average over all noise, on the right, tells more. One hospital alone is right from "
        f"{_percent(on_average.single_min)} to {_percent(on_average.single_max)} of the time; it "
        "is the mean that is shown.\n"
        "Who has no records could always say the majority class: "
        f"{_percent(verdict.accuracy_majority)}; or ask one hospital alone, which then adds all "
        f"the noise of the same promise: {_percent(verdict.accuracy_local)}."
    )
    for sentence in verdict.sentences:
        console.print(sentence, markup=False)


def tell_ledger(console: Console, summary: "Summary", refusals: Sequence[str]) -> None:
    """What the first hospital wrote down, and what happens past it."""
    (task,) = summary.data[0].tasks
    console.rule("6  What was spent")
    console.print(
        f"Hospital 1 wrote down {task.answered} of {task.queries} queries in "
        f"{_many(task.batches, 'batch', 'batches')}, each before its ballot left.\n"
        f"One more patient is asked about. {len(refusals)} hospitals refuse, so there is no "
        f"answer:\n  {refusals[0]}"
    )


def tell_verified(console: Console, transcripts: Sequence[Path], checks: Sequence[str]) -> None:
    """What anyone can check."""
    console.rule("7  Anyone can check")
    console.print(
        f"{_many(len(transcripts), 'transcript was', 'transcripts were')} written, read again and "
        "verified "
        f"({', '.join(checks)}): enough hospitals signed these ballots, the counts are their sum, "
        "the labels follow."
    )


def tell_what_next(
    console: Console,
    ledger: Path,
    transcripts: Sequence[Path],
    activation: str | None,
    *,
    number: int,
) -> None:
    """What to type next, on lines that are not cut, so that they can be copied."""
    console.rule(f"{number}  Go on yourself")
    commands = [
        ("make dppp known to this shell", activation),
        ("what hospital 1 reserved and answered, and what is left", f"dppp ledger show {ledger}"),
        ("check a transcript as anyone can", f"dppp verify {transcripts[-1]}"),
        ("hospitals behind a page in your browser, until Ctrl-C", "dppp demo --web"),
    ]
    for purpose, command in commands:
        if command is not None:
            console.print(f"  [dim]# {purpose}[/]")
            console.print(f"  {command}", style="bold", soft_wrap=True, markup=False)


def _percent(part: float) -> str:
    return f"{100 * part:.1f}\N{NO-BREAK SPACE}%"


def _many(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _ratio(counts: Sequence[int]) -> str:
    return " : ".join(f"{count:>3}" for count in counts)


def _listed(numbers: Sequence[int]) -> str:
    return " and ".join(map(str, numbers))
