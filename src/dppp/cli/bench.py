"""`dppp bench`: what a batch costs on this machine, under both cryptosystems and beside others.

Three benchmarks: both cryptosystems through the real roles (the default), paillier's parts against
the paper (`--paper`), and a deployment of real processes (`--deployment`).
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from dppp.benchmarks.workload import DEFAULT_SLOT_BITS, Workload
from dppp.cli.optional_packages import require_scikit_learn, require_service
from dppp.cli.options import JsonOption
from dppp.cli.output_files import require_figure_place
from dppp.cli.terminal import emit
from dppp.errors import InputError
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS, require_dealable
from dppp.privacy.trust import Trust

if TYPE_CHECKING:
    from dppp.benchmarks.deployment.measurement import Load

# What a reader wants first, and its unit.
_SHOWN = {
    "cpu_ms_per_label": "ms, all parties",
    "teacher_cpu_ms_per_label": "ms, one teacher: ballot and share",
    "paper_cpu_ms_per_label": "ms, all parties, the paper as written",
    "ratio_to_paper": "times less",
    "proof_cpu_ms_per_label": "ms, all parties, for proofs made and checked",
    "bytes_sent_per_label": "bytes a teacher sends",
    "list_bytes_per_label": "bytes of the ballot list a teacher receives",
    "share_over_modexp": "share over one constant-time exponentiation",
    "table_megabytes": "MB of tables",
    "samples_per_second": "noise shares drawn per second on one core",
    "sampling_over_numpy": "times as fast as numpy's generator, which is not secure",
}
_SHOWN_OF_A_BATCH = {
    "cpu_ms_per_label": "ms, all parties: noise, ballots, signatures, ledger, opening, receipt",
    "teacher_cpu_ms_per_label": "ms, one teacher",
    "aggregator_cpu_ms_per_label": "ms, the aggregator",
    "common_cpu_ms_per_label": "ms of all: reading queries and drawing noise, the same for both",
    "bytes_sent_per_label": "bytes that a teacher sends",
    "bytes_received_per_label": "bytes that a teacher receives, the queries included",
    "query_bytes_per_label": "bytes of these are the queries",
    "transcript_bytes_per_label": "bytes of the transcript",
    "verify_cpu_ms_per_label": "ms to verify the transcript",
    "epoch_cpu_ms": "ms, all parties, for keys, once per epoch and not in the figures above",
}
_SHOWN_OF_A_FEDERATION = {
    "federation_cpu_seconds": "s for the whole batch, every party, hardened, real messages",
    "federation_verify_cpu_seconds": "s to verify its transcript",
    "federation_peak_megabytes": "MB of memory, all parties in one process",
}


def bench(
    *,
    teachers: Annotated[int, typer.Option(help="How many teachers.")] = 250,
    classes: Annotated[int, typer.Option(help="How many classes.")] = 10,
    modulus_bits: Annotated[int, typer.Option(help="Length of the modulus.")] = (
        DEFAULT_MODULUS_BITS
    ),
    s: Annotated[int, typer.Option(help="Damgard-Jurik's s: more counts fit one ciphertext.")] = 4,
    labels: Annotated[int, typer.Option(help="How many labels in the batch.")] = 500,
    slot_bits: Annotated[
        int, typer.Option(help="With --paper: bits of the largest possible sum in a slot.")
    ] = DEFAULT_SLOT_BITS,
    cryptosystem: Annotated[
        str, typer.Option(help="masks, paillier, or both in one run, with their ratios.")
    ] = "both",
    paper: Annotated[
        bool, typer.Option("--paper", help="Instead: the parts of paillier against the paper.")
    ] = False,
    steps: Annotated[
        bool, typer.Option("--steps", help="With --paper: also measure each step.")
    ] = False,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also install other packages, and measure them.")
    ] = False,
    federation: Annotated[
        bool, typer.Option("--federation", help="With --paper: also run a whole federation.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="With --paper: write a plot of the steps (PNG).")
    ] = None,
    deployment: Annotated[
        Path | None,
        typer.Option(help="Instead: run real processes and a broker in this new folder."),
    ] = None,
    singles: Annotated[
        int, typer.Option(help="With --deployment: batches of one query.", min=10)
    ] = 1_000,
    hosts: Annotated[
        int | None,
        typer.Option(
            help="With --deployment: all teachers together in these processes, to save memory.",
            min=1,
        ),
    ] = None,
    gather: Annotated[
        int | None,
        typer.Option(
            help="With --deployment, instead: 8 queriers' singles, gathered for these milliseconds "
            "and not.",
            min=1,
            max=1_000,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="env:NAME|file:PATH",
            help="With --deployment, instead: one aggregator and two, whose batches are in the "
            "PostgreSQL of this URL.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the processor time and the bytes of a batch, from queries to a receipt."""
    if deployment is not None:
        load = {"teachers": teachers, "classes": classes, "modulus_bits": modulus_bits, "s": s}
        load |= {"labels": labels, "singles": singles}
        load |= {} if hosts is None else {"hosts": hosts}
        chosen = _cryptosystems(cryptosystem)
        _bench_deployment(deployment, load, chosen, as_json, gather=gather, store=store)
        return
    if not paper:
        load = {"teachers": teachers, "classes": classes, "labels": labels}
        load |= {"modulus_bits": modulus_bits, "s": s}
        _require_of_paper(steps=steps, federation=federation, plot=plot is not None)
        _bench_batches(load, cryptosystem, with_peers=peers, as_json=as_json)
        return
    workload = Workload(
        teachers=teachers,
        classes=classes,
        modulus_bits=modulus_bits,
        s=s,
        labels=labels,
        slot_bits=slot_bits,
    )
    result = _bench_here(
        workload, with_steps=steps, with_peers=peers, with_federation=federation, plot=plot
    )
    emit(result, as_json=as_json, show=lambda console: _show(console, result))


