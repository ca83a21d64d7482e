"""`dppp audit`: an attack beside the certificate, and audits of the sampler and the accountant."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from dppp.cli.given_task import read_task
from dppp.cli.optional_packages import load_pyplot
from dppp.cli.options import (
    ColludersOption,
    DropoutsOption,
    JsonOption,
    LevelsOption,
    MaxLabelsOption,
)
from dppp.cli.output_files import require_figure_place
from dppp.cli.terminal import counted_progress, emit, say
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.experiments.audit.promise import PromiseAudit
    from dppp.privacy.certificate import Certificate
    from dppp.protocol.question import Question

_SUBJECTS = ("promise", "sampler", "accountant")


def audit(
    source: Annotated[
        Path | None,
        typer.Argument(
            help="A federation file, a receipt or a transcript: its task is audited, and no "
            "promise is given by options.",
            show_default=False,
        ),
    ] = None,
    *,
    epsilon: Annotated[float | None, typer.Option(help="Total ε, greater than 0.")] = None,
    delta: Annotated[float | None, typer.Option(help="Total δ, between 0 and 1.")] = None,
    teachers: Annotated[int | None, typer.Option(help="Teachers who vote.")] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="auto (least variance), binomial, discrete-gaussian, skellam or polya. "
            "(default: auto)"
        ),
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="Queries that the total covers. (default: 1)")
    ] = None,
    colluders: ColludersOption = None,
    dropouts: DropoutsOption = None,
    classes: Annotated[int | None, typer.Option(help="Classes to vote on. (default: 10)")] = None,
    max_labels: MaxLabelsOption = None,
    levels: LevelsOption = None,
    calibration: Annotated[
        str | None,
        typer.Option(help="exact, or paper for the formulas of the paper. (default: exact)"),
    ] = None,
    of: Annotated[
        str, typer.Option("--of", help="What to audit: the promise, its sampler or its accountant.")
    ] = "promise",
    mode: Annotated[
        str,
        typer.Option(help="fast draws sums of noise; real runs whole batches with cryptography."),
    ] = "fast",
    trials: Annotated[
        int | None,
        typer.Option(help="Games to play; draws, for the sampler. (default: about a minute's)"),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Of the lower bound on ε: how often it is right, at the least.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(help="Of coins, and of the noise in fast mode.")] = 1,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the trade-off, measured and certified, to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Attack a promise by the strongest known game; show the ε that it proves to be spent."""
    if of not in _SUBJECTS:
        raise InputError(f"unknown subject {of!r}", hint=f"choose one of {', '.join(_SUBJECTS)}")
    require_figure_place(plot)
    if plot is not None:
        load_pyplot()  # say at once that it is missing
    options = {
        "--epsilon": epsilon,
        "--delta": delta,
        "--teachers": teachers,
        "--noise": noise,
        "--queries": queries,
        "--colluders": colluders,
        "--dropouts": dropouts,
        "--classes": classes,
        "--max-labels": max_labels,
        "--levels": levels,
        "--calibration": calibration,
    }
    if source is None:
        certificate, question = _promised(options), None
    else:
        certificate, question = _of_task(source, options)
    if of == "sampler":
        draws = 1_000_000 if trials is None else trials
        return _audit_sampler(certificate, draws, as_json=as_json)
    if of == "accountant":
        return _audit_accountant(certificate, as_json=as_json)
    from dppp.experiments.audit.promise import audit_promise  # noqa: PLC0415

    with counted_progress("games played") as report:
        found = audit_promise(
            certificate,
            mode=mode,
            trials=trials,
            confidence=confidence,
            seed=seed,
            question=question,
            report=report,
        )
    if plot is not None:
        from dppp.experiments.audit.figure import draw_trade_off  # noqa: PLC0415

        draw_trade_off(found, plot)
    emit(found.to_json(), as_json=as_json, show=lambda console: _show(console, found))
    return int(found.is_promise_refuted or found.is_certificate_refuted)


def _promised(options: Mapping[str, Any]) -> "Certificate":
    """The noise for the promise that the options make."""
    from dppp.privacy.calibration import calibrate  # noqa: PLC0415

    given = {name[2:].replace("-", "_"): each for name, each in options.items() if each is not None}
    missing = [f"--{name}" for name in ("epsilon", "delta", "teachers") if name not in given]
    if missing:
        raise InputError(
            f"what is promised is not clear without {' and '.join(missing)}",
            hint="give --epsilon, --delta and --teachers, or the file of a task",
        )
    return calibrate(given.pop("noise", "auto"), **given)


