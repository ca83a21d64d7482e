"""`dppp calibrate`: how much noise a promise needs, as a table or a picture.

The heavy imports are inside the functions, so that `dppp --help` answers at once.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from dppp.cli.optional_packages import load_pyplot
from dppp.cli.options import (
    ClassesOption,
    ColludersOption,
    DeltaOption,
    DropoutsOption,
    EpsilonOption,
    JsonOption,
    LevelsOption,
    MaxLabelsOption,
    QueriesOption,
)
from dppp.cli.output_files import require_figure_place, save_figure
from dppp.cli.terminal import emit

if TYPE_CHECKING:
    from dppp.privacy.certificate import Certificate


def calibrate(
    *,
    epsilon: EpsilonOption,
    delta: DeltaOption,
    teachers: Annotated[int, typer.Option(help="Teachers who vote.")],
    noise: Annotated[
        str,
        typer.Option(help="auto (least variance), binomial, discrete-gaussian, skellam or polya."),
    ] = "auto",
    queries: QueriesOption = 1,
    colluders: ColludersOption = None,
    dropouts: DropoutsOption = None,
    classes: ClassesOption = 10,
    max_labels: MaxLabelsOption = None,
    levels: LevelsOption = None,
    calibration: Annotated[
        str, typer.Option(help="exact, or paper for the formulas of the paper.")
    ] = "exact",
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare all families, by both calibrations.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw δ(ε), promised against delivered, to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Work out how much noise a promise needs."""
    from dppp.privacy import calibration as calibrations  # noqa: PLC0415
    from dppp.privacy.certificate import Promise  # noqa: PLC0415
    from dppp.privacy.change import change_of  # noqa: PLC0415
    from dppp.privacy.trust import Trust  # noqa: PLC0415

    require_figure_place(plot)
    if plot is not None:
        load_pyplot()  # say at once that it is missing
    counts, change = change_of(classes=classes, max_labels=max_labels, levels=levels)
    promise = Promise(epsilon=epsilon, delta=delta, queries=queries, classes=counts, change=change)
    trust = Trust.with_defaults(teachers, colluders, dropouts)
    if compare:
        certificates = calibrations.compare(promise, trust)
    else:
        certificates = [calibrations.calibrate_for(noise, promise, trust, calibration=calibration)]
    if plot is not None:
        _draw_promised_against_delivered(certificates, plot)
    first = certificates[0]
    if compare:
        rows = [
            {**each.to_json(), "ratio_to_best": each.noise.variance / first.noise.variance}
            for each in certificates
        ]
        emit(
            {"compared": rows}, as_json=as_json, show=lambda out: _show_compared(out, certificates)
        )
    else:
        emit(first.to_json(), as_json=as_json, show=lambda out: show_certificate(out, first))


def show_certificate(console: Console, certificate: "Certificate") -> None:
    """What to add, who is protected, and whether the promise is kept."""
    noise, trust = certificate.noise, certificate.trust
    table = Table(show_header=False, box=None, padding=(0, 2))
    parameters = ", ".join(f"{name} {value:.8g}" for name, value in noise.report().items())
    table.add_row("each teacher adds", f"its share of {noise.name} noise to every count")
    table.add_row("noise", parameters)
    if certificate.chosen_from:
        others = ", ".join(f"{name} {value:,.5g}" for name, value in certificate.chosen_from)
        table.add_row("why this one", f"least variance of {others}")
    table.add_row(
        f"{trust.honest_shares} honest shares",
        f"variance {noise.variance:,.6g} per count, σ = {math.sqrt(noise.variance):,.4g}",
    )
    table.add_row(
        "who is trusted",
        f"{trust.teachers} teachers, {trust.colluders} may collude, {trust.dropouts} may vanish",
    )
    table.add_row(
        "quorum", f"{trust.ballots_needed} ballots, {trust.threshold} teachers to open their sum"
    )
    table.add_row(
        "promise",
        f"{_promise_text(certificate)}, {certificate.calibration} calibration",
    )
    table.add_row(
        "delivered",
        f"exact δ = {certificate.exact_delta:.6g}, sampling adds {certificate.sampling_delta:.2g}",
    )
    table.add_row("certified", _verdict(certificate))
    console.print(table)


def _show_compared(console: Console, certificates: "list[Certificate]") -> None:
    """A table of all families and calibrations, best first."""
    first = certificates[0]
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=f"{_promise_text(first)}; {first.trust.honest_shares} honest shares of "
        f"{first.trust.teachers}",
        caption="one share: m tosses; σ; V variance; r shape and q ratio",
    )
    table.add_column("noise", no_wrap=True)
    table.add_column("rule", no_wrap=True)
    for heading in ("one share", "variance", "ratio", "δ really", "kept"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in certificates:
        table.add_row(
            each.noise.name,
            each.calibration,
            each.noise.share_in_brief,
            f"{each.noise.variance:,.5g}",
            f"{each.noise.variance / first.noise.variance:.3g}×",
            f"{each.exact_delta:.2g}",
            _verdict(each),
        )
    console.print(table)


def _promise_text(certificate: "Certificate") -> str:
    promise = certificate.promise
    queries = "one query" if promise.queries == 1 else f"{promise.queries:,} queries in total"
    return f"ε = {promise.epsilon:g}, δ = {promise.delta:g} for {queries}"


def _verdict(certificate: "Certificate") -> str:
    return "[green]yes[/]" if certificate.certified else "[bold red]NO[/]"


def _draw_promised_against_delivered(certificates: "list[Certificate]", path: Path) -> None:
    """One curve per certificate; dashed where the promise, marked by a star, is not kept."""
    import numpy as np  # noqa: PLC0415

    from dppp.privacy.accounting import delta_curve  # noqa: PLC0415

    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    promise = certificates[0].promise
    epsilons = np.linspace(promise.epsilon / 20, 2 * promise.epsilon, 60)
    for each in certificates:
        spending = each.spending()
        label = f"{each.noise.name}, {each.calibration}" + ("" if each.certified else ": not kept")
        deltas = np.maximum(delta_curve([spending], epsilons.tolist()), 1e-300)
        axes.plot(epsilons, deltas, "-" if each.certified else "--", label=label)
    axes.plot(promise.epsilon, promise.delta, "k*", markersize=12, label="promise")
    axes.set_yscale("log")
    axes.set_ylim(promise.delta * 1e-4, 1.5)
    axes.set_xlabel("ε in total")
    axes.set_ylabel("δ delivered")
    axes.set_title(
        f"queries: {promise.queries:,}; {certificates[0].trust.honest_shares} honest shares "
        f"of {certificates[0].trust.teachers}"
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    save_figure(figure, path)
    pyplot.close(figure)
