"""`dppp ledger`: what a teacher has spent, whether that is the truth, and copies of it.

The heavy imports are inside the commands, so that `dppp --help` answers at once.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dppp.cli.options import JsonOption
from dppp.cli.output_files import require_place
from dppp.cli.terminal import emit
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.privacy.ledger.chain import Head
    from dppp.privacy.ledger.summary import DataSummary, Summary

app = typer.Typer(help="A teacher's privacy ledger: what was reserved, answered and spent.")

LedgerArgument = Annotated[
    str,
    typer.Argument(
        help="The teacher's ledger: a file, or env:NAME or file:PATH where its PostgreSQL url is.",
        show_default=False,
    ),
]
HeadArgument = Annotated[
    Path, typer.Argument(help="A new file to remember the head in.", show_default=False)
]
RememberedOption = Annotated[
    Path | None, typer.Option(help="The head file that the ledger must contain.")
]


@app.command()
def show(ledger: LedgerArgument, *, as_json: JsonOption = False) -> None:
    """Show what was reserved and answered, and the head to compare with peers."""
    from dppp.service.stores.ledgers import inspect_ledger  # noqa: PLC0415
    from dppp.service.stores.locations import read_location  # noqa: PLC0415

    with inspect_ledger(read_location(ledger)) as (found, _):
        summary = found.summary()
    emit(summary.to_json(), as_json=as_json, show=lambda out: _show_summary(out, summary))


@app.command()
def check(
    ledger: LedgerArgument, *, remembered: RememberedOption = None, as_json: JsonOption = False
) -> None:
    """Check that every entry is as it was written, and that no old copy was put back."""
    head = _check(ledger, remembered)
    result = {"checked": True, **_head_json(head), "remembered_found": remembered is not None}
    emit(result, as_json=as_json, show=lambda out: _show_checked(out, head, remembered))


@app.command()
def remember(
    ledger: LedgerArgument, head_file: HeadArgument, *, as_json: JsonOption = False
) -> None:
    """Check a ledger and remember its head, after you compared that with your peers."""
    from dppp.service.stores.head_file import HeadFile  # noqa: PLC0415

    if head_file.exists():
        raise InputError(
            f"{head_file} remembers a head already", hint="run `dppp ledger check` with it"
        )
    head = _check(ledger, None)
    HeadFile(head_file).remember(head)
    result = {"head_file": str(head_file), **_head_json(head)}
    emit(result, as_json=as_json, show=lambda out: out.print(f"remembered: {head}"))


@app.command()
def backup(
    ledger: LedgerArgument,
    copy: Annotated[Path, typer.Argument(help="A new file for the copy.", show_default=False)],
    *,
    remembered: RememberedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy a ledger beside a running teacher, and check every entry of the copy."""
    from dppp.service.stores.head_file import HeadFile  # noqa: PLC0415
    from dppp.service.stores.ledger_copies import back_up_ledger  # noqa: PLC0415
    from dppp.service.stores.locations import read_location  # noqa: PLC0415

    require_place(copy)
    heads = None if remembered is None else HeadFile(_existing(remembered))
    head = back_up_ledger(read_location(ledger), copy, heads=heads)
    result = {"copy": str(copy), **_head_json(head), "remembered_found": heads is not None}

    def show_it(out: Console) -> None:
        out.print(f"copied: {head.index + 1:,} entries, all as written", markup=False)
        out.print("The head file is not in it: keep that elsewhere, and never copy it back.")

    emit(result, as_json=as_json, show=show_it)


@app.command()
def restore(
    copy: Annotated[Path, typer.Argument(help="The newest copy.", show_default=False)],
    ledger: Annotated[
        str,
        typer.Argument(
            help="Where the ledger is missing: a file, or env:NAME or file:PATH of its PostgreSQL "
            "url.",
            show_default=False,
        ),
    ],
    *,
    head: Annotated[Path, typer.Option(help="The head file of the ledger that was lost.")],
    as_json: JsonOption = False,
) -> None:
    """Put a copy in the place of a lost ledger; refused if it is older than the head file."""
    from dppp.service.stores.ledger_copies import restore_ledger  # noqa: PLC0415
    from dppp.service.stores.locations import read_new_location  # noqa: PLC0415

    found = restore_ledger(_existing(copy), read_new_location(ledger), head_path=head)
    result = {"restored": True, **_head_json(found)}
    words = f"restored: {found.index + 1:,} entries; the remembered head is among them"
    emit(result, as_json=as_json, show=lambda out: out.print(words, markup=False))


def _check(ledger: str, remembered: Path | None) -> "Head":
    from dppp.service.stores.head_file import HeadFile  # noqa: PLC0415
    from dppp.service.stores.ledgers import inspect_ledger  # noqa: PLC0415
    from dppp.service.stores.locations import read_location  # noqa: PLC0415

    expected = None if remembered is None else HeadFile(_existing(remembered)).recall()
    with inspect_ledger(read_location(ledger)) as (found, store):
        store.check_file()
        head = found.check()
        if expected is not None:
            found.require_contains(expected)
    return head


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"there is no file {path}", hint="correct the path")
    return path


def _head_json(head: "Head") -> dict[str, object]:
    return {"head": {"index": head.index, "hash": head.hash.hex()}}


def _show_summary(console: Console, summary: "Summary") -> None:
    console.print(f"ledger of {summary.teacher}", markup=False)
    for data in summary.data:
        console.print()
        console.print(_budget_table(data))
        console.print(_task_table(data))
    console.print(f"\nhead: entry {summary.head.index}\n{summary.head.hash.hex()}")


def _budget_table(data: "DataSummary") -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=True)
    table.add_column(f"data {escape(data.data_id)}", no_wrap=True)
    for heading in ("ε", "δ"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, budget in (("cap", data.cap), ("reserved", data.reserved), ("left", data.left)):
        table.add_row(name, f"{budget.epsilon:.10g}", f"{budget.delta:.6g}")
    return table


def _task_table(data: "DataSummary") -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("task", no_wrap=True)
    for heading in ("queries", "answered", "left", "batches", "ε", "δ"):
        table.add_column(heading, justify="right", no_wrap=True)
    for task in data.tasks:
        company = f" ÷{task.fixed_together}" if task.fixed_together > 1 else ""
        counts = (task.queries, task.answered, task.left, task.batches)
        table.add_row(
            task.task_id.hex()[:16],
            *(f"{count:,}" for count in counts),
            f"{task.budget.epsilon:.6g}{company}",
            f"{task.budget.delta:.4g}{company}",
        )
    table.caption = "\n".join(_remarks(data)) or None
    return table


def _remarks(data: "DataSummary") -> Iterator[str]:
    """What stands below the tasks where it applies."""
    if any(task.fixed_together > 1 for task in data.tasks):
        yield "÷k: reserved once for k tasks that were fixed together"
    for task in data.tasks:
        if task.successor_id is not None:
            yield f"{task.task_id.hex()[:16]} was succeeded by {task.successor_id.hex()[:16]}"
    refunded = sum(task.refunded for task in data.tasks)
    redone = sum(task.redone for task in data.tasks)
    if refunded:
        yield f"batches refunded, whose queries are not among the answered: {refunded:,}"
    if redone:
        yield f"batches redone, each at one charge: {redone:,}"


def _show_checked(console: Console, head: "Head", remembered: Path | None) -> None:
    console.print(f"all {head.index + 1:,} entries and the bytes beside them are as written")
    if remembered is None:
        console.print("whether the ledger went back in time only a remembered head can tell")
    else:
        console.print("the remembered head is among them: it did not go back in time")
    console.print(f"head: entry {head.index}\n{head.hash.hex()}")
