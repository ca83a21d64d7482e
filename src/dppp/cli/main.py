"""The `dppp` command: registers every command and turns failures into words and an exit code.

Exit codes: 0 done, 2 bad input, 1 refused or failed. What went wrong is on one line of standard
error, and what to do about it on the next; with --json both are in one object.
"""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from dppp import __version__
from dppp.cli import (
    account,
    aggregator,
    audit,
    bench,
    calibrate,
    card,
    ceremony,
    change,
    doctor,
    federation,
    keys,
    ledger,
    local,
    plan,
    query,
    renew,
    reproduce,
    simulate,
    teacher,
    train,
    verify,
)
from dppp.cli.demo.command import demo
from dppp.errors import DpppError, InputError

app = typer.Typer(
    name="dppp",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and the wire format.")
    ] = False,
) -> None:
    """Organisations label rows together: votes are encrypted, only noisy counts are opened."""
    if version:
        from dppp.protocol.wire import VERSION  # noqa: PLC0415

        sys.stdout.write(f"dppp {__version__} (wire format {VERSION})\n")
    elif context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


app.command()(demo)
app.command()(simulate.simulate)
app.command()(train.train)
app.command()(calibrate.calibrate)
app.command()(account.certify)
app.command()(account.account)
app.command()(audit.audit)
app.command()(plan.plan)
app.command()(ceremony.init)
app.command()(ceremony.join)
app.command()(ceremony.collect)
app.add_typer(keys.app, name="keys")
app.command()(ceremony.setup)
app.command()(federation.federation)
app.command()(card.card)
app.add_typer(renew.app, name="renew")
app.add_typer(change.app, name="change")
app.command()(doctor.doctor)
app.add_typer(teacher.app, name="teacher")
app.add_typer(aggregator.app, name="aggregator")
app.command()(query.query)
app.add_typer(local.app, name="local")
app.add_typer(ledger.app, name="ledger")
app.command()(verify.verify)
app.add_typer(reproduce.app, name="reproduce")
app.command()(bench.bench)


_HELP = "see 'dppp --help', or --help after a command"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in given
    help_hint = f"see 'dppp {given[0]} --help'" if given and given[0] in _names() else _HELP
    try:
        code = app(args=arguments, prog_name="dppp", standalone_mode=False)
    except typer.TyperException as error:
        _fail(2, DpppError(error.format_message(), hint=help_hint), as_json=as_json)
    except InputError as error:
        _fail(2, error, as_json=as_json, otherwise=help_hint)
    except DpppError as error:
        _fail(1, error, as_json=as_json)
    except typer.Abort:
        _fail(1, DpppError("stopped before it was done"), as_json=as_json)
    sys.exit(code if isinstance(code, int) else 0)


def _names() -> set[str]:
    """Commands and groups of commands."""
    groups = {group.name for group in app.registered_groups}
    named = {
        each.name or getattr(each.callback, "__name__", "") for each in app.registered_commands
    }
    return {str(name) for name in groups | named}


def _fail(code: int, error: DpppError, *, as_json: bool, otherwise: str | None = None) -> NoReturn:
    """Say it in one line, with its hint, or another where it has none; and end."""
    texts = (error.message, error.hint or otherwise)
    message, hint = (" ".join((text or "").split()) for text in texts)
    if as_json:
        sys.stderr.write(json.dumps({"error": message, "hint": hint or None}) + "\n")
    else:
        sys.stderr.write(f"dppp: {message}\n" + (f"hint: {hint}\n" if hint else ""))
    sys.exit(code)