def _of_task(source: Path, options: Mapping[str, object]) -> "tuple[Certificate, Question]":
    """The certificate of a task, worked out here, and its question."""
    given = [name for name, each in options.items() if each is not None]
    if given:
        raise InputError(
            f"the task in {source} says what is promised, so {' and '.join(given)} cannot",
            hint="leave the file out, or these",
        )
    task, _ = read_task(source)
    return task.certificate, task.question


def _audit_sampler(certificate: "Certificate", draws: int, *, as_json: bool) -> int:
    from dppp.experiments.audit.sampler import FALSE_ALARM_RATE, audit_sampler  # noqa: PLC0415

    found = audit_sampler(certificate.noise, draws=draws)
    result = {
        "of": "sampler",
        "passed": found.passed,
        "draws": found.draws,
        "false_alarm_rate": FALSE_ALARM_RATE,
        "checks": [{"name": each.name, "chance": each.chance} for each in found.checks],
        "certificate": certificate.to_json(),
    }

    def show(console: Console) -> None:
        say(
            console,
            *(f"{each.chance:>10.3g}  {each.name}" for each in found.checks),
            f"The sampler {'passed' if found.passed else 'FAILED'}: {found.draws:,} draws. Each "
            "number is a bound on the chance of a result this odd.",
            f"A test fails below {found.limit:.2g}; a right sampler fails at most once in "
            f"{1 / FALSE_ALARM_RATE:,.0f} audits.",
        )

    emit(result, as_json=as_json, show=show)
    return int(not found.passed)


def _audit_accountant(certificate: "Certificate", *, as_json: bool) -> int:
    from dppp.experiments.audit.accountant import audit_accountant  # noqa: PLC0415
    from dppp.privacy.accounting import account  # noqa: PLC0415

    promise = certificate.promise
    found = audit_accountant(
        certificate.noise,
        queries=promise.queries,
        delta=promise.delta,
        epsilon=account([certificate.spending()], promise.delta),
        counts=promise.change.moved,
        by=promise.change.shift,
    )
    result = {
        "of": "accountant",
        "passed": found.passed,
        "epsilon": found.epsilon,
        "epsilon_rounded_down": found.lower,
        "epsilon_rounded_up": found.upper,
        "certificate": certificate.to_json(),
    }

    def show(console: Console) -> None:
        say(
            console,
            f"{found.lower:>10.6g}  all losses rounded down: ε is at least this",
            f"{found.epsilon:>10.6g}  the accountant",
            f"{found.upper:>10.6g}  all losses rounded up: ε is at most this",
            f"The accountant {'passed' if found.passed else 'FAILED'}.",
        )

    emit(result, as_json=as_json, show=show)
    return int(not found.passed)


def _show(console: Console, audit: "PromiseAudit") -> None:
    found, promise, trust = audit.attack, audit.certificate.promise, audit.certificate.trust
    certified = audit.epsilon_certified
    lines = [
        (
            "ε proved",
            f"{found.epsilon_lower:.4g}, at δ = {found.delta:g}, with "
            f"{100 * found.confidence:g} % confidence",
        ),
        ("ε certified", "none: past all use" if certified is None else f"{certified:.4g}"),
        ("ε promised", f"{promise.epsilon:g} for {promise.queries:,} queries"),
        (
            "noise",
            f"{audit.certificate.noise.name}, {audit.certificate.calibration} calibration, "
            f"{trust.honest_shares} honest shares of {trust.teachers}",
        ),
        (
            "trials",
            f"{found.trials:,} in {audit.mode} mode; {found.counted:,} counted: "
            f"{found.right:,} guesses were right, {found.wrong:,} wrong",
        ),
        ("seen by", found.statistic),
        ("verdict", _verdict(audit)),
    ]
    say(console, *(f"{name:>12}  {value}" for name, value in lines))


def _verdict(audit: "PromiseAudit") -> str:
    if audit.is_certificate_refuted:
        return "REFUTED: more is spent than the certificate says"
    if audit.is_promise_refuted:
        return "the promise is BROKEN, as the certificate says too"
    certified = audit.epsilon_certified
    if certified is not None and audit.attack.epsilon_lower > certified:
        return (
            "not refuted: past the certificate by luck or a fault, and this is too little to tell; "
            "play more games"
        )
    return "not refuted: the attack proves no more than was promised"
