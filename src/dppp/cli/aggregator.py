"""`dppp aggregator`: run one, make tokens for queriers, and let in who was left out."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dppp.cli.optional_packages import require_service
from dppp.cli.options import JsonOption, LogJsonOption
from dppp.cli.output_files import require_place
from dppp.cli.terminal import emit
from dppp.errors import InputError

app = typer.Typer(help="Run an aggregator, make tokens, and let in who was left out.")

ConfigOption = Annotated[Path, typer.Option(help="The configuration, aggregator.toml.")]


@app.command()
def run(*, config: ConfigOption, as_json: LogJsonOption = False) -> None:
    """Run the aggregator and its gateway until it is stopped (SIGTERM or Ctrl-C)."""
    require_service()
    from dppp.service.aggregator.process import run_aggregator  # noqa: PLC0415
    from dppp.service.process.config import AggregatorConfig, read_config  # noqa: PLC0415
    from dppp.service.process.logs import log_to_stderr  # noqa: PLC0415

    settings = read_config(config, AggregatorConfig)
    log_to_stderr(settings.log_level, as_json=as_json)
    run_aggregator(settings)


@app.command()
def token(
    *,
    name: Annotated[str, typer.Option(help="The querier that the token is for.")],
    queries: Annotated[int, typer.Option(help="Queries that it may spend in all.", min=1)],
    out: Annotated[Path, typer.Option(help="A new file for the token, readable by you alone.")],
    as_json: JsonOption = False,
) -> None:
    """Make a querier's token: the file is for the querier, the lines are for aggregator.toml."""
    require_service()
    require_place(out)
    from dppp.service.gateway.queriers import make_token  # noqa: PLC0415
    from dppp.service.stores.new_files import NewFile, write_new_files  # noqa: PLC0415

    secret, digest = make_token()
    write_new_files(out.parent, [NewFile(name=out.name, data=f"{secret}\n".encode())])
    entry = (
        f'[[queriers]]\nname = {json.dumps(name, ensure_ascii=False)}\ntoken_sha256 = "{digest}"\n'
    )
    entry += f"queries = {queries}"
    result = {
        "name": name,
        "token_file": str(out),
        "token_sha256": digest,
        "queries": queries,
    }
    emit(result, as_json=as_json, show=lambda console: _show(console, name, out, entry))


@app.command("left-out")
def left_out(
    *,
    config: ConfigOption,
    let_in: Annotated[
        int | None,
        typer.Option(help="The number of a teacher to ask again: its faults are forgotten."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Under masks: who was at fault and is asked no more, and why; --let-in asks one again."""
    require_service()
    from dppp.protocol.batch_store import StoredBatches  # noqa: PLC0415
    from dppp.service.process.config import AggregatorConfig, read_config  # noqa: PLC0415
    from dppp.service.stores.batches import open_batch_store  # noqa: PLC0415

    with open_batch_store(read_config(config, AggregatorConfig).store.location) as store:
        stored = StoredBatches(store)
        forgotten = () if let_in is None else stored.let_in(let_in)
        if let_in is not None and not forgotten:
            raise InputError(f"teacher {let_in} is not left out", hint="look without --let-in")
        culprits = stored.culprits()
    rows = [
        {"teacher": each.teacher, "batch": each.batch_id.hex(), "reason": each.reason}
        for each in culprits
    ]
    lines = [f"teacher {each.teacher}: {each.reason}" for each in culprits]

    def show(console: Console) -> None:
        for line in lines or ["Nobody is left out."]:
            console.print(line, soft_wrap=True, markup=False)

    emit({"left_out": rows, "let_in": let_in}, as_json=as_json, show=show)


def _show(console: Console, name: str, out: Path, entry: str) -> None:
    console.print(
        f"Give {out} to {name}, and add to aggregator.toml:\n", soft_wrap=True, markup=False
    )
    console.print(entry, soft_wrap=True, markup=False)