def _require_of_paper(**options: bool) -> None:
    for name, is_given in options.items():
        if is_given:
            raise InputError(f"--{name} is a part of --paper", hint="give --paper too")


def _bench_batches(
    load: dict[str, int], cryptosystem: str, *, with_peers: bool, as_json: bool
) -> None:
    from dppp.benchmarks.comparison import compare  # noqa: PLC0415
    from dppp.benchmarks.load import BatchLoad  # noqa: PLC0415

    chosen = _cryptosystems(cryptosystem)
    trust = Trust.with_defaults(load["teachers"])
    if "paillier" in chosen:
        require_dealable(
            teachers=load["teachers"],
            threshold=trust.threshold,
            modulus_bits=load["modulus_bits"],
            s=load["s"],
            insecure_testing=True,
        )
    result = compare(BatchLoad(**load), cryptosystems=chosen, with_peers=with_peers)
    emit(result, as_json=as_json, show=lambda console: _show_batches(console, result))


def _cryptosystems(asked: str) -> tuple[str, ...]:
    from dppp.benchmarks.comparison import CRYPTOSYSTEMS  # noqa: PLC0415

    chosen = CRYPTOSYSTEMS if asked == "both" else (asked,)
    if not set(chosen) <= set(CRYPTOSYSTEMS):
        raise InputError(
            f"the cryptosystem is masks, paillier or both, not {asked!r}", hint="leave it out"
        )
    return chosen


def _bench_here(
    workload: Workload,
    *,
    with_steps: bool,
    with_peers: bool,
    with_federation: bool,
    plot: Path | None,
) -> dict[str, Any]:
    """All that is measured in this process."""
    from dppp.benchmarks.report import (  # noqa: PLC0415
        measure_federation,
        measure_sampling,
        run_benchmark,
    )
    from dppp.benchmarks.steps import plot_steps  # noqa: PLC0415

    require_dealable(
        teachers=workload.teachers,
        threshold=workload.threshold,
        modulus_bits=workload.modulus_bits,
        s=workload.s,
        insecure_testing=True,
    )
    require_figure_place(plot)
    is_stepwise = with_steps or plot is not None
    result = run_benchmark(workload, with_steps=is_stepwise, with_peers=with_peers)
    result |= measure_sampling()
    if with_federation:
        result |= measure_federation(workload)
    if plot is not None:
        plot_steps(result, plot)
    return result


