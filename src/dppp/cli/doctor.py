"""`dppp doctor`: one line for each check of a home, and what to do."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dppp.cli.optional_packages import require_service
from dppp.cli.options import JsonOption
from dppp.cli.terminal import emit, say
from dppp.errors import Unavailable

_SIGNS = {"good": "✓", "warning": "!", "failed": "✗", "skipped": "-"}


def doctor(
    home: Annotated[
        Path,
        typer.Argument(help="A home, or teacher.toml or aggregator.toml.", show_default=False),
    ],
    *,
    gateway: Annotated[
        str | None,
        typer.Option(help="The aggregator's address, to compare the clock with."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look over a home, clock, broker, model, ledger, certificates and files; change nothing."""
    require_service()
    from dppp.service.doctor.examination import examine  # noqa: PLC0415
    from dppp.service.doctor.finding import State  # noqa: PLC0415
    from dppp.service.process.logs import quiet_asyncio  # noqa: PLC0415

    quiet_asyncio()

    findings = list(examine(home, gateway=gateway))
    wrong = [each for each in findings if each.state is State.FAILED]

    def show(console: Console) -> None:
        for each in findings:
            say(console, f"{_SIGNS[each.state.value]} {each.check:<12}  {each.said}")
            if each.remedy is not None:
                say(console, f"{'':<14}  → {each.remedy}")

    result = {"healthy": not wrong, "checks": [each.to_json() for each in findings]}
    emit(result, as_json=as_json, show=show)
    if wrong:
        raise Unavailable(
            f"{len(wrong)} of {len(findings)} checks failed", hint="the lines above say what to do"
        )
