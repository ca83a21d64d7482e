"""How certificates and figures are shown to people."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from dppp.privacy.certificate import Certificate


def show_certificate(console: Console, certificate: "Certificate") -> None:
    """What to add, who is protected, and whether the promise is kept."""
    noise, trust = certificate.noise, certificate.trust
    table = Table(show_header=False, box=None, padding=(0, 2))
    parameters = ", ".join(f"{name} {value:.8g}" for name, value in noise.report().items())
    table.add_row("each teacher adds", f"its share of {noise.name} noise to every class")
    table.add_row("noise", parameters)
    if certificate.chosen_from:
        others = ", ".join(f"{name} {value:,.5g}" for name, value in certificate.chosen_from)
        table.add_row("why this one", f"least variance of {others}")
    table.add_row(
        f"{trust.honest_shares} honest shares",
        f"variance {noise.variance:,.6g} a class, σ = {math.sqrt(noise.variance):,.4g} votes",
    )
    table.add_row(
        "who is trusted",
        f"{trust.teachers} teachers, {trust.colluders} may collude, {trust.dropouts} may vanish",
    )
    table.add_row(
        "quorum", f"{trust.ballots_needed} ballots, {trust.threshold} decryption shares to open"
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


def show_compared(console: Console, certificates: "list[Certificate]") -> None:
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


def show_object(console: Console, title: str, result: Mapping[str, Any]) -> None:
    """A result as a table of names and values."""
    table = Table(title=title, show_header=False)
    for name, value in result.items():
        table.add_row(name, _text(value))
    console.print(table)


def _text(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