def _bench_deployment(
    folder: Path,
    load: dict[str, int],
    cryptosystems: tuple[str, ...],
    as_json: bool,
    *,
    gather: int | None,
    store: str | None,
) -> None:
    require_service()
    require_scikit_learn()
    from dppp.benchmarks.deployment.measurement import Load, compare_deployments  # noqa: PLC0415
    from dppp.service.local.processes import find_nats_server  # noqa: PLC0415

    find_nats_server()
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty", hint="choose another folder")
    logging.disable(logging.WARNING)  # the benchmark hangs up on the broker again and again
    asked = Load(**load, alone=load["singles"] // 10)
    if store is not None:
        result = _bench_aggregators(folder, asked, cryptosystems, store)
    elif gather is not None:
        result = _bench_gathering(folder, asked, cryptosystems, gather)
    else:
        result = compare_deployments(folder, asked, cryptosystems)
    emit(result, as_json=as_json, show=lambda console: console.print_json(data=result))


def _bench_gathering(
    folder: Path, load: "Load", cryptosystems: tuple[str, ...], milliseconds: int
) -> dict[str, Any]:
    from dppp.benchmarks.deployment.gathered import (  # noqa: PLC0415
        GatheredLoad,
        compare_gathering,
    )

    gathered = GatheredLoad(singles=load.singles, gather_milliseconds=milliseconds)
    return {each: compare_gathering(folder / each, load, gathered, each) for each in cryptosystems}


def _bench_aggregators(
    folder: Path, load: "Load", cryptosystems: tuple[str, ...], store: str
) -> dict[str, Any]:
    from dppp.benchmarks.deployment.aggregators import compare_aggregators  # noqa: PLC0415
    from dppp.service.stores.locations import read_location  # noqa: PLC0415

    url = read_location(store)
    if isinstance(url, Path):
        raise InputError(
            "two aggregators share a PostgreSQL, not a file", hint="give env:NAME or file:PATH"
        )
    if len(cryptosystems) > 1:
        raise InputError("a store is for one task", hint="choose a --cryptosystem")
    return compare_aggregators(folder, load, cryptosystems[0], url)


def _show_batches(console: Console, result: dict[str, Any]) -> None:
    for name in ("masks", "paillier"):
        if name in result:
            console.print(f"[bold]{name}[/bold], {result['teachers']} teachers")
            for figure, unit in _SHOWN_OF_A_BATCH.items():
                console.print(f"{result[name][figure]:>14,.3f}  {figure}: {unit}")
    bare = result["bare_masks_cpu_ms_per_label"]
    console.print(f"{bare:>14,.3f}  ms per label: bare pairwise masks and nothing else")
    for name, ratio in result["ratios"].items():
        console.print(f"{ratio:>14,.2f}  times: {name}")
    _show_peers(console, result.get("peers"))


def _show(console: Console, result: dict[str, object]) -> None:
    for name, unit in _SHOWN.items():
        console.print(f"{result[name]:>14,.2f}  {name}: {unit}")
    for name, unit in _SHOWN_OF_A_FEDERATION.items():
        if name in result:
            console.print(f"{result[name]:>14,.2f}  {name}: {unit}")
    _show_rows(console, result.get("steps"))
    _show_peers(console, result.get("peers"))


def _show_peers(console: Console, peers: object) -> None:
    for peer, figures in peers.items() if isinstance(peers, dict) else ():
        if "skipped" in figures:
            console.print(f"{'skipped':>14}  {peer}: {figures['skipped']}")
        else:
            console.print(f"{figures['ratio']:>14,.3g}  times ours: {peer}, {figures['note']}")


def _show_rows(console: Console, steps: object) -> None:
    for row in steps if isinstance(steps, list) else ():
        console.print(f"{row['ms']:>14,.1f}  ms: {row['step']} ({row['what']})")
