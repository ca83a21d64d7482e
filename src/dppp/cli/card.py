"""`dppp card`: what a task promises, to whom and at what price, for a person or for a registry."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dppp.cli.given_task import read_task
from dppp.cli.optional_packages import require_service
from dppp.cli.options import JsonOption
from dppp.cli.output_files import require_place, write_bytes
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.privacy.ledger.summary import DataSummary
    from dppp.protocol.task import Task

FORMS = ("markdown", "html", "yaml")


def card(
    source: Annotated[
        Path,
        typer.Argument(help="A federation file, a receipt or a transcript.", show_default=False),
    ],
    *,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="A teacher's ledger, for what is spent: a file, or env:NAME or file:PATH where "
            "its PostgreSQL url is."
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--as", help="markdown, html, or yaml for the deployments registry.")
    ] = "markdown",
    out: Annotated[Path | None, typer.Option(help="A file for it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Anybody: a privacy card to read, to file, or to register."""
    require_service()
    from dppp.service.ceremony.card.facts import make_card  # noqa: PLC0415
    from dppp.service.ceremony.card.page import to_html, to_markdown  # noqa: PLC0415
    from dppp.service.ceremony.card.registry import (  # noqa: PLC0415
        registry_entry,
        to_registry_yaml,
    )

    if form not in FORMS:
        raise InputError(f"unknown form {form!r}", hint=f"choose one of {', '.join(FORMS)}")
    require_place(out)
    task, names = read_task(source)
    data = None if ledger is None else _data_of(task, ledger)
    made = make_card(task, names=names, data=data)
    if as_json:
        import json  # noqa: PLC0415

        result = {
            "sections": [
                {"title": each.title, "lines": [list(line) for line in each.lines]}
                for each in made.sections
            ],
            "registry": registry_entry(made),
        }
        text = json.dumps(result, indent=2) + "\n"
    else:
        text = {"markdown": to_markdown, "html": to_html, "yaml": to_registry_yaml}[form](made)
    if out is None:
        sys.stdout.write(text)
    else:
        write_bytes(out, text.encode())


def _data_of(task: "Task", ledger: str) -> "DataSummary":
    from dppp.service.stores.ledgers import inspect_ledger  # noqa: PLC0415
    from dppp.service.stores.locations import read_location  # noqa: PLC0415

    with inspect_ledger(read_location(ledger)) as (found, _):
        summary = found.summary()
    known = {each.data_id: each for each in summary.data}
    if task.data_id not in known:
        raise InputError(
            f"this ledger does not know the data {task.data_id!r}",
            hint="give the ledger of a teacher that accepted the task",
        )
    return known[task.data_id]
