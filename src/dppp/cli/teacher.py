"""`dppp teacher`: accept a task, run, and forget the secrets of its epochs at the end."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dppp.cli.federation import cryptosystem_line
from dppp.cli.optional_packages import require_service
from dppp.cli.options import JsonOption, LogJsonOption
from dppp.cli.terminal import emit, say
from dppp.errors import InputError
from dppp.protocol.units import describe_unit

if TYPE_CHECKING:
    from dppp.service.ceremony.acceptance import Acceptance
    from dppp.service.process.config import TeacherConfig

app = typer.Typer(help="Accept a task as a teacher, run the teacher, and forget its secrets.")

ConfigOption = Annotated[Path, typer.Option(help="The teacher's configuration, teacher.toml.")]


@app.command()
def accept(
    *,
    config: ConfigOption,
    is_first_use: Annotated[
        bool,
        typer.Option(
            "--first-use-of-this-data",
            help="Say that no ledger has ever counted this data, so that nothing is spent yet. "
            "Needed once per data set. Data used in another federation stays in that one's ledger.",
        ),
    ] = False,
    accept_no_colluders: Annotated[
        bool,
        typer.Option(
            "--accept-no-colluders",
            help="Accept a task with C = 0. A teacher who also runs the aggregator, or reads along "
            "with it, knows its own noise: the promise then does not hold against it.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask on a terminal; elsewhere nobody is asked.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Agree to the task: its whole price is reserved in the ledger, for good."""
    require_service()
    from dppp.service.ceremony.acceptance import accept_task  # noqa: PLC0415
    from dppp.service.process.config import TeacherConfig, read_config  # noqa: PLC0415
    from dppp.service.teacher.models.configured import require_models  # noqa: PLC0415

    settings = read_config(config, TeacherConfig)
    require_models(settings)
    if sys.stdin.isatty() and not yes and not as_json:
        _ask(settings)
    accepted = accept_task(
        settings,
        accept_no_colluders=accept_no_colluders,
        is_first_use=is_first_use,
    )
    task = accepted.federation.task
    result = {
        "teacher": accepted.teacher,
        "index": accepted.index,
        "task_id": task.task_id.hex(),
        "epsilon": task.epsilon,
        "delta": task.delta,
        "queries": task.queries,
        "unit": task.unit,
        "votes": task.votes[accepted.index - 1],
        "cryptosystem": task.cryptosystem,
        "security_bits": None if task.masks is None else task.masks.security_bits,
        "is_new_ledger": accepted.is_new_ledger,
        **accepted.data.to_json(),
    }
    emit(result, as_json=as_json, show=lambda console: _show(console, accepted))


def _ask(settings: "TeacherConfig") -> None:
    """Show what is promised, and go on only with a yes."""
    from dppp.service.ceremony.card.facts import make_card, short_lines  # noqa: PLC0415
    from dppp.service.ceremony.federation_file import (  # noqa: PLC0415
        read_federation,
        read_hash,
    )

    found = read_federation(settings.federation, read_hash(settings.federation_hash))
    lines = [f"{name:>10}  {value}" for name, value in short_lines(make_card(found.task))]
    console = Console(highlight=False)
    say(console, f"Privacy card of {found.task.name}", *lines)
    say(console, f"The whole card: dppp card {settings.federation}")
    typer.confirm("Accept this task, for good?", abort=True)


@app.command()
def run(
    *,
    config: ConfigOption,
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle-which-can-run-any-code",
            help="Load a pickled model. Whoever made the file can run any code here.",
        ),
    ] = False,
    as_json: LogJsonOption = False,
) -> None:
    """Answer the aggregator until stopped (SIGTERM or Ctrl-C)."""
    require_service()
    from dppp.service.process.config import TeacherConfig, read_config  # noqa: PLC0415
    from dppp.service.process.logs import log_to_stderr  # noqa: PLC0415
    from dppp.service.teacher.process import run_teachers  # noqa: PLC0415

    settings = read_config(config, TeacherConfig)
    log_to_stderr(settings.log_level, as_json=as_json)
    run_teachers([settings], allow_pickle=allow_pickle)


@app.command()
def forget(
    *,
    config: ConfigOption,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask on a terminal; elsewhere nobody is asked.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete the secrets of all epochs, when a teacher under masks has stopped for good.

    A teacher that runs deletes them as their epochs end; one that has stopped keeps the last two.
    """
    require_service()
    from dppp.service.process.config import TeacherConfig, read_config  # noqa: PLC0415
    from dppp.service.stores.epoch_secrets import open_epoch_secrets  # noqa: PLC0415

    path = read_config(config, TeacherConfig).epoch_secrets
    if not path.exists():
        raise InputError(
            f"there are no secrets of epochs in {path}",
            hint="a teacher under paillier has none, and one that never ran neither",
        )
    if sys.stdin.isatty() and not yes and not as_json:
        typer.confirm("Has the last batch ended, and the teacher stopped for good?", abort=True)
    with open_epoch_secrets(path) as secrets:
        deleted = secrets.forget_all()
    plural = "secret" if deleted == 1 else "secrets"
    emit(
        {"file": str(path), "deleted": deleted},
        as_json=as_json,
        show=lambda console: say(
            console,
            f"{deleted} {plural} deleted from {path}",
            "What was recorded in those epochs is opened by nobody any more.",
        ),
    )


def _show(console: Console, accepted: "Acceptance") -> None:
    task, data = accepted.federation.task, accepted.data
    lines = [
        f"{accepted.teacher}, teacher {accepted.index}, accepted the task {task.name}",
        f"      task  {task.task_id.hex()}",
        f"     price  {_price(accepted)}",
        f"      unit  {task.unit}: {describe_unit(task.unit)}",
        f"     votes  {task.votes[accepted.index - 1]} of {sum(task.votes)}, one model for each",
        f"   ballots  {cryptosystem_line(accepted.federation)}",
        f"      data  {data.data_id}",
        f"       cap  {data.cap}, for good",
        f"  reserved  {data.reserved}",
        f"      left  {data.left} for other tasks",
        "",
        "What is reserved stays so if the queries are never asked. Retraining resets nothing.",
    ]
    if accepted.is_new_ledger:
        lines.append("A new ledger was made. Never put an old copy of it back.")
    console.print("\n".join(lines), soft_wrap=True, markup=False)


def _price(accepted: "Acceptance") -> str:
    """What is reserved; a task that takes the place of another one goes on with what that paid."""
    task = accepted.federation.task
    price = f"ε = {task.epsilon:g}, δ = {task.delta:g} for {task.queries:,} queries"
    is_paid = task.succeeds in {each.task_id for each in accepted.data.tasks}
    if task.succeeds is None or not is_paid:
        return f"{price}, reserved as a whole"
    return f"{price}, on what {task.succeeds.hex()[:16]} had reserved: nothing new"
