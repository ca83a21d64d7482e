"""The `dppp` command: registers every command and turns failures into one line and an exit code.

Exit codes: 0 done, 2 bad input, 1 refused or failed.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from dppp import __version__
from dppp.cli import (
    account,
    aggregator,
    bench,
    calibrate,
    ceremony,
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
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Organisations label rows together: votes are encrypted, only noisy counts are opened."""
    if version:
        sys.stdout.write(f"dppp {__version__}\n")
    elif context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


app.command()(demo)
app.command()(simulate.simulate)
app.command()(calibrate.calibrate)
app.command()(account.certify)
app.command()(account.account)
app.command()(plan.plan)
app.command()(ceremony.init)
app.command()(ceremony.join)
app.command()(ceremony.collect)
app.add_typer(keys.app, name="keys")
app.command()(ceremony.setup)
app.command()(federation.federation)
app.add_typer(renew.app, name="renew")
app.add_typer(teacher.app, name="teacher")
app.add_typer(aggregator.app, name="aggregator")
app.command()(query.query)
app.add_typer(local.app, name="local")
app.add_typer(ledger.app, name="ledger")
app.command()(verify.verify)
app.add_typer(reproduce.app, name="reproduce")
app.command()(bench.bench)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    try:
        code = app(args=arguments, prog_name="dppp", standalone_mode=False)
    except typer.TyperException as error:
        _fail(2, f"{error.format_message()} See 'dppp --help', or --help after a command.")
    except InputError as error:
        _fail(2, str(error))
    except DpppError as error:
        _fail(1, str(error))
    except typer.Abort:
        _fail(1, "stopped before it was done")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(code: int, message: str) -> NoReturn:
    sys.stderr.write("dppp: " + " ".join(message.split()) + "\n")
    sys.exit(code)
